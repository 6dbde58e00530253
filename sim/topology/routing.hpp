// Minimal routing on the switch graph: equal-cost sets towards every switch, used by adaptive spraying (a flow is split
// over them by capacity) or by ECMP (a seeded hash picks one).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "topology/fabric.hpp"
#include "topology/torus_shifts.hpp"
#include "topology/tree_levels.hpp"

namespace tw {

struct LinkShare {
  int link = 0;
  double share = 1;  // of the flow's bytes
};

// Beyond this number of pairs of switches adaptive routing is left at what each switch sees of its next cables.
constexpr size_t kMostBalanced = 1'000'000;

class Router {
 public:
  explicit Router(const Fabric& fabric, uint64_t seed = 1);

  // Cables from switch to switch, -1 when there is no path over live links.
  int distance(int from_switch, int to_switch);

  // One search for all of these switches, when their distances to `to` are going to be asked for.
  void search_many(const std::vector<int>& from, int to);
  // One search from `to` for all switches.
  void search_whole(int to) {
    if (tree() == nullptr && !on_torus(to)) search_from(to);
  }

  // Live links to other switches; the switches at their other ends, in order.
  std::span<const SwitchArcs::Arc> arcs(int sw) const {
    const auto first = static_cast<size_t>(arcs_.first[static_cast<size_t>(sw)]);
    return {arcs_.arcs.data() + first, static_cast<size_t>(arcs_.first[static_cast<size_t>(sw) + 1]) - first};
  }
  std::vector<int> neighbours(int sw) const;

  // Number of the plane of a live switch: switches that live cables join, however far.
  int plane(int sw);

  // Links next on a shortest path from `at` to `to`.
  std::vector<int> next_links(int at, int to);

  // Links between two NICs, first and last cable included, with the share of the bytes on each. Under ECMP one path,
  // picked by the hash of (seed, flow); under adaptive routing all equal-cost paths. Empty when node a == node b.
  // Throws InputError naming the nodes when there is no live path.
  std::vector<LinkShare> route(int node_a, int nic_a, int node_b, int nic_b);

  // Cables crossed by route().
  int hops(int node_a, int nic_a, int node_b, int nic_b);

  // Adds to loads[link] what flows make that enter at switches (with how many bytes) and leave at `to`,
  // split over equal-cost links by capacity whatever the policy: for patterns with very many flows.
  void spread(int to, const std::vector<std::pair<int, double>>& entering, std::vector<double>& loads);

  // The same for one flow of `bytes` from switch to switch: appends the links and what they carry.
  void spray(int from, int to, double bytes, std::vector<LinkShare>& carried);

  // Its levels, when the fabric is a healthy tree: patterns are then pushed through it at once.
  const TreeLevels* tree() const { return tree_ && tree_->even() ? &*tree_ : nullptr; }
  // The same of a tree with faults: for pairs of leaves that TreeLevels::even() knows.
  const TreeLevels* levels() const { return tree_ ? &*tree_ : nullptr; }

  // What spread() makes of an exchange of all with all where most switches are alike: on a torus.
  std::optional<TorusShifts::Exchange> exchange(const std::vector<double>& weight, double share) const {
    if (!torus_) return std::nullopt;
    return torus_->exchange(arcs_, weight, share, static_cast<size_t>(fabric_.link_count()));
  }

  // Whole, and the same seen from every switch?
  bool same_everywhere() const { return torus_ && torus_->whole(); }

  // Drops remembered distances, which grow with the pairs asked for.
  void forget() { searches_.clear(); }

  RoutingPolicy policy = RoutingPolicy::adaptive;
  int queue_pairs = 1;  // flows that a connection is hashed as under ECMP

 private:
  // Distances to one switch, as far as they were asked for: a whole search for each of n leaves of a fabric of n cables
  // would grow with the square.
  struct Search {
    std::unordered_map<int, int> known;  // of single searches
    std::vector<int> all;                // by vertex, of the whole search; -1 = not reachable
    std::vector<int> order;              // of the whole search: from the nearest to the farthest
    int asked = 0;                       // searches for single switches
    int at(int v) const {
      if (!all.empty()) return all[static_cast<size_t>(v)];
      const auto it = known.find(v);
      return it == known.end() ? -1 : it->second;
    }
  };
  using Arc = SwitchArcs::Arc;
  // Distances to `to`, right for `from` and all switches on shortest paths between the two.
  const Search& search(int to, int from);
  const Search& search_from(int to);
  // Are distances to it those of a whole torus?
  bool on_torus(int to) const { return torus_ && torus_->reached(to); }
  // Of several the nearest to `to`.
  void search_between(const std::vector<int>& from, int to, std::unordered_map<int, int>& distance);
  // Calls `take` with each arc on a shortest path from `at` to `to`.
  template <class F>
  void each_next(int at, int to, const F& take);
  // Calls `take` with each link on shortest paths from switches, all as far from `to`, and what it carries of theirs.
  template <class F>
  void walk(std::vector<std::pair<int, double>> from, int to, const F& take);
  const Fabric& fabric_;
  uint64_t seed_;
  SwitchArcs arcs_;
  std::optional<TreeLevels> tree_;
  std::optional<TorusShifts> torus_;
  std::map<int, Search> searches_;
  std::vector<int> ahead_, behind_;  // of search_between(): by vertex, all -1 between calls
  std::vector<int> planes_;          // of plane(): by vertex, once asked for
  std::vector<double> arriving_;     // by vertex, all 0 between calls
};

}  // namespace tw
