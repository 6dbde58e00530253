// The description of a cluster: what stands in topologies/*.json. build_fabric() makes the graph of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "hardware/accelerator.hpp"
#include "hardware/nvlink.hpp"
#include "hardware/power_profile.hpp"

namespace tw {

// One compute node.
struct NodeType {
  Accelerator accelerator;
  int gpus = 8;
  NvlinkDomain nvlink;
  int nics = 8;
  Bandwidth nic_bandwidth;  // one direction
  NodePower power;
  static void describe(Description<NodeType>& d) {
    d.object("node", "A compute node: accelerators, the links between them, NICs and power levels.");
    d.required("accelerator", &NodeType::accelerator, "accelerator profile");
    d.optional("gpus", &NodeType::gpus, "accelerators in a node", between(1, 1024));
    d.required("nvlink", &NodeType::nvlink, "links between the accelerators of a node");
    d.optional("nics", &NodeType::nics, "network adapters for the training fabric", between(0, 64));
    d.required("nic_bandwidth", &NodeType::nic_bandwidth, "bandwidth of one network adapter, one direction", above(0));
    d.required("power", &NodeType::power, "power of the node beside its accelerators");
  }
};

struct SwitchType {
  int ports = 64;
  Power nameplate;
  std::string source;
  static void describe(Description<SwitchType>& d) {
    d.object("switch", "A network switch.");
    d.optional("ports", &SwitchType::ports, "ports of one switch", between(1, 4096));
    d.required("nameplate", &SwitchType::nameplate, "nameplate power of one switch");
    d.optional("source", &SwitchType::source, "where the numbers come from");
  }
};

// Noise of the hosts of a cluster: a property of its machines, not of a job (hints 8 to 12).
struct HostNoise {
  double host_sigma = 0;    // relative standard deviation of the host time of one second of issue work
  double device_sigma = 0;  // the same of one second of device work
  double stalls_per_hour = 0;
  Time stall_mean;
  std::string source;
  static void describe(Description<HostNoise>& d) {
    d.object("host_noise", "Random slow-downs of the nodes of a cluster.");
    d.optional("host_sigma", &HostNoise::host_sigma,
               "standard deviation of the time of one second of host (launch) work, in seconds; over t seconds it "
               "grows with the square root of t",
               between(0, 10));
    d.optional("device_sigma", &HostNoise::device_sigma, "the same for one second of device work", between(0, 10));
    d.optional("stalls_per_hour", &HostNoise::stalls_per_hour, "rare stalls per node and hour", between(0, 1e6));
    d.optional("stall_mean", &HostNoise::stall_mean, "mean length of a stall (exponentially distributed)");
    d.optional("source", &HostNoise::source, "where the numbers come from");
  }
};

struct Hosts {
  double launch_speed = 1;    // relative to the hosts the software profile was measured on
  double device_speed = 1;    // sustained accelerator clock against that of the same reference
  HostNoise noise;
  std::string source;
  static void describe(Description<Hosts>& d) {
    d.object("hosts", "What is particular to the machines of this cluster.");
    d.optional("launch_speed", &Hosts::launch_speed,
               "speed of issuing kernels, relative to the hosts of the software profile", above(0));
    d.optional("device_speed", &Hosts::device_speed,
               "accelerator speed under load, relative to the systems of the software profile (firmware, clock and "
               "cooling settings)",
               above(0));
    d.optional("noise", &Hosts::noise, "random slow-downs");
    d.optional("source", &Hosts::source, "where the numbers come from");
  }
};

struct Storage {
  Bandwidth read_bandwidth;
  Bandwidth write_bandwidth;
  std::string network = "ethernet";
  std::string source;
  static void describe(Description<Storage>& d) {
    d.object("storage", "Storage as the whole cluster shares it.");
    d.required("read_bandwidth", &Storage::read_bandwidth, "peak read bandwidth of the cluster", above(0));
    d.required("write_bandwidth", &Storage::write_bandwidth, "peak write bandwidth of the cluster", above(0));
    d.optional("network", &Storage::network, "the network it is reached over");
    d.optional("source", &Storage::source, "where the numbers come from");
  }
};

// Where two adapters of a node go: the rule that maps NIC k of a node to one of the leaves of its unit.
enum class NicWiring {
  halves,  // the first half of the NICs to the first leaf, and so on: nics / leaves NICs to each
  rails,   // NIC k to leaf k modulo leaves: rail-optimized when leaves == NICs
  all      // every NIC to the one leaf of its unit, filled in order
};
template <>
struct Choices<NicWiring> {
  static std::vector<std::pair<std::string, NicWiring>> table() {
    return {{"halves", NicWiring::halves}, {"rails", NicWiring::rails}, {"all", NicWiring::all}};
  }
};

enum class RoutingPolicy { adaptive, ecmp };
template <>
struct Choices<RoutingPolicy> {
  static std::vector<std::pair<std::string, RoutingPolicy>> table() {
    return {{"adaptive", RoutingPolicy::adaptive}, {"ecmp", RoutingPolicy::ecmp}};
  }
};

// The training fabric between nodes. Kinds other than scalable units are added beside it.
struct FabricType {
  std::string kind = "scalable_units";
  int units = 1;
  int nodes_per_unit = 6;
  int leaves_per_unit = 2;
  int spines = 16;
  int uplinks_per_leaf = 16;
  Bandwidth uplink_bandwidth;
  NicWiring wiring = NicWiring::halves;
  RoutingPolicy routing = RoutingPolicy::adaptive;
  SwitchType switches;
  double link_efficiency = 1;  // payload over line rate of the fabric's links
  Time hop_latency = seconds(0.6e-6);
  std::string source;
  static void describe(Description<FabricType>& d) {
    d.object("fabric", "The training network between the nodes.");
    d.optional("kind", &FabricType::kind, "topology generator");
    d.optional("units", &FabricType::units, "number of scalable units", between(1, 100000));
    d.optional("nodes_per_unit", &FabricType::nodes_per_unit, "nodes in a scalable unit", between(1, 100000));
    d.optional("leaves_per_unit", &FabricType::leaves_per_unit, "leaf switches in a scalable unit", between(0, 4096));
    d.optional("spines", &FabricType::spines, "spine switches of the cluster", between(0, 100000));
    d.optional("uplinks_per_leaf", &FabricType::uplinks_per_leaf,
               "cables from a leaf to the spines, dealt out evenly", between(0, 4096));
    d.optional("uplink_bandwidth", &FabricType::uplink_bandwidth, "bandwidth of one leaf-spine cable, one direction");
    d.optional("wiring", &FabricType::wiring, "how the NICs of a node are spread over the leaves of its unit");
    d.optional("routing", &FabricType::routing, "adaptive spraying over equal-cost paths, or ECMP hashing");
    d.required("switch", &FabricType::switches, "the switch type");
    d.optional("link_efficiency", &FabricType::link_efficiency, "payload bandwidth over line rate", between(0.01, 1));
    d.optional("hop_latency", &FabricType::hop_latency, "latency of one cable and the switch or adapter behind it");
    d.optional("source", &FabricType::source, "where the numbers come from");
  }
};

// Direct current from the grid to the nodes.
struct PowerDelivery {
  Voltage bus_voltage = volts(54);
  int nodes_per_bus = 2;
  int shelves_per_bus = 2;
  int rectifiers_per_shelf = 4;
  RectifierType rectifier;
  static void describe(Description<PowerDelivery>& d) {
    d.object("power_delivery", "From AC to the nodes: buses, power shelves, rectifiers.");
    d.optional("bus_voltage", &PowerDelivery::bus_voltage, "voltage of the DC bus", above(0));
    d.optional("nodes_per_bus", &PowerDelivery::nodes_per_bus, "nodes fed by one bus", between(1, 4096));
    d.optional("shelves_per_bus", &PowerDelivery::shelves_per_bus, "power shelves that feed one bus", between(1, 4096));
    d.optional("rectifiers_per_shelf", &PowerDelivery::rectifiers_per_shelf, "rectifiers in a shelf", between(1, 256));
    d.required("rectifier", &PowerDelivery::rectifier, "rectifier type");
  }
};

struct Cluster {
  std::string name;
  std::string description;
  NodeType node;
  FabricType fabric;
  PowerDelivery power_delivery;
  Storage storage;
  Hosts hosts;
  int nodes() const { return fabric.units * fabric.nodes_per_unit; }
  static void describe(Description<Cluster>& d) {
    d.object("cluster", "A cluster: nodes, wiring, power delivery, storage.");
    d.required("name", &Cluster::name, "name of the cluster");
    d.optional("description", &Cluster::description, "what it is");
    d.required("node", &Cluster::node, "the compute node");
    d.required("fabric", &Cluster::fabric, "the training network");
    d.required("power_delivery", &Cluster::power_delivery, "from AC to the nodes");
    d.required("storage", &Cluster::storage, "storage");
    d.optional("hosts", &Cluster::hosts, "what is particular to the machines of this cluster");
  }
};

}  // namespace tw
