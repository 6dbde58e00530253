// Adaptive routing where cables beyond the next are not alike: as empty as can be, so never better for a slower cable.
#include "network/adaptive_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "network/collective.hpp"
#include "network/contention.hpp"
#include "network/linear_program.hpp"
#include "network/message_level.hpp"
#include "topology/inspect.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::reference_cluster;

namespace {

CollectiveCost cost_on(const Fabric& f, Operation op, const std::string& algorithm, int nodes) {
  CollectiveOptions o;
  o.protocol = Protocol::simple;
  o.algorithm = algorithm;
  o.bound = false;
  return Collectives(f, o).cost(op, ranks_of(f, place_packed(f, nodes)), 1e9);
}

double fullest_s(const Fabric& f, const CollectiveCost& cost) {
  double slowest = 0;
  for (const LinkUse& use : cost.load.uses) slowest = std::max(slowest, use.weight / f.link_capacity_Bps(use.link));
  return slowest;
}

// One byte from every leaf to every other, split by the next cables.
SwitchDemands everyone(const Fabric& f, Router& router, std::vector<double>& load) {
  std::vector<int> leaves;
  for (int n = 0; n < f.node_count; ++n) leaves.push_back(f.nic_switch(n, 0));
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  load.assign(static_cast<size_t>(f.link_count()), 0);
  SwitchDemands demands;
  std::vector<LinkShare> carried;
  for (const int to : leaves)
    for (const int from : leaves) {
      if (from == to) continue;
      demands[to].emplace_back(from, 1);
      router.spray(from, to, 1, carried);
    }
  for (const LinkShare& l : carried) load[static_cast<size_t>(l.link)] += l.share;
  return demands;
}

double fullest_after(const Fabric& f, std::vector<double> load, const std::vector<LinkShare>& changes) {
  for (const LinkShare& l : changes) load[static_cast<size_t>(l.link)] += l.share;
  double slowest = 0;
  for (size_t l = 0; l < load.size(); ++l)
    slowest = std::max(slowest, load[l] / f.link_capacity_Bps(static_cast<int>(l)));
  return slowest;
}

std::string between(const Fabric& f, const Cable& c) {
  return f.vertices[static_cast<size_t>(c.a)].name + " - " + f.vertices[static_cast<size_t>(c.b)].name;
}

// Two or three levels, a torus or a dragonfly; up to five kinds of cables run at a speed of their own.
Cluster uneven_fabric(SplitMix64& stream) {
  const auto below = [&](int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); };
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 2;
  c.fabric.uplink_bandwidth = bytes_per_second(12.5e9 * (1 + below(6)));
  switch (below(4)) {
    case 0:
      c.fabric.units = 2 + below(3);
      c.fabric.nodes_per_unit = 2 + below(3);
      c.fabric.spines = c.fabric.uplinks_per_leaf = 2 + below(3);
      break;
    case 1:
      c.fabric.kind = "fat_tree";
      c.fabric.units = 4;
      c.fabric.nodes_per_unit = 2;
      c.fabric.spine_groups = 2;
      c.fabric.spines = 4;
      c.fabric.uplinks_per_leaf = 2;
      c.fabric.cores = 2 + 2 * below(2);
      c.fabric.uplinks_per_spine = c.fabric.cores;
      c.fabric.core_bandwidth = bytes_per_second(12.5e9 * (1 + below(6)));
      break;
    case 2:
      c.fabric.kind = "torus";
      c.node.nics = 1;
      c.fabric.dimensions = {2 + below(3), 3 + below(2)};
      break;
    default:
      c.fabric.kind = "dragonfly";
      c.fabric.units = 3;
      c.fabric.switches_per_group = 2;
      c.fabric.nodes_per_unit = 4;
      c.fabric.global_links_per_switch = 2;
  }
  const Fabric f = build_fabric(c);
  for (int changes = below(6); changes > 0; --changes) {
    const Cable& cable = f.cables[static_cast<size_t>(below(static_cast<int>(f.cables.size())))];
    if (cable.kind != CableKind::nic && cable.kind != CableKind::nvlink)
      c.fabric.cable_changes.push_back({between(f, cable), bytes_per_second(cable.line_Bps * (20 + below(180)) / 100)});
  }
  return c;
}

}  // namespace

TEST_CASE("a small linear program, by hand") {
  // Most x with x + y <= 4, x - y <= 1, y <= 2: x = 2.5, y = 1.5.
  double work = 1e6;
  const LinearSolution s = largest_first({{1, 1}, {1, -1}, {0, 1}}, {4, 1, 2}, work);
  CHECK(s.x[0] == Approx(2.5).epsilon(1e-9));
  CHECK(s.x[1] == Approx(1.5).epsilon(1e-9));
  CHECK(s.prices == std::vector<double>{0.5, 0.5, 0});
}

