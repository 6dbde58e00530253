// Loads that name one link for all that carry in the same proportion.
#include <catch2/catch.hpp>

#include "network/collective.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;

namespace {

// Three levels: 8 units of 8 nodes in two groups.
Cluster three_levels() {
  Cluster c;
  c.name = "three levels";
  c.node.gpus = c.node.nics = 8;
  c.node.nic_bandwidth = bytes_per_second(50e9);
  c.node.nvlink.bandwidth = bytes_per_second(450e9);
  FabricType& f = c.fabric;
  f.kind = "fat_tree";
  f.wiring = NicWiring::rails;
  f.units = 8;
  f.nodes_per_unit = 8;
  f.leaves_per_unit = 8;
  f.uplinks_per_leaf = 4;
  f.uplink_bandwidth = bytes_per_second(50e9);
  f.switches.ports = 64;
  f.spine_groups = 2;
  f.spines = 8;
  f.uplinks_per_spine = 8;
  f.cores = 4;
  return c;
}

}  // namespace

TEST_CASE("the narrowest link of those that carry in proportion stands for all of them") {
  const Fabric fabric = build_fabric(three_levels());
  CollectiveOptions one;
  one.narrowest_links = true;
  Collectives whole(fabric), narrow(fabric, one);
  REQUIRE(whole.router().tree() != nullptr);
  const std::vector<Rank> all = ranks_of(fabric, place_packed(fabric, fabric.node_count));
  std::vector<std::vector<Rank>> pairs;  // a stage to the next, in the other half of the cluster
  for (int n = 0; n < 4; ++n)
    for (int g = 0; g < 8; ++g) pairs.push_back({{n, g}, {n + 32, g}});
  const auto check = [&](Operation op, const std::vector<std::vector<Rank>>& groups) {
    const CollectiveCost a = whole.cost(op, groups, 1e9), b = narrow.cost(op, groups, 1e9);
    CHECK(b.algorithm == a.algorithm);
    CHECK(b.time_s == Approx(a.time_s).epsilon(1e-12));
    CHECK(b.bottleneck == a.bottleneck);
    CHECK(b.load.uses.size() < a.load.uses.size());
    std::vector<double> loads(static_cast<size_t>(fabric.link_count()), 0);
    for (const LinkUse& use : b.load.uses) loads[static_cast<size_t>(use.link)] = use.weight;
    narrow.router().tree()->widen(loads);
    for (const LinkUse& use : a.load.uses) {
      CHECK(loads[static_cast<size_t>(use.link)] == Approx(use.weight).epsilon(1e-12));
      loads[static_cast<size_t>(use.link)] = 0;
    }
    for (const double rest : loads) CHECK(rest == 0);
  };
  check(Operation::all_reduce, {all});
  check(Operation::all_to_all, {all});
  check(Operation::send_recv, pairs);
}
