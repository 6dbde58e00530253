// Named rules that apportion switch power to jobs. Each is computed from the topology: which switches a job's traffic
// can reach, and by how many ports.
//
//   as_published    every leaf the job reaches counts whole; every spine counts (uplinks per leaf + NICs per leaf and
//                   node * units) / ports. Reproduces the switch power of the published reference runs (10 and 37
//                   switches on 8 and 64 nodes); why it has this form is not documented anywhere. Defined for scalable
//                   units of two levels only.
//   as_stated       the text of the same publication, for any fabric: NIC cables of the job, and cables between two
//                   switches that it reaches, over the switch's ports.
//   whole_switches  every switch the job reaches counts whole: the upper bound for a job whose neighbours are not
//   known. by_load         the ports of as_stated, weighted by how busy the job keeps them.
//
// Every rule is additive. Jobs that are known to share a switch share it: cables between switches by the NIC cables
// that the jobs have at their ends, whole switches by ports; what they pay together is at most the switch. Free ports
// are the operator's while nodes are free. When the jobs hold every node there is nobody else, so every switch that one
// of them reaches is paid whole, in proportion to what the rule charges. A job pays for no switch that its traffic
// cannot reach: inside one node or NVLink domain none at all. Switches that have failed draw nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace tw {

class Fabric;
template <class T>
class Outputs;  // core/outputs.hpp

// False for as_published on fabrics that it says nothing about.
bool rule_defined(NetworkRule rule, const FabricType& type);

// A job as the rules see it. `cable_Bps`: its mean traffic over each cable, both directions together; empty = unknown.
struct NetworkJob {
  std::vector<int> nodes;  // of the cluster
  std::vector<double> cable_Bps;
};

// Vertices of the switches on shortest live ways between adapters of one number (rails) of the job's nodes, and of
// those that its known traffic passes. Ascending.
std::vector<int> switches_reached(const Fabric& fabric, const NetworkJob& job);

// The part of one switch that the rule charges to a job: 1 = the whole switch.
struct SwitchShare {
  int vertex = 0;
  double share = 0;
  double watts = 0;  // share * what the switch draws
  static void describe(Outputs<SwitchShare>& d);
};
// What a switch of the fabric draws by its type's power model; `load` is the mean utilisation of its cabled ports.
double switch_watts(const Fabric& fabric, int vertex, double load = 0);

// Shares of all jobs of a cluster, job by job, by vertex. Absent where the rule is undefined: as_published off scalable
// units, by_load without the traffic of a job that reaches a switch.
std::optional<std::vector<std::vector<SwitchShare>>> apportion(NetworkRule rule, const Fabric& fabric,
                                                               const std::vector<NetworkJob>& jobs);

double network_power_w(const Fabric& fabric, const std::vector<SwitchShare>& shares);

// Watts charged to the first of the jobs; the others are its neighbours.
std::optional<double> network_power_w(NetworkRule rule, const Fabric& fabric, const std::vector<NetworkJob>& jobs);

}  // namespace tw