TEST_CASE("one slow cable of a leaf: all switches heed it, by hand") {
  Cluster c = reference_cluster();
  c.fabric.units = 3;
  c.fabric.uplink_bandwidth = bytes_per_second(12.5e9);  // so that they hold up everything
  const Fabric even = build_fabric(c);
  const auto leaf = static_cast<size_t>(even.vertex_named("leaf-0-A"));
  const Cable& cable = even.cables[static_cast<size_t>(even.cables_at[leaf].back())];
  REQUIRE(cable.kind == CableKind::uplink);
  c.fabric.cable_changes = {{between(even, cable), bytes_per_second(cable.line_Bps / 4)}};
  const Fabric slow = build_fabric(c);
  // Of the leaf's cables one counts a quarter.
  double up = 0;
  for (const int id : even.cables_at[leaf])
    up += even.cables[static_cast<size_t>(id)].kind == CableKind::uplink ? 1 : 0;
  const double healthy = fullest_s(even, cost_on(even, Operation::all_to_all, "direct", even.node_count));
  const double slowed = fullest_s(slow, cost_on(slow, Operation::all_to_all, "direct", even.node_count));
  CHECK(slowed / healthy == Approx(up / (up - 0.75)).epsilon(1e-9));
}

TEST_CASE("a slower cable makes nothing faster: 2,000 uneven wirings") {
  SplitMix64 stream{29};
  const auto below = [&](int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); };
  int told = 0, tried = 0, helped = 0;
  for (int pass = 0; pass < 2000; ++pass) {
    const Cluster c = uneven_fabric(stream);
    const Fabric f = build_fabric(c);
    std::vector<size_t> inner;
    for (size_t i = 0; i < f.cables.size(); ++i)
      if (f.cables[i].kind != CableKind::nic && f.cables[i].kind != CableKind::nvlink) inner.push_back(i);
    if (inner.empty()) continue;
    const Cable& cable = f.cables[inner[static_cast<size_t>(below(static_cast<int>(inner.size())))]];
    const std::string name = between(f, cable);
    const double factor = (1 + below(99)) / 100.0;
    const auto [op, algorithm] =
        std::vector<std::pair<Operation, std::string>>{{Operation::all_to_all, "direct"},
                                                       {Operation::all_reduce, "ring"},
                                                       {Operation::all_reduce, "tree"}}[static_cast<size_t>(below(3))];
    const int nodes = 2 + below(f.node_count - 1);
    INFO("pass " << pass << ": " << c.fabric.kind << ", " << name << " at " << factor << ", " << choice_name(op)
                 << " as " << algorithm << " of " << nodes << " nodes");
    const CollectiveCost before = cost_on(f, op, algorithm, nodes);
    Cluster slow = c, failed = c;
    slow.fabric.cable_changes.push_back({name, bytes_per_second(factor * cable.line_Bps)});
    const Fabric slowed = build_fabric(slow);
    const CollectiveCost after = cost_on(slowed, op, algorithm, nodes);
    CHECK(after.time_s >= before.time_s * (1 - 1e-9));
    ++tried;
    told += after.time_s > before.time_s * 1.001 ? 1 : 0;
    // As many bytes cross cables as before: all ways are shortest ones.
    double bytes_before = 0, bytes_after = 0;
    for (const LinkUse& use : before.load.uses) bytes_before += use.weight;
    for (const LinkUse& use : after.load.uses) bytes_after += use.weight;
    CHECK(bytes_after == Approx(bytes_before).epsilon(1e-9));
    if (c.fabric.kind == "torus" || c.fabric.kind == "dragonfly") continue;  // ways get longer
    failed.fabric.failed = {name};
    try {
      const double without = cost_on(build_fabric(failed), op, algorithm, nodes).time_s;
      CHECK(after.time_s <= without * (1 + 1e-9));
      helped += after.time_s < without * 0.999 ? 1 : 0;
    } catch (const InputError&) {  // it was the only way
    }
  }
  CHECK(tried > 1500);
  CHECK(told > 100);
  CHECK(helped > 20);
}

TEST_CASE("a split that is cut short says so, and how far from the best it is at most") {
  SplitMix64 stream{31};
  int links = 0, work = 0;
  for (int pass = 0; pass < 300; ++pass) {
    const Fabric f = build_fabric(uneven_fabric(stream));
    Router router(f);
    std::vector<double> load;
    const SwitchDemands demands = everyone(f, router, load);
    const BalancedSplit best = balanced_split(f, router, demands, load);
    CHECK(best.ended.empty());
    CHECK(best.over == 1);
    const double least = fullest_after(f, load, best.changes);
    for (const SplitLimits limits : {SplitLimits{5, 2e8}, {4'000'000, 50}, {4'000'000, 500}, {4'000'000, 5000}}) {
      const BalancedSplit cut = balanced_split(f, router, demands, load, nullptr, limits);
      const double reached = fullest_after(f, load, cut.changes);
      CHECK(reached >= least * (1 - 1e-9));
      CHECK(reached <= cut.over * least * (1 + 1e-9));
      if (cut.ended.empty()) continue;
      ++(limits.links == 5 ? links : work);
    }
  }
  CHECK(links > 100);
  CHECK(work > 100);
}

