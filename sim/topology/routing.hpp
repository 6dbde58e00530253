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
  const std::vector<int>& distances(int to);
  const std::vector<LinkShare>& sprayed(int from, int to);
  struct Arc {
    int to = 0, link = 0;
    double capacity = 0;
  };
  const Fabric& fabric_;
  uint64_t seed_;
  std::vector<int> first_;  // arcs of switch v: arcs_[first_[v]] .. arcs_[first_[v + 1] - 1]
  std::vector<Arc> arcs_;
  std::map<int, std::vector<int>> distances_;
  std::map<std::pair<int, int>, std::vector<LinkShare>> sprayed_;
};

}  // namespace tw
