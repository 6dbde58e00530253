// The description of a cluster: what stands in topologies/*.json. build_fabric() makes the graph of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "hardware/accelerator.hpp"
#include "hardware/nvlink.hpp"
#include "hardware/pcie.hpp"
#include "hardware/power_profile.hpp"

namespace tw {

// Memory of a node's processors, where tensors wait that an accelerator has no room for. 0: not known.
struct HostMemory {
  Bytes capacity;
  Bandwidth bandwidth;              // datasheet, of all processors
  Bandwidth copy_bandwidth;         // payload to or from one accelerator, one direction; 0: as its host_bandwidth
  double update_efficiency = 0.43;  // share of `bandwidth` at which the processors update optimizer states
  std::string source;
  static void describe(Description<HostMemory>& d);
};

// One compute node.
struct NodeType {
  Accelerator accelerator;
  int gpus = 8;
  NvlinkDomain nvlink;
  int nics = 8;
  Bandwidth nic_bandwidth;  // one direction
  PcieTree pcie;
  NodePower power;
  HostMemory host_memory;
  // Bytes a second that a copy between host memory and one accelerator moves in one direction while all of them copy;
  // 0: not known.
  double host_copy_Bps() const;
  static void describe(Description<NodeType>& d);
};

struct SwitchType {
  int ports = 64;
  Power nameplate;
  SwitchPower power;
  std::string source;
  static void describe(Description<SwitchType>& d);
};

// Noise of the hosts of a cluster: a property of its machines, not of a job (hints 8 to 12).
struct HostNoise {
  double host_sigma = 0;    // relative standard deviation of the host time of one second of issue work
  double device_sigma = 0;  // the same of one second of device work
  double stalls_per_hour = 0;
  Time stall_mean;
  Time correlation = seconds(0.25);  // a forward or backward pass of the jobs that noise was fitted on
  std::string source;
  static void describe(Description<HostNoise>& d);
};

struct Hosts {
  double launch_speed = 1;  // relative to the hosts the software profile was measured on
  double device_speed = 1;  // sustained accelerator clock against that of the same reference
  double spawn_speed = 1;   // of starting data loaders and evaluation workers, relative to the reference cluster
  HostNoise noise;
  std::string source;
  static void describe(Description<Hosts>& d);
};

struct Storage {
  Bandwidth read_bandwidth;
  Bandwidth write_bandwidth;
  std::string network = "ethernet";
  std::string source;
  Bytes capacity;            // 0: not known, nothing is refused
  Bandwidth node_bandwidth;  // of one node's storage adapters, one direction; 0: no limit of their own
  static void describe(Description<Storage>& d);
};

// Where two adapters of a node go: the rule that maps NIC k of a node to one of the leaves of its unit.
enum class NicWiring {
  halves,       // the first half of the NICs to the first leaf, and so on: nics / leaves NICs to each
  rails,        // NIC k to leaf k modulo leaves: rail-optimized when leaves == NICs
  rail_blocks,  // several leaves a rail: NIC k to the leaves of rail k, which split the unit's nodes evenly
  all           // every NIC to the one leaf of its unit, filled in order
};

enum class RoutingPolicy { adaptive, ecmp };

// Which leaves share a group of spines in a fat tree of three levels.
enum class SpineGrouping {
  units,  // consecutive units: a pod
  rails   // leaves of the same rail in all units: rail-optimized to the top
};

// How the switches' power is apportioned to jobs; power/network_rule.hpp says what each means.
enum class NetworkRule { as_published, as_stated, whole_switches, by_load };

// A switch and a bundle of cables of an explicit graph (kind "graph").
struct ExplicitSwitch {
  std::string name;
  int tier = 1, unit = -1, ports = 0;
  static void describe(Description<ExplicitSwitch>& d);
};
struct ExplicitCable {
  std::string from, to;
  int count = 1;
  Bandwidth bandwidth;
  static void describe(Description<ExplicitCable>& d);
};

// A cable that runs at another speed than its kind.
struct CableChange {
  std::string cable;
  Bandwidth bandwidth;
  static void describe(Description<CableChange>& d);
};

struct FabricKind;

// The training fabric between nodes: a union that `kind` tells apart. Each kind reads keys of its own (fabric_kind.hpp)
// and refuses those of others.
struct FabricType {
  std::string kind = "scalable_units";
  const std::vector<FabricKind>* kinds = nullptr;  // among which `kind` is looked for; null: fabric_kinds()
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
  std::vector<int> twists;          // torus: of the wrap-around of each dimension but the last, along the next one
  int local_links = 1;              // dragonfly: parallel cables between two switches of a group
  int switches_per_group = 4;       // dragonfly; units are its groups
  int global_links_per_switch = 1;  // dragonfly
  Bandwidth global_bandwidth;       // zero: as uplink_bandwidth
  std::vector<ExplicitSwitch> graph_switches;
  std::vector<ExplicitCable> graph_cables;
  std::vector<std::string> failed;
  std::vector<CableChange> cable_changes;
  SwitchType switches;
  NetworkRule network_rule = NetworkRule::as_stated;
  double link_efficiency = 1;  // payload over line rate of the fabric's links
  Time hop_latency = seconds(0.6e-6);
  std::string source;
  static void describe(Description<FabricType>& d);
};

// Direct current from the grid to the nodes.
struct PowerDelivery {
  Voltage bus_voltage = volts(54);
  int nodes_per_bus = 2;
  int shelves_per_bus = 2;
  int rectifiers_per_shelf = 4;
  RectifierType rectifier;
  Redundancy redundancy = Redundancy::n;  // of the rectifiers of a bus
  std::optional<BatteryProfile> battery;  // of a bus
  std::vector<PowerStage> upstream;       // from the shelves to the grid
  static void describe(Description<PowerDelivery>& d);
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
  static void describe(Description<Cluster>& d);
};

}  // namespace tw
