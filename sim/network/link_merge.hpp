// Fewer links, same result: before a run, links that cannot change any rate are left out.
#pragma once

#include <vector>

#include "network/engine.hpp"

namespace tw::network {

struct MergedUse {
  int link = 0;  // index into MergedNetwork::capacity
  int multiplicity = 1;
};

// Payload is counted in bytes on the class's own bottleneck link, so that two transfers that meet on a link share it
// equally whatever their algorithms. Alone, a class runs at `alone_rate`.
struct MergedClass {
  double unit = 1;        // bottleneck bytes for each payload byte; 0: the class loads no link
  double alone_rate = 0;  // bottleneck bytes per second when nobody else is there
  double latency_s = 0;
  std::vector<MergedUse> shared;
};

struct MergedNetwork {
  std::vector<double> capacity;  // of the links that are kept
  std::vector<MergedClass> classes;
  int links_before = 0;
};

// A link is left out when another constraint implies it (all its users load the other at least as much, relative to
// capacity): the set of possible rates, and so the max-min fair one, stays the same. Links of a single class are
// implied by the class's own rate alone. Throws SimulationError for a class over a link that does not exist or has no
// capacity.
MergedNetwork merge_links(const std::vector<Link>& links, const std::vector<LoadClass>& classes);

// Smallest whole numbers in the proportion of `weights`, at most `most`: exact where the weights are in the ratio of
// small whole numbers, else rounded.
std::vector<int> whole_proportions(const std::vector<double>& weights, int most);

// Time of `bytes` when nobody else is there.
double alone_s(const std::vector<Link>& links, const LoadClass& load_class, double bytes);

}  // namespace tw::network
