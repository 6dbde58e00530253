// A cable between switches that runs slower than it was built for, under adaptive routing: never better than healthy,
// never worse than if it had failed.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "network/collective.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::reference_cluster;

namespace {

double moving_over_s(const Cluster& c, Operation op, int nodes) {
  const Fabric f = build_fabric(c);
  CollectiveOptions o;
  o.protocol = Protocol::simple;
  o.algorithm = op == Operation::all_to_all ? "direct" : "ring";
  o.bound = false;
  const CollectiveCost cost = Collectives(f, o).cost(op, ranks_of(f, place_packed(f, nodes)), 1e9);
  double slowest = 0;
  for (const LinkUse& use : cost.load.uses) slowest = std::max(slowest, use.weight / f.link_capacity_Bps(use.link));
  return slowest;
}

// Two or three levels, with much or little room in each; or a torus, or a dragonfly.
Cluster random_fabric(SplitMix64& stream) {
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
  return c;
}

}  // namespace

TEST_CASE("one slow cable between a leaf and a spine: what goes to the leaf heeds it, by hand") {
  Cluster c = reference_cluster();
  c.fabric.units = 3;
  const double healthy = moving_over_s(c, Operation::all_to_all, 18);
  c.fabric.cable_changes = {{"leaf-0-A - spine-1", bytes_per_second(12.5e9)}};
  // 15 cables and a quarter carry what 16 do.
  double up = 0;
  const Fabric f = build_fabric(c);
  CollectiveOptions o;
  o.algorithm = "direct";
  for (const LinkUse& use :
       Collectives(f, o).cost(Operation::all_to_all, ranks_of(f, place_packed(f, 18)), 1e9).load.uses)
    if (f.link_name(use.link) == "spine-1 -> leaf-0-A") up = use.weight / f.link_capacity_Bps(use.link);
  CHECK(up > 0);
  CHECK(up <= healthy * 16 / 15.25 * (1 + 1e-9));
  CHECK(moving_over_s(c, Operation::all_to_all, 18) <= healthy * 16 / 15.25 * (1 + 1e-9));
}

TEST_CASE("random fabrics with a slow cable: healthy <= slowed <= failed under adaptive routing") {
  SplitMix64 stream{29};
  const auto below = [&](int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); };
  int tried = 0, told = 0;
  for (int pass = 0; pass < 400; ++pass) {
    Cluster c = random_fabric(stream);
    Fabric f;
    try {
      f = build_fabric(c);
    } catch (const InputError&) {  // sizes that do not fit together
      continue;
    }
    std::vector<size_t> between;
    for (size_t i = 0; i < f.cables.size(); ++i)
      if (f.cables[i].kind != CableKind::nic && f.cables[i].kind != CableKind::nvlink) between.push_back(i);
    if (between.empty()) continue;
    const Cable& cable = f.cables[between[static_cast<size_t>(below(static_cast<int>(between.size())))]];
    const std::string name =
        f.vertices[static_cast<size_t>(cable.a)].name + " - " + f.vertices[static_cast<size_t>(cable.b)].name;
    const double factor = (1 + below(99)) / 100.0;
    const Operation op = below(2) == 0 ? Operation::all_to_all : Operation::all_reduce;
    const int nodes = 2 + below(f.node_count - 1);
    INFO("pass " << pass << ": " << c.fabric.kind << ", " << name << " at " << factor << ", " << choice_name(op)
                 << " of " << nodes << " nodes");
    const double healthy = moving_over_s(c, op, nodes);
    Cluster slow = c, failed = c;
    slow.fabric.cable_changes = {{name, bytes_per_second(factor * cable.line_Bps)}};
    failed.fabric.failed = {name};
    const double slowed = moving_over_s(slow, op, nodes);
    Cluster fast = c;
    fast.fabric.cable_changes = {{name, bytes_per_second(cable.line_Bps / factor)}};
    CHECK(moving_over_s(fast, op, nodes) <= healthy * 1.01);
    double without = 0;
    try {
      without = moving_over_s(failed, op, nodes);
      CHECK(slowed <= without * 1.01);
    } catch (const InputError&) {  // it was the only way
      without = healthy;
    }
    // Shortest paths of a healthy torus or dragonfly are not balanced: there it may run better without a cable.
    const bool tree = c.fabric.dimensions.empty() && c.fabric.kind != "dragonfly";
    CHECK((tree ? healthy : std::min(healthy, without)) <= slowed * 1.01);
    ++tried;
    told += slowed > healthy * 1.001 ? 1 : 0;
  }
  CHECK(tried > 200);
  CHECK(told > 20);
}
