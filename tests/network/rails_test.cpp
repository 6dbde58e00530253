// Rails that do not meet: without spines, or as planes of their own. What goes to another rail changes it over NVLink.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "../topology/clusters.hpp"
#include "core/random.hpp"
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

double moving_on_rails_s(const CollectiveCost& c) {
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
    CHECK(moving_on_rails_s(exchange) == Approx(0.75 * 1e9 / 25e9).epsilon(1e-9));
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

namespace {

// Adapters and NVLink ports by what goes out of them, of one collective or message.
struct Carried {
  std::map<std::string, double> by_name;
  double of(const std::string& name) const { return by_name.count(name) > 0 ? by_name.at(name) : 0; }
};

Carried carried_by(const Fabric& f, const std::vector<LinkUse>& uses) {
  Carried c;
  for (const LinkUse& use : uses) c.by_name[f.link_name(use.link)] += use.weight;
  return c;
}

// Of an all-to-all of whole nodes every adapter sends and gets what goes to the other nodes.
void check_ports(const Carried& all, int used, int gpus) {
  for (int n = 0; n < used; ++n)
    for (int k = 0; k < gpus; ++k) {
      const std::string nic = fmt::format("node-{} nic {}", n, k);
      double out = 0, in = 0;
      for (const auto& [name, weight] : all.by_name) {
        if (name.rfind(nic + " -> ", 0) == 0) out += weight;
        if (name.size() > nic.size() && name.substr(name.size() - nic.size()) == nic) in += weight;
      }
      CHECK(out == Approx((used - 1.0) / used).epsilon(1e-9));
      CHECK(in == Approx(out).epsilon(1e-9));
    }
}

}  // namespace

TEST_CASE("two adapters of an accelerator on planes that do not meet: each sends to its like") {
  Cluster c = rail_only();
  c.node.gpus = 2;  // adapters 0 and 1 serve accelerator 0, 2 and 3 the other
  const Fabric f = build_fabric(c);
  CollectiveOptions o;
  o.protocol = Protocol::simple;
  for (const char* name : {"direct", "hierarchical", "pieces"}) {
    o.algorithm = name;
    const bool pieces = o.algorithm == "pieces";
    const CollectiveCost exchange = Collectives(f, o).cost(pieces ? Operation::all_gather : Operation::all_to_all,
                                                           ranks_of(f, place_packed(f, 4)), 1e9);
    // Each of 8 sends 6 eighths to other nodes, by two adapters.
    CHECK(moving_on_rails_s(exchange) == Approx(0.375 * 1e9 / 25e9).epsilon(1e-9));
    CHECK(exchange.bottleneck == "NIC");
  }
}

TEST_CASE("nodes used unevenly where rails do not meet: every pair has a way, and bytes are conserved") {
  const Fabric f = build_fabric(rail_only());
  for (const RoutingPolicy policy : {RoutingPolicy::adaptive, RoutingPolicy::ecmp})
    for (const int used : {5, 6, 7, 13, 14, 15})
      for (const char* name : {"auto", "direct", "pieces"}) {
        INFO(used << " ranks, " << name);
        Fabric routed = f;
        routed.routing = policy;
        CollectiveOptions o;
        o.protocol = Protocol::simple;
        o.algorithm = name;
        std::vector<Rank> ranks = ranks_of(f, place_packed(f, (used + 3) / 4));
        ranks.resize(static_cast<size_t>(used));
        const Operation op = o.algorithm == "pieces" ? Operation::all_gather : Operation::all_to_all;
        const CollectiveCost cost = Collectives(routed, o).cost(op, ranks, 1e9);
        double out = 0, in = 0, pairs = 0;
        for (const LinkUse& use : cost.load.uses)
          if (std::string(f.link_class(use.link)) == "NIC") (use.link % 2 == 0 ? out : in) += use.weight;
        for (const Rank& a : ranks)
          for (const Rank& b : ranks) pairs += a.node != b.node ? 1 : 0;
        CHECK(out == Approx(pairs / used).epsilon(1e-9));
        CHECK(in == Approx(pairs / used).epsilon(1e-9));
        // Summed up for the nodes that are alike, or message by message.
        const Group group(f, ranks);
        if (op != Operation::all_to_all || group.even_size() > 0) continue;
        FlowPlan single;
        single.stages.emplace_back();
        for (int a = 0; a < used; ++a)
          for (int b = 0; b < used; ++b)
            if (a != b) single.stages.front().flows.push_back({a, b, 1.0 / used});
        Router router(routed);
        LinkLoads loads(routed, router);
        loads.add(group, single, {1, 1});
        for (const LinkUse& use : loads.take().uses)
          if (use.link < f.cable_links()) {
            const auto same = std::find_if(cost.load.uses.begin(), cost.load.uses.end(),
                                           [&](const LinkUse& u) { return u.link == use.link; });
            REQUIRE(same != cost.load.uses.end());
            CHECK(same->weight == Approx(use.weight).epsilon(1e-9));
          }
      }
}

TEST_CASE("rails that do not meet, at random: to another rail over NVLink first, and bytes are conserved") {
  SplitMix64 stream{21};
  const auto below = [&](int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); };
  int refused = 0, crossed = 0, by_receiver = 0;
  for (int pass = 0; pass < 300; ++pass) {
    Cluster c = rail_only();
    const int gpus = 2 + below(7), nodes = 2 + below(5);
    c.node.gpus = c.node.nics = c.fabric.leaves_per_unit = gpus;
    c.fabric.nodes_per_unit = nodes;
    const Fabric f = build_fabric(c);
    REQUIRE(rails_apart(f, 0));
    INFO("pass " << pass << ": " << nodes << " nodes of " << gpus);
    // An all-to-all of whole nodes: each port carries what the shares say, whatever the rail.
    CollectiveOptions o;
    o.protocol = Protocol::simple;
    const int used = 2 + below(nodes - 1);
    const auto ranks = ranks_of(f, place_packed(f, used));
    const CollectiveCost exchange = Collectives(f, o).cost(Operation::all_to_all, ranks, 1e9);
    const Carried all = carried_by(f, exchange.load.uses);
    check_ports(all, used, gpus);
    // One message between two ranks of a random group.
    std::vector<Rank> group;
    for (const Rank& r : ranks_of(f, place_packed(f, nodes)))
      if (below(2) == 0) group.push_back(r);
    if (group.size() < 2) continue;
    const int from = below(static_cast<int>(group.size())), to = below(static_cast<int>(group.size()));
    const Rank a = group[static_cast<size_t>(from)], b = group[static_cast<size_t>(to)];
    if (a.node == b.node) continue;
    const auto has = [&](int node, int gpu) {
      return std::find(group.begin(), group.end(), Rank{node, gpu}) != group.end();
    };
    const Group members(f, group);
    Router router(f);
    LinkLoads loads(f, router);
    FlowPlan plan;
    plan.stages.push_back({{{from, to, 1}}, {}});
    const auto carried = [&] {
      loads.add(members, plan, {1, 1});
      return carried_by(f, loads.take().uses);
    };
    // Its own rail, else by a mate of the sender on the receiver's, else by one of the receiver on the sender's, else
    // by one of each on a rail that both nodes have.
    std::vector<int> in_common;
    for (int k = 0; k < gpus; ++k)
      if (has(a.node, k) && has(b.node, k)) in_common.push_back(k);
    const bool way = !in_common.empty();
    const int rail = a.gpu == b.gpu || has(a.node, b.gpu) ? b.gpu
                     : has(b.node, a.gpu)                 ? a.gpu
                     : way                                ? in_common[0]
                                                          : -1;
    const int changes = (rail != a.gpu ? 1 : 0) + (rail != b.gpu ? 1 : 0);
    INFO("from node " << a.node << " GPU " << a.gpu << " to node " << b.node << " GPU " << b.gpu);
    if (!way) {
      CHECK_THROWS_WITH(carried(), Catch::Contains("no live path"));
      ++refused;
      continue;
    }
    const Carried one = carried();
    // It leaves and arrives on one rail, once, and crosses NVLink where that is not its own.
    double nic_out = 0, nic_in = 0, nvlink = 0;
    int rail_out = -1, rail_in = -1;
    for (const auto& [name, weight] : one.by_name)
      for (int k = 0; k < gpus; ++k) {
        if (name.rfind(fmt::format("node-{} nic {} -> ", a.node, k), 0) == 0) nic_out += weight, rail_out = k;
        const std::string at = fmt::format(" -> node-{} nic {}", b.node, k);
        if (name.size() > at.size() && name.substr(name.size() - at.size()) == at) nic_in += weight, rail_in = k;
      }
    for (const auto& [name, weight] : one.by_name)
      if (name.find(" nic ") == std::string::npos) nvlink += weight;
    CHECK(nic_out == Approx(1));
    CHECK(nic_in == Approx(1));
    CHECK(rail_out == rail);
    CHECK(rail_in == rail);
    CHECK(nvlink == Approx(2 * changes));
    if (changes > 0) ++crossed;
    if (rail != b.gpu) ++by_receiver;
  }
  CHECK(by_receiver >= 10);
  CHECK(refused >= 10);
  CHECK(crossed >= 50);
}
