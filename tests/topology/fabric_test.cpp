#include "topology/fabric.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "clusters.hpp"
#include "topology/placement.hpp"
#include "topology/routing.hpp"

using namespace tw;
using tw::test::flat_cluster;
using tw::test::reference_cluster;

namespace {
std::string faults_of(const Cluster& c) {
  try {
    build_fabric(c);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("the reference fabric has its switches, cables and ports") {
  const Fabric f = build_fabric(reference_cluster());
  CHECK(f.node_count == 72);
  int leaves = 0, spines = 0;
  for (size_t v = 0; v < f.vertices.size(); ++v) {
    const FabricVertex& x = f.vertices[v];
    if (x.kind != VertexKind::network_switch) continue;
    leaves += x.tier == 1 ? 1 : 0;
    spines += x.tier == 2 ? 1 : 0;
    CHECK(f.ports_used(static_cast<int>(v)) == (x.tier == 1 ? 6 * 4 + 16 : 24));
  }
  CHECK(leaves == 24);
  CHECK(spines == 16);
  CHECK(f.cables.size() == 72u * 8 + 24 * 16);
  // Four adapters to leaf A, four to leaf B.
  CHECK(f.vertices[static_cast<size_t>(f.nic_switch(7, 3))].name == "leaf-1-A");
  CHECK(f.vertices[static_cast<size_t>(f.nic_switch(7, 4))].name == "leaf-1-B");
  CHECK(f.link_name(f.nic_link_out(7, 3)) == "node-7 nic 3 -> leaf-1-A");
  CHECK(f.link_name(f.nic_link_in(7, 3)) == "leaf-1-A -> node-7 nic 3");
}

TEST_CASE("ports of a job add up to the published and the stated switch power") {
  // Published: leaves whole + spines * (uplinks per leaf + NICs per leaf and node * units) / ports, of 1,610 W each;
  // stated: by ports of the job. Here from the cables alone; power/ has the rules.
  const Fabric f = build_fabric(reference_cluster());
  const auto watts_of = [&](int nodes) {
    std::map<int, double> ports;  // leaf -> cables of the job
    std::set<int> units;
    for (const int n : place_packed(f, nodes))
      for (int k = 0; k < f.nics; ++k) {
        ++ports[f.nic_switch(n, k)];
        units.insert(unit_of(f, n));
      }
    double stated = 0;
    std::map<int, double> spine_ports;
    for (const Cable& c : f.cables)
      if (c.kind == CableKind::uplink && ports.count(c.a) != 0) {
        stated += 1.0 / 64;
        ++spine_ports[c.b];
      }
    for (const auto& [leaf, count] : ports) stated += count / 64;
    for (const auto& [spine, count] : spine_ports) stated += count / 64;
    const double su = static_cast<double>(units.size());
    const double published =
        static_cast<double>(ports.size()) + static_cast<double>(spine_ports.size()) * (16 + 4 * su) / 64;
    return std::pair{published * 1610, stated * 1610};
  };
  CHECK(watts_of(8).first == Approx(16100).epsilon(1e-12));
  CHECK(watts_of(9).first == Approx(16100).epsilon(1e-12));
  CHECK(watts_of(64).first == Approx(59570).epsilon(1e-12));
  CHECK(watts_of(8).second == Approx(4830).epsilon(1e-12));
  CHECK(watts_of(9).second == Approx(5031.25).epsilon(1e-12));
  CHECK(watts_of(64).second == Approx(30590).epsilon(1e-12));
}

TEST_CASE("placements") {
  const Fabric f = build_fabric(reference_cluster());
  CHECK(place(f, Placement::spread, 4) == place_spread(f, 4));
  CHECK(place_packed(f, 3) == std::vector<int>{0, 1, 2});
  CHECK(place_spread(f, 3) == std::vector<int>{0, 6, 12});
  const auto all = place_spread(f, 72);
  CHECK(std::set<int>(all.begin(), all.end()).size() == 72);
  CHECK(place_named(f, {"node-7", "node-2"}) == std::vector<int>{7, 2});
  CHECK_THROWS_WITH(place_named(f, {"node-72"}), Catch::Contains("no node \"node-72\""));
  CHECK_THROWS_WITH(place_named(f, {"node-1", "node-1"}), Catch::Contains("twice"));
  CHECK_THROWS_AS(place_packed(f, 73), InputError);
}

TEST_CASE("wiring that cannot be built is refused and the element named") {
  SECTION("too many cables") {
    Cluster c = reference_cluster();
    c.fabric.nodes_per_unit = 13;  // 13 * 4 + 16 = 68 cables on a leaf
    CHECK_THAT(faults_of(c), Catch::Contains("68 cables on leaf-0-A, which has 64 ports"));
  }
  SECTION("uplinks that do not divide") {
    Cluster c = reference_cluster();
    c.fabric.spines = 10;
    CHECK_THAT(faults_of(c), Catch::Contains("16 uplinks of leaf-0-A do not divide onto 10 spines"));
    CHECK_THAT(faults_of(c), Catch::Contains("such as 20"));
  }
  SECTION("no spines between units: a node that cannot be reached") {
    Cluster c = reference_cluster();
    c.fabric.spines = 0;
    c.fabric.uplinks_per_leaf = 0;
    CHECK_THAT(faults_of(c), Catch::Contains("node-6 cannot be reached from node-0"));
  }
  SECTION("no adapters") {
    Cluster c = reference_cluster();
    c.node.nics = 0;
    CHECK_THAT(faults_of(c), Catch::Contains("node-1 is not reachable"));
  }
  SECTION("adapters that do not divide") {
    Cluster c = reference_cluster();
    c.node.nics = 7;
    CHECK_THAT(faults_of(c), Catch::Contains("7 NICs do not divide over 2 leaves"));
  }
  SECTION("more than a machine should hold") {
    Cluster c = reference_cluster();
    c.fabric.units = 100000;
    c.fabric.nodes_per_unit = 100000;
    CHECK_THAT(faults_of(c), Catch::Contains("1 to 200,000 nodes"));
    c.fabric.units = 4000;
    c.fabric.nodes_per_unit = 8;
    c.fabric.leaves_per_unit = 4096;
    c.node.nics = 1;
    c.fabric.wiring = NicWiring::all;
    CHECK_THAT(faults_of(c), Catch::Contains("more than 4000000 switches or cables"));
  }
  SECTION("unknown kind") {
    Cluster c = reference_cluster();
    c.fabric.kind = "scalable_unit";
    CHECK_THAT(faults_of(c), Catch::Contains("did you mean \"scalable_units\""));
  }
  CHECK(nodes_problem(reference_cluster(), 72).empty());
  CHECK_THAT(nodes_problem(reference_cluster(), 73), Catch::Contains("73 nodes are asked for, but reference has 72"));
}

TEST_CASE("one node alone needs no fabric") {
  Cluster c = flat_cluster(1);
  c.node.nics = 0;
  CHECK(build_fabric(c).node_count == 1);
}

TEST_CASE("routes are minimal, spread over equal-cost paths or hashed onto one") {
  const Fabric f = build_fabric(reference_cluster());
  Router router(f);
  CHECK(router.route(0, 0, 0, 1).empty());
  CHECK(router.route(0, 0, 5, 3).size() == 2);  // same leaf
  const auto spread = router.route(0, 0, 6, 0);
  CHECK(spread.size() == 2 + 2 * 16);
  CHECK(router.hops(0, 0, 6, 0) == 4);
  double up = 0;
  for (const LinkShare& l : spread)
    if (std::string(f.link_class(l.link)) == "leaf-spine") up += l.share;
  CHECK(up == Approx(2).epsilon(1e-12));  // once up, once down
  CHECK(router.next_links(f.nic_switch(0, 0), f.nic_switch(6, 0)).size() == 16);

  router.policy = RoutingPolicy::ecmp;
  const auto hashed = router.route(0, 0, 6, 0);
  REQUIRE(hashed.size() == 4);
  for (const LinkShare& l : hashed) CHECK(l.share == 1);
  Router again(f), other(f, 2);
  again.policy = other.policy = RoutingPolicy::ecmp;
  const auto same = again.route(0, 0, 6, 0);
  CHECK(same[1].link == hashed[1].link);
  // Another seed hashes at least one of many flows elsewhere.
  int moved = 0;
  for (int n = 6; n < 30; ++n) moved += other.route(0, 0, n, 0)[1].link != router.route(0, 0, n, 0)[1].link ? 1 : 0;
  CHECK(moved > 0);
}

TEST_CASE("many flows spread at once load links as the single ones do") {
  const Fabric f = build_fabric(reference_cluster());
  Router router(f);
  std::vector<double> one_by_one(static_cast<size_t>(f.link_count()), 0), at_once = one_by_one;
  std::vector<std::pair<int, double>> entering;
  const int to = f.nic_switch(40, 0);
  for (int n = 0; n < 36; ++n) {
    for (const LinkShare& l : router.route(n, 0, 40, 0))
      if (std::string(f.link_class(l.link)) == "leaf-spine") one_by_one[static_cast<size_t>(l.link)] += l.share;
    entering.emplace_back(f.nic_switch(n, 0), 1);
  }
  router.spread(to, entering, at_once);
  for (size_t l = 0; l < at_once.size(); ++l) REQUIRE(at_once[l] == Approx(one_by_one[l]).margin(1e-12));
}
