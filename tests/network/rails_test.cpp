// Rails that do not meet: without spines, or as planes of their own. What goes to another rail changes it over NVLink.
#include <catch2/catch.hpp>
#include <map>

#include "../topology/clusters.hpp"
#include "network/collective.hpp"
#include "network/link_loads.hpp"
#include "network/message_level.hpp"
#include "topology/inspect.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::reference_cluster;

namespace {

// Four nodes of four accelerators, adapter k of each on leaf k.
Cluster rail_only() {
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 4;
  c.fabric.units = 1;
  c.fabric.nodes_per_unit = 4;
  c.fabric.leaves_per_unit = 4;
  c.fabric.wiring = NicWiring::rails;
  c.fabric.spines = c.fabric.uplinks_per_leaf = 0;
  return c;
}

// Two units of them: four planes of two leaves and two spines, which no core joins.
Cluster planes() {
  Cluster c = rail_only();
  c.fabric.kind = "fat_tree";
  c.fabric.units = 2;
  c.fabric.nodes_per_unit = 2;
  c.fabric.spines = 8;
  c.fabric.spine_groups = 4;
  c.fabric.spine_grouping = SpineGrouping::rails;
  c.fabric.uplinks_per_leaf = 2;
  c.fabric.uplink_bandwidth = bytes_per_second(25e9);
  return c;
}

double moving_s(const CollectiveCost& c) {
  return c.time_s - c.load.latency_s;
}

}  // namespace

TEST_CASE("rails that do not meet are known; an all-to-all goes over NVLink to its rail, by hand") {
  CHECK(!rails_apart(build_fabric(reference_cluster()), 0));
  for (const Cluster& c : {rail_only(), planes()}) {
    const Fabric f = build_fabric(c);
    CHECK(rails_apart(f, 0));
    CollectiveOptions o;
    o.protocol = Protocol::simple;
    const auto ranks = ranks_of(f, place_packed(f, 4));
    // Each of 16 sends 12 sixteenths to other nodes, which leave by the four adapters alike, and gets to them, with
    // what stays, by three quarters over NVLink.
    const CollectiveCost exchange = Collectives(f, o).cost(Operation::all_to_all, ranks, 1e9);
    CHECK(exchange.algorithm == "direct");
    CHECK(moving_s(exchange) == Approx(0.75 * 1e9 / 25e9).epsilon(1e-9));
    std::map<std::string, double> most;
    for (const LinkUse& use : exchange.load.uses)
      most[f.link_class(use.link)] = std::max(most[f.link_class(use.link)], use.weight);
    CHECK(most["NIC"] == Approx(0.75).epsilon(1e-9));
    CHECK(most["NVLink"] == Approx(0.75).epsilon(1e-9));
    // Rings and trees keep to their rails.
    for (const char* name : {"ring", "tree", "hierarchical"}) {
      o.algorithm = name;
      CHECK(Collectives(f, o).cost(Operation::all_reduce, ranks, 1e9).bottleneck == "NIC");
    }
  }
}

TEST_CASE("a message to another rail goes over the accelerator of its node that has it, and nowhere where none does") {
  const Fabric f = build_fabric(rail_only());
  CollectiveOptions o;
  o.protocol = Protocol::simple;
  // Rank 0 to rank 3 sends over accelerator 1 of its node, which is in the group too.
  const std::vector<Rank> both{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  const Group group(f, both);
  Router router(f);
  LinkLoads loads(f, router);
  FlowPlan plan;
  plan.stages.push_back({{{0, 3, 1}}, {}});
  loads.add(group, plan, {1, 1});
  std::map<std::string, double> carried;
  for (const LinkUse& use : loads.take().uses) carried[f.link_name(use.link)] = use.weight;
  CHECK(carried.count("node-0 nic 1 -> leaf-0-B") == 1);
  CHECK(carried.count("leaf-0-B -> node-1 nic 1") == 1);
  CHECK(carried.size() == 4);  // and NVLink, out and in
  CHECK_THROWS_WITH(Collectives(f, o).cost(Operation::send_recv, std::vector<Rank>{{0, 0}, {1, 1}}, 1e9),
                    Catch::Contains("no live path"));
}
