#include "topology/tree_levels.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "clusters.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "topology/routing.hpp"

using namespace tw;
using tw::test::reference_cluster;

namespace {

// Two levels, three levels with pods, three levels with rails to the top.
std::vector<Cluster> trees() {
  Cluster two = reference_cluster();
  Cluster pods = reference_cluster();
  pods.fabric.kind = "fat_tree";
  pods.fabric.units = 8;
  pods.fabric.leaves_per_unit = 8;
  pods.fabric.wiring = NicWiring::rails;
  pods.fabric.spines = 16;
  pods.fabric.spine_groups = 4;
  pods.fabric.uplinks_per_leaf = 8;
  pods.fabric.uplinks_per_spine = 8;
  pods.fabric.cores = 16;
  Cluster rails = pods;
  rails.fabric.spine_grouping = SpineGrouping::rails;
  return {two, pods, rails};
}

}  // namespace

TEST_CASE("pushed level by level, flows load links as one by one") {
  for (const Cluster& c : trees()) {
    const Fabric f = build_fabric(c);
    Router router(f);
    REQUIRE(router.tree() != nullptr);
    const TreeLevels& tree = *router.tree();
    auto draw = random_stream(7, "pairs", 0);
    TreeLevels::Traffic traffic = tree.no_traffic();
    std::vector<double> at_once(static_cast<size_t>(f.link_count()), 0), one_by_one = at_once;
    for (int i = 0; i < 300; ++i) {
      const auto pick = [&] { return static_cast<int>(draw() % static_cast<uint64_t>(f.node_count)); };
      const int a = f.nic_switch(pick(), i % f.nics), b = f.nic_switch(pick(), (i * 5) % f.nics);
      const double bytes = 1 + i % 13;
      tree.add(traffic, a, b, bytes);
      std::vector<LinkShare> carried;
      router.spray(a, b, bytes, carried);
      for (const LinkShare& l : carried) one_by_one[static_cast<size_t>(l.link)] += l.share;
      std::vector<double> spread(one_by_one.size(), 0);
      router.spread(b, {{a, 1}}, spread);  // by a search from b, which knows no levels
      double distance = 0;
      for (const double x : spread) distance += x;
      REQUIRE(distance == Approx(router.distance(a, b)).margin(1e-9));
    }
    tree.push(traffic, at_once);
    for (size_t l = 0; l < at_once.size(); ++l)
      REQUIRE(at_once[l] == Approx(one_by_one[l]).epsilon(1e-9).margin(1e-12));
  }
}

TEST_CASE("a large tree has levels too") {
  Cluster c = reference_cluster();  // two rails of 260 leaves each
  c.fabric.kind = "fat_tree";
  c.node.gpus = c.node.nics = 2;
  c.fabric.units = 260;
  c.fabric.nodes_per_unit = 1;
  c.fabric.wiring = NicWiring::rails;
  c.fabric.spines = 4;
  c.fabric.spine_groups = 2;
  c.fabric.spine_grouping = SpineGrouping::rails;
  c.fabric.uplinks_per_leaf = c.fabric.uplinks_per_spine = c.fabric.cores = 2;
  c.fabric.switches.ports = 512;
  const Fabric f = build_fabric(c);
  Router router(f);
  REQUIRE(router.tree() != nullptr);
  CHECK(router.distance(f.nic_switch(0, 0), f.nic_switch(259, 0)) == 2);
  CHECK(router.distance(f.nic_switch(0, 0), f.nic_switch(259, 1)) == 4);
}

TEST_CASE("in a tree with faults, what avoids them is pushed as before and the rest is told apart") {
  const auto failed = [](const char* name) { return [name](Cluster& c) { c.fabric.failed = {name}; }; };
  const auto slow = [](const char* name) {
    return [name](Cluster& c) { c.fabric.cable_changes = {{name, bytes_per_second(12.5e9)}}; };
  };
  const std::vector<std::function<void(Cluster&)>> faults{
      failed("spine-0"),
      failed("leaf-0-A - spine-3"),
      failed("core-0"),
      failed("spine-9 - core-9"),
      slow("leaf-1-B - spine-1"),
      slow("spine-0 - core-0"),
      [](Cluster& c) {
        c.fabric.failed = {"spine-1", "spine-6", "leaf-3-A - spine-5", "leaf-7-A"};
      }};
  int told = 0, odd = 0;
  for (const Cluster& whole : trees())
    for (const auto& fault : faults) {
      Cluster c = whole;
      fault(c);
      Fabric f;
      try {
        f = build_fabric(c);
      } catch (const InputError&) {  // no such switch or cable in this tree, or a node is cut off
        continue;
      }
      Router router(f);
      REQUIRE(router.levels() != nullptr);
      const TreeLevels& tree = *router.levels();
      TreeLevels::Traffic traffic = tree.no_traffic();
      std::vector<double> at_once(static_cast<size_t>(f.link_count()), 0), one_by_one = at_once;
      auto draw = random_stream(11, "pairs", 0);
      for (int i = 0; i < 400; ++i) {
        const auto pick = [&] { return static_cast<int>(draw() % static_cast<uint64_t>(f.node_count)); };
        const int from = pick(), to = pick();
        if (!f.nic_alive(from, i % f.nics) || !f.nic_alive(to, i * 5 % f.nics)) continue;
        const int a = f.nic_switch(from, i % f.nics), b = f.nic_switch(to, i * 5 % f.nics);
        if (!tree.even(a, b)) {
          ++odd;
          continue;
        }
        ++told;
        tree.add(traffic, a, b, 1 + i % 13);
        router.spread(b, {{a, 1 + i % 13}}, one_by_one);
      }
      tree.push(traffic, at_once);
      for (size_t l = 0; l < at_once.size(); ++l)
        REQUIRE(at_once[l] == Approx(one_by_one[l]).epsilon(1e-9).margin(1e-12));
    }
  CHECK(told > 3000);
  CHECK(odd > 500);
}

TEST_CASE("a fabric that is no even tree has no levels") {
  for (const char* broken : {"spine-0", "leaf-0-A - spine-3"}) {
    Cluster c = reference_cluster();
    c.fabric.failed = {broken};
    const Fabric f = build_fabric(c);
    // Without a spine every leaf has 15: even still. Without one cable a leaf is uneven.
    CHECK((Router(f).tree() == nullptr) == (std::string(broken) != "spine-0"));
  }
  Cluster torus = reference_cluster();
  torus.fabric.kind = "torus";
  torus.fabric.dimensions = {4, 4};
  const Fabric f = build_fabric(torus);
  CHECK(Router(f).tree() == nullptr);
}
