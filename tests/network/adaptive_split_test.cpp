// Adaptive routing where cables beyond the next are not alike: as empty as can be, so never better for a slower cable.
#include "network/adaptive_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "network/collective.hpp"
#include "network/linear_program.hpp"
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