TEST_CASE("too many pairs of switches: the answer says that they are not balanced") {
  Cluster c = tw::test::flat_cluster(1);
  c.fabric.kind = "torus";
  c.fabric.dimensions = {32, 32};
  const Fabric whole = build_fabric(c);
  c.fabric.failed = {between(whole, whole.cables[1500])};
  REQUIRE(whole.cables[1500].kind == CableKind::mesh);
  const Fabric faulty = build_fabric(c);
  CHECK(cost_on(whole, Operation::all_to_all, "direct", 1024).remark.empty());
  const std::string remark = cost_on(faulty, Operation::all_to_all, "direct", 1024).remark;
  CHECK_THAT(remark, Catch::Contains("all-to-all over 1024 ranks: adaptive routing is left at"));
  CHECK_THAT(remark, Catch::Contains("1048576 pairs"));
  CHECK_THAT(remark, Catch::Contains("times as full as it need be"));
  CHECK(cost_on(faulty, Operation::all_reduce, "ring", 1024).remark.empty());
  CHECK(topology_summary(whole).warnings.empty());
  REQUIRE(topology_summary(faulty).warnings.size() == 1);
  CHECK_THAT(topology_summary(faulty).warnings.front(), Catch::Contains("1048576 pairs"));
}

TEST_CASE("level 3 splits what it sends as level 2 does, link by link: 200 uneven wirings") {
  SplitMix64 stream{37};
  int apart = 0;
  for (int pass = 0; pass < 200; ++pass) {
    const Cluster c = uneven_fabric(stream);
    const Fabric f = build_fabric(c);
    const auto [op, algorithm] =
        std::vector<std::pair<Operation, std::string>>{{Operation::all_to_all, "direct"},
                                                       {Operation::all_reduce, "ring"},
                                                       {Operation::all_reduce, "tree"}}[stream() % 3];
    const int nodes = 2 + static_cast<int>(stream() % static_cast<uint64_t>(f.node_count - 1));
    INFO("pass " << pass << ": " << c.fabric.kind << ", " << choice_name(op) << " as " << algorithm << " of " << nodes);
    const CollectiveCost cost = cost_on(f, op, algorithm, nodes);
    CollectiveOptions o;
    o.protocol = Protocol::simple;
    o.algorithm = algorithm;
    const std::vector<Rank> ranks = ranks_of(f, place_packed(f, nodes));
    const MessageProgram program = message_program(f, op, ranks, 1, o, 4);
    std::vector<double> sent(static_cast<size_t>(f.link_count()), 0), loaded = sent;
    for (const Message& m : program.messages)
      for (const LinkUse& use : program.classes[static_cast<size_t>(m.load_class)].uses)
        sent[static_cast<size_t>(use.link)] += use.weight * m.bytes;
    for (const LinkUse& use : cost.load.uses) loaded[static_cast<size_t>(use.link)] += use.weight;
    for (size_t l = 0; l < sent.size(); ++l) CHECK(sent[l] == Approx(loaded[l]).epsilon(1e-9).margin(1e-9));
    // And some of it not by the next cable alone.
    Router router(f);
    std::vector<double> load;
    const SwitchDemands demands = everyone(f, router, load);
    apart += balanced_split(f, router, demands, load).changes.empty() ? 0 : 1;
  }
  CHECK(apart > 50);
}

TEST_CASE("traffic of storage is split as an exchange is: a slower cable makes it no faster") {
  SplitMix64 stream{41};
  int helped = 0;
  for (int pass = 0; pass < 300; ++pass) {
    const Cluster c = uneven_fabric(stream);
    const Fabric f = build_fabric(c);
    std::vector<int> sources, destinations;
    for (int n = 0; n < f.node_count; ++n) (n % 3 == 0 ? sources : destinations).push_back(n);
    const auto slowest = [&](const Fabric& fabric) {
      Router router(fabric);
      double most = 0;
      for (const LinkUse& use : traffic_load(router, fabric, "reads", sources, destinations).uses)
        most = std::max(most, use.weight / fabric.link_capacity_Bps(use.link));
      return most;
    };
    // By the next cable alone.
    Router router(f);
    std::vector<double> load(static_cast<size_t>(f.link_count()), 0);
    for (const int a : sources)
      for (const int b : destinations)
        for (int k = 0; k < f.nics; ++k)
          for (const LinkShare& l : router.route(a, k, b, k))
            load[static_cast<size_t>(l.link)] += l.share / static_cast<double>(destinations.size()) / f.nics;
    const double next = fullest_after(f, load, {}), now = slowest(f);
    CHECK(now <= next * (1 + 1e-9));
    helped += now < next * 0.999 ? 1 : 0;
    const Cable& cable = f.cables[stream() % f.cables.size()];
    if (cable.kind == CableKind::nic || cable.kind == CableKind::nvlink) continue;
    Cluster slow = c;
    slow.fabric.cable_changes.push_back({between(f, cable), bytes_per_second(0.5 * cable.line_Bps)});
    CHECK(slowest(build_fabric(slow)) >= now * (1 - 1e-9));
  }
  CHECK(helped > 10);
}
