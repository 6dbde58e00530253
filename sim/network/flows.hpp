// What each algorithm sends: messages between ranks as shares of the payload, and the rounds that follow one another.
#pragma once

#include <vector>

#include "network/collective.hpp"

namespace tw::network {

// `share` of the full buffer goes from one rank to another over the whole operation: over NVLink when they share a
// domain, else through the adapters beside the two ranks.
struct Flow {
  int from = 0, to = 0;  // indices into the ranks
  double share = 1;
};

// Messages that must follow one another, for the latency.
struct Rounds {
  double nvlink = 0;   // messages inside a domain on the longest chain
  double network = 0;  // messages between domains on it
  bool tree = false;   // latencies of the tree algorithms hold
  double nvls = 0;     // multicast phases
  double sharp = 0;    // reductions in the switches
};

struct FlowPlan {
  std::vector<Flow> flows;
  Rounds rounds;
  bool all_pairs = false;  // every rank sends 1/n of its buffer to every other: not listed, there may be millions
  double sharp_share = 0;  // of the buffer: what each rank's adapter sends up to be reduced, and gets back
  double nvls_out = 0, nvls_in = 0;  // of the buffer: on each rank's NVLink by multicast and in-switch reduction
};

// Ranks of a group by the domain they stand in, in order of first appearance.
std::vector<std::vector<int>> by_domain(const Fabric& fabric, const std::vector<Rank>& ranks);

// The adapters that serve a rank: those beside it, or, where they have failed, others of its node that live.
std::vector<int> adapters_of(const Fabric& fabric, const Rank& rank);

// Is the group one rank for every node of a torus, in order?
bool covers_torus(const Fabric& fabric, const std::vector<Rank>& ranks);

// Throws InputError when the algorithm does not exist for the operation.
FlowPlan plan_flows(const Fabric& fabric, Operation operation, Algorithm algorithm, const std::vector<Rank>& ranks);

// Parent of each of `count` members in the first or second of the two trees of Sanders, Speck and Traeff (2009): a
// member that passes on in one is a leaf of the other. -1 for the root.
std::vector<int> tree_parents(int count, bool second);

}  // namespace tw::network
