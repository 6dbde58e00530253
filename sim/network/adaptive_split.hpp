// Adaptive routing taken to its end: what goes between two switches is split over its shortest paths so that the
// fullest cable is as empty as it can be.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/routing.hpp"

namespace tw::network {

// Bytes that go between switches: destination -> (source, bytes).
using SwitchDemands = std::map<int, std::vector<std::pair<int, double>>>;

// The other splits that a balance takes, for what is routed flow by flow: of what goes to a switch so many parts go by
// links of their own, the rest by the next cable's capacity.
class SplitTable {
 public:
  struct Part {
    double share = 0;
    std::unordered_map<int, std::vector<LinkShare>> next;  // switch -> links and their parts
  };
  bool empty() const { return parts_.empty(); }
  void add(int to, Part part) { parts_[to].push_back(std::move(part)); }
  // Appends what `bytes` from switch to switch put on links.
  void spray(const Fabric& fabric, Router& router, int from, int to, double bytes,
             std::vector<LinkShare>& carried) const;

 private:
  std::map<int, std::vector<Part>> parts_;  // by destination
};

struct SplitLimits {
  size_t links = 4'000'000;  // of all ways together
  double work = 2e8;         // cells of the program's table touched: 0.2 s
};

struct BalancedSplit {
  std::vector<LinkShare> changes;  // link, bytes; empty: nothing is gained
  // What is left where they may not be the best, else empty; and how many times as full as it need be the fullest cable
  // then is at most.
  std::string ended;
  double over = 1;
};

// Is it a cable from switch to switch, not to an adapter, NVLink or PCIe?
bool between_switches(const Fabric& fabric, size_t link);

// No split over shortest ways is under the mean over all cables between switches, since each byte crosses as many.
double mean_cable_s(const Fabric& fabric, const std::vector<double>& load);

// How the loads of links change when `demands`, which are part of `load` and split by the next cable's capacity there,
// are split so that the largest bytes / capacity is least. Nothing changes where an adapter or NVLink takes longer than
// any cable between switches, or every other split takes as long. The ways do not depend on capacities and the least of
// all is taken, so a cable that gets slower never makes it less (to 1e-10). A linear program over the ways to each
// destination (columns by their price, rows as links fill up). It ends early beyond its limits, and says so. `table`,
// when given, gets the splits.
BalancedSplit balanced_split(const Fabric& fabric, Router& router, const SwitchDemands& demands,
                             const std::vector<double>& load, SplitTable* table = nullptr,
                             const SplitLimits& limits = {});

}  // namespace tw::network
