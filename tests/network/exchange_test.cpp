// An all-to-all, whose flows are summed by switch, by tree and by the shifts of a torus, against its single flows.
#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "network/collective.hpp"
#include "network/link_loads.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::reference_cluster;

namespace {

// All links are loaded as by the flows from each rank to each other; the same cables are crossed in the mean. Both
// where adaptive routing is balanced and, with as few pairs as here, where it is not.
void check_exchange(const Fabric& f, const std::vector<Rank>& ranks, const std::string& what,
                    size_t balanced = kMostBalanced) {
  const Group group(f, ranks);
  Router router(f), other(f);
  LinkLoads at_once(f, router, false, 1, balanced), one_by_one(f, other, false, 1, balanced);
  FlowPlan clique, flows;
  clique.stages.emplace_back();
  clique.stages.front().cliques.push_back({{}, 0.5});
  flows.stages.emplace_back();
  for (int a = 0; a < group.n(); ++a) {
    clique.stages.front().cliques.front().members.push_back(a);
    for (int b = 0; b < group.n(); ++b)
      if (a != b) flows.stages.front().flows.push_back({a, b, 0.5});
  }
  at_once.add(group, clique, {});
  one_by_one.add(group, flows, {});
  const LinkLoads::Taken x = at_once.take(), y = one_by_one.take();
  INFO(what << (balanced == 0 ? ", not balanced" : ""));
  std::vector<double> loads(static_cast<size_t>(f.link_count()), 0);
  for (const LinkUse& use : x.uses) loads[static_cast<size_t>(use.link)] = use.weight;
  for (const LinkUse& use : y.uses) {
    INFO(f.link_name(use.link));
    REQUIRE(loads[static_cast<size_t>(use.link)] == Approx(use.weight).epsilon(1e-9).margin(1e-12));
    loads[static_cast<size_t>(use.link)] = 0;
  }
  for (const double load : loads) REQUIRE(load <= 1e-9);
  CHECK(x.hops == Approx(y.hops).epsilon(1e-9));
  if (balanced > 0) check_exchange(f, ranks, what, 0);
}

Cluster torus_of(const std::vector<int>& dimensions, const std::vector<int>& twists = {}) {
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 2;
  c.fabric.kind = "torus";
  c.fabric.dimensions = dimensions;
  c.fabric.twists = twists;
  return c;
}

}  // namespace

TEST_CASE("an all-to-all on a torus loads links as its single flows do") {
  for (const auto& [dimensions, twists] :
       std::vector<std::pair<std::vector<int>, std::vector<int>>>{{{4, 4}, {}},
                                                                  {{2, 3, 4}, {}},
                                                                  {{5, 1, 3}, {}},
                                                                  {{2, 4}, {2}},
                                                                  {{4, 8}, {4}},
                                                                  {{2, 2, 4}, {1, 2}},
                                                                  {{9}, {}}}) {
    Cluster c = torus_of(dimensions, twists);
    const Fabric whole = build_fabric(c);
    const int nodes = whole.node_count;
    check_exchange(whole, ranks_of(whole, place_packed(whole, nodes)), "all nodes");
    check_exchange(whole, ranks_of(whole, place_packed(whole, nodes / 2)), "half");
    check_exchange(whole, ranks_of(whole, {0, 1, nodes - 1}), "three");
    std::vector<Rank> uneven = ranks_of(whole, place_packed(whole, nodes));
    uneven.erase(uneven.begin() + 3);
    check_exchange(whole, uneven, "a rank less");
    c.node.nvlink.nodes = nodes % 2 == 0 ? 2 : 1;
    const Fabric paired = build_fabric(c);
    check_exchange(paired, ranks_of(paired, place_packed(paired, nodes)), "domains of two nodes");
    c.node.nvlink.nodes = 1;
    c.fabric.failed = {"router-0 - router-1"};
    const Fabric broken = build_fabric(c);
    check_exchange(broken, ranks_of(broken, place_packed(broken, nodes)), "a failed cable");
    c.fabric.failed.clear();
    c.fabric.cable_changes = {{"router-0 - router-1", bytes_per_second(5e9)}};
    const Fabric slow = build_fabric(c);
    check_exchange(slow, ranks_of(slow, place_packed(slow, nodes)), "a slow cable");
  }
}

TEST_CASE("an all-to-all in a tree with faults loads links as its single flows do") {
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 2;
  c.fabric.kind = "fat_tree";
  c.fabric.units = 24;
  c.fabric.nodes_per_unit = 3;
  c.fabric.spines = 24;
  c.fabric.spine_groups = 12;
  c.fabric.uplinks_per_leaf = 2;
  c.fabric.uplinks_per_spine = c.fabric.cores = 4;
  for (const std::vector<std::string>& failed :
       std::vector<std::vector<std::string>>{{},
                                             {"spine-0"},
                                             {"leaf-0-A - spine-1"},
                                             {"leaf-0-A - spine-1", "leaf-0-B - spine-1", "leaf-3-A - spine-2"},
                                             {"spine-3 - core-2"},
                                             {"core-3"},
                                             {"spine-1", "spine-6", "core-0"}}) {
    c.fabric.failed = failed;
    const Fabric f = build_fabric(c);
    CHECK((Router(f).tree() == nullptr) == !failed.empty());  // beside a failed core others are fuller
    check_exchange(f, ranks_of(f, place_packed(f, 72)), failed.empty() ? "none failed" : failed.front());
  }
}
