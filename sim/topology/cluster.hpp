// The description of a cluster: what stands in topologies/*.json. build_fabric() makes the graph of it.
#pragma once

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
  SwitchPower power;
  std::string source;
  static void describe(Description<SwitchType>& d) {
    d.object("switch", "A network switch.");
    d.optional("ports", &SwitchType::ports, "ports of one switch", between(1, 4096));
    d.required("nameplate", &SwitchType::nameplate, "nameplate power of one switch");
    d.optional("power", &SwitchType::power, "what it draws in use; absent: its nameplate");
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
  double launch_speed = 1;  // relative to the hosts the software profile was measured on
  double device_speed = 1;  // sustained accelerator clock against that of the same reference
  double spawn_speed = 1;   // of starting data loaders and evaluation workers, relative to the reference cluster
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
    d.optional("spawn_speed", &Hosts::spawn_speed,
               "speed of starting processes (data loaders, evaluation workers) inside the clock, relative to the hosts "
               "of the software profile's start-up terms",
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
  Bytes capacity;            // 0: not known, nothing is refused
  Bandwidth node_bandwidth;  // of one node's storage adapters, one direction; 0: no limit of their own
  static void describe(Description<Storage>& d) {
    d.object("storage", "Storage as the whole cluster shares it.");
    d.required("read_bandwidth", &Storage::read_bandwidth, "peak read bandwidth of the cluster", above(0));
    d.required("write_bandwidth", &Storage::write_bandwidth, "peak write bandwidth of the cluster", above(0));
    d.optional("network", &Storage::network, "the network it is reached over");
    d.optional("capacity", &Storage::capacity, "what it holds; absent: anything");
    d.optional("node_bandwidth", &Storage::node_bandwidth,
               "of the storage adapters of one node, one direction; absent: no limit of their own");
    d.optional("source", &Storage::source, "where the numbers come from");
  }
};

// Where two adapters of a node go: the rule that maps NIC k of a node to one of the leaves of its unit.
enum class NicWiring {
  halves,       // the first half of the NICs to the first leaf, and so on: nics / leaves NICs to each
  rails,        // NIC k to leaf k modulo leaves: rail-optimized when leaves == NICs
  rail_blocks,  // several leaves a rail: NIC k to the leaves of rail k, which split the unit's nodes evenly
  all           // every NIC to the one leaf of its unit, filled in order
};
template <>
struct Choices<NicWiring> {
  static std::vector<std::pair<std::string, NicWiring>> table() {
    return {{"halves", NicWiring::halves},
            {"rails", NicWiring::rails},
            {"rail_blocks", NicWiring::rail_blocks},
            {"all", NicWiring::all}};
  }
};

enum class RoutingPolicy { adaptive, ecmp };
template <>
struct Choices<RoutingPolicy> {
  static std::vector<std::pair<std::string, RoutingPolicy>> table() {
    return {{"adaptive", RoutingPolicy::adaptive}, {"ecmp", RoutingPolicy::ecmp}};
  }
};

// Which leaves share a group of spines in a fat tree of three levels.
enum class SpineGrouping {
  units,  // consecutive units: a pod
  rails   // leaves of the same rail in all units: rail-optimized to the top
};
template <>
struct Choices<SpineGrouping> {
  static std::vector<std::pair<std::string, SpineGrouping>> table() {
    return {{"units", SpineGrouping::units}, {"rails", SpineGrouping::rails}};
  }
};

// A switch and a bundle of cables of an explicit graph (kind "graph").
struct ExplicitSwitch {
  std::string name;
  int tier = 1, unit = -1, ports = 0;
  static void describe(Description<ExplicitSwitch>& d) {
    d.object("explicit_switch", "A switch of an explicit graph.");
    d.required("name", &ExplicitSwitch::name, "name, unique in the cluster");
    d.optional("tier", &ExplicitSwitch::tier, "1: nodes are cabled to it, 2 and up: above", between(1, 8));
    d.optional("unit", &ExplicitSwitch::unit, "scalable unit or group it belongs to; -1: none", between(-1, 100000));
    d.optional("ports", &ExplicitSwitch::ports, "ports; 0: of the switch type", between(0, 4096));
  }
};
struct ExplicitCable {
  std::string from, to;
  int count = 1;
  Bandwidth bandwidth;
  static void describe(Description<ExplicitCable>& d) {
    d.object("explicit_cable", "Cables of an explicit graph.");
    d.required("from", &ExplicitCable::from, "a node (\"node-0\": its next free NIC) or a switch");
    d.required("to", &ExplicitCable::to, "a switch");
    d.optional("count", &ExplicitCable::count, "parallel cables", between(1, 4096));
    d.required("bandwidth", &ExplicitCable::bandwidth, "of one cable, one direction", above(0));
  }
};

// A cable that runs at another speed than its kind.
struct CableChange {
  std::string cable;
  Bandwidth bandwidth;
  static void describe(Description<CableChange>& d) {
    d.object("cable_change", "Cables that run at another speed than the rest.");
    d.required(
        "cable", &CableChange::cable,
        "\"node-3 nic 2\", \"leaf-0-A - spine-1\" (all cables between the two), or a node or switch (all of its)");
    d.required("bandwidth", &CableChange::bandwidth, "of one cable, one direction", above(0));
  }
};

// The training fabric between nodes. `kind` names a generator (fabric_kinds() in builder.hpp); each uses some keys.
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
  int spine_groups = 1;
  SpineGrouping spine_grouping = SpineGrouping::units;
  int cores = 0;
  int uplinks_per_spine = 0;
  Bandwidth core_bandwidth;         // zero: as uplink_bandwidth
  std::vector<int> dimensions;      // torus
  int switches_per_group = 4;       // dragonfly; units are its groups
  int global_links_per_switch = 1;  // dragonfly
  Bandwidth global_bandwidth;       // zero: as uplink_bandwidth
  std::vector<ExplicitSwitch> graph_switches;
  std::vector<ExplicitCable> graph_cables;
  std::vector<std::string> failed;
  std::vector<CableChange> cable_changes;
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
    d.optional("uplinks_per_leaf", &FabricType::uplinks_per_leaf, "cables from a leaf to the spines, dealt out evenly",
               between(0, 4096));
    d.optional("uplink_bandwidth", &FabricType::uplink_bandwidth, "bandwidth of one leaf-spine cable, one direction");
    d.optional("wiring", &FabricType::wiring, "how the NICs of a node are spread over the leaves of its unit");
    d.optional("routing", &FabricType::routing, "adaptive spraying over equal-cost paths, or ECMP hashing");
    d.optional("spine_groups", &FabricType::spine_groups, "groups of spines in a fat tree of three levels",
               between(1, 4096));
    d.optional("spine_grouping", &FabricType::spine_grouping, "which leaves share a group of spines");
    d.optional("cores", &FabricType::cores, "core switches above the spines; 0: two levels", between(0, 100000));
    d.optional("uplinks_per_spine", &FabricType::uplinks_per_spine, "cables from a spine to the cores",
               between(0, 4096));
    d.optional("core_bandwidth", &FabricType::core_bandwidth,
               "bandwidth of one spine-core cable, one direction; absent: as uplink_bandwidth");
    d.optional("dimensions", &FabricType::dimensions, "nodes along each dimension of a torus, such as [16, 16, 16]",
               between(1, 100000));
    d.optional("switches_per_group", &FabricType::switches_per_group, "switches of a dragonfly group (a unit)",
               between(1, 4096));
    d.optional("global_links_per_switch", &FabricType::global_links_per_switch,
               "cables of a dragonfly switch to other groups", between(0, 4096));
    d.optional("global_bandwidth", &FabricType::global_bandwidth,
               "bandwidth of one such cable, one direction; absent: as uplink_bandwidth");
    d.optional("graph_switches", &FabricType::graph_switches, "switches of an explicit graph");
    d.optional("graph_cables", &FabricType::graph_cables, "cables of an explicit graph");
    d.optional("failed", &FabricType::failed, "what is broken: switches by name, cables as in cable_changes");
    d.optional("cable_changes", &FabricType::cable_changes, "cables that run at another speed");
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
  Redundancy redundancy = Redundancy::n;  // of the rectifiers of a bus
  std::vector<PowerStage> upstream;       // from the shelves to the grid
  static void describe(Description<PowerDelivery>& d) {
    d.object("power_delivery", "From AC to the nodes: buses, power shelves, rectifiers.");
    d.optional("bus_voltage", &PowerDelivery::bus_voltage, "voltage of the DC bus", above(0));
    d.optional("nodes_per_bus", &PowerDelivery::nodes_per_bus, "nodes fed by one bus", between(1, 4096));
    d.optional("shelves_per_bus", &PowerDelivery::shelves_per_bus, "power shelves that feed one bus", between(1, 4096));
    d.optional("rectifiers_per_shelf", &PowerDelivery::rectifiers_per_shelf, "rectifiers in a shelf", between(1, 256));
    d.required("rectifier", &PowerDelivery::rectifier, "rectifier type");
    d.optional("redundancy", &PowerDelivery::redundancy,
               "what a bus must still carry its load without: n nothing, n+1 one rectifier, 2n one shelf");
    d.optional("upstream", &PowerDelivery::upstream, "stages from the shelves to the grid, lowest first");
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
  int nodes() const;  // as its kind of fabric counts them
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
