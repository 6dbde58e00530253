// Named rules that apportion switch power to a job. Each is computed from the topology: which switches the job's nodes
// are cabled to, and by how many ports.
//
//   as_published    every leaf the job touches counts whole; every spine counts (uplinks per leaf + NICs per leaf and
//                   node * units) / ports. Reproduces the switch power of the published reference runs (10 and 37
//                   switches on 8 and 64 nodes); why it has this form is not documented anywhere.
//   as_stated       the text of the same publication: a leaf counts (uplinks + NIC cables of the job) / ports, a spine
//                   (cables to leaves of the job) / ports.
//   whole_switches  every switch the job touches counts whole: the upper bound.
//   by_load         ports of the job, weighted by how busy the job keeps them; needs traffic.
//
// A job on one node uses no fabric: 0 by every rule. A rule that has no meaning on a topology is null.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw {

class Fabric;

enum class NetworkRule { as_published, as_stated, whole_switches, by_load };
template <>
struct Choices<NetworkRule> {
  static std::vector<std::pair<std::string, NetworkRule>> table();
};

// How a job uses one switch.
struct SwitchUse {
  int vertex = 0;  // of the fabric
  int tier = 1;    // 1 leaf, 2 spine, 3 core
  int unit = -1;
  int ports = 0;        // of the switch
  int job_ports = 0;    // a leaf: all its uplinks and the job's NIC cables; a spine: cables from leaves of the job
  double job_load = 0;  // mean utilisation of those ports by the job, 0 to 1; 0 without traffic
};

// Switches that the job touches: leaves of its nodes and, when it has more than one leaf, every switch above them.
// `cable_Bps`: mean traffic of the job over each cable, both directions together; empty = unknown.
std::vector<SwitchUse> switch_use(const Fabric& fabric, const std::vector<int>& nodes,
                                  const std::vector<double>& cable_Bps = {});

// Each switch of switch_use() with the part of it that the rule charges to the job: 1 = the whole switch.
struct SwitchShare {
  int vertex = 0;
  double share = 0;
  double watts = 0;  // share * what the switch draws
};
// What a switch of the fabric draws by its type's power model; `load` is the mean utilisation of its cabled ports.
double switch_watts(const Fabric& fabric, int vertex, double load = 0);

std::optional<std::vector<SwitchShare>> switch_shares(NetworkRule rule, const Fabric& fabric,
                                                      const std::vector<int>& nodes,
                                                      const std::vector<double>& cable_Bps = {});

// Watts of switches that the rule charges to the job on `nodes` (indices of the cluster's nodes).
std::optional<double> network_power_w(NetworkRule rule, const Fabric& fabric, const std::vector<int>& nodes,
                                      const std::vector<double>& cable_Bps = {});

// The same by all rules, by name.
std::map<std::string, std::optional<double>> network_power_by_rule(const Fabric& fabric, const std::vector<int>& nodes,
                                                                   const std::vector<double>& cable_Bps = {});

// Several jobs at once: the nameplate power of all switches that some job touches, shared out in proportion to what the
// rule charges to each job alone. The shares add up to 1. Empty when the rule is undefined or no job uses the fabric.
std::vector<double> network_shares(NetworkRule rule, const Fabric& fabric, const std::vector<std::vector<int>>& jobs);

}  // namespace tw
