// Minimal routing on the switch graph: equal-cost sets towards every switch, used by adaptive spraying (a flow is split
// over them by capacity) or by ECMP (a seeded hash picks one).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "topology/fabric.hpp"

namespace tw {

struct LinkShare {
  int link = 0;
  double share = 1;  // of the flow's bytes
};

class Router {
 public:
  explicit Router(const Fabric& fabric, uint64_t seed = 1);

  // Cables from switch to switch, -1 when there is no path over live links.
  int distance(int from_switch, int to_switch);

  // One search from `to` for all switches, when many distances to it are going to be asked for.
  void search_whole(int to) { distances(to, -1); }

  // Links next on a shortest path from `at` to `to`.
  std::vector<int> next_links(int at, int to);

  // Links between two NICs, first and last cable included, with the share of the bytes on each. Under ECMP one path,
  // picked by the hash of (seed, flow); under adaptive routing all equal-cost paths. Empty when node a == node b.
  // Throws SimulationError naming the nodes when there is no live path.
  std::vector<LinkShare> route(int node_a, int nic_a, int node_b, int nic_b);

  // Cables crossed by route().
  int hops(int node_a, int nic_a, int node_b, int nic_b);

  // Adds to loads[link] what flows make that enter at switches (entering[v] bytes) and leave at `to`, split over
  // equal-cost links by capacity whatever the policy: for patterns with very many flows.
  void spread(int to, const std::vector<double>& entering, std::vector<double>& loads);

  // Drops remembered distances and routes, which grow with the pairs asked for.
  void forget() {
    distances_.clear();
    sprayed_.clear();
  }

  RoutingPolicy policy = RoutingPolicy::adaptive;

 private:
  // Distances to one switch, as far as they were asked for: a whole search for each of n leaves of a fabric of n cables
  // would grow with the square.
  struct Search {
    std::vector<int> distance;  // by vertex; -1 = not known, or not reachable
    int asked = 0;              // searches for single switches
    bool complete = false;
  };
  // Distances to `to`, right for `from` and all switches on shortest paths between the two; from < 0: for all switches.
  const std::vector<int>& distances(int to, int from);
  void search_all(int to, std::vector<int>& distance) const;
  void search_between(int from, int to, std::vector<int>& distance);
  const std::vector<LinkShare>& sprayed(int from, int to);
  struct Arc {
    int to = 0, link = 0;
    double capacity = 0;
  };
  const Fabric& fabric_;
  uint64_t seed_;
  std::vector<int> first_;  // arcs of switch v: arcs_[first_[v]] .. arcs_[first_[v + 1] - 1]
  std::vector<Arc> arcs_;
  std::map<int, Search> distances_;
  std::vector<int> ahead_, behind_;  // of search_between(): by vertex, all -1 between calls
  std::map<std::pair<int, int>, std::vector<LinkShare>> sprayed_;
};

}  // namespace tw
