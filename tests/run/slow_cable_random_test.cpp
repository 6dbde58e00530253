// Slow cables, at random: a ring waits for them as a division says, nothing is ever faster for them, what does not
// cross them does not feel them, and what enters a node or a switch leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "../topology/clusters.hpp"
#include "core/random.hpp"
#include "network/collective.hpp"
#include "run/slow_step.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using Collective = tw::network::Operation;
using tw::test::flat_cluster;
using tw::test::reference_cluster;

namespace {

struct Draw {
  SplitMix64 stream;
  int below(int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); }
  double between(double low, double high) { return low + (high - low) * uniform(stream); }
};

SlowCable slow_cable(const std::string& cable, double Bps) {
  SlowCable slow;
  slow.cable = cable;
  slow.bandwidth = bytes_per_second(Bps);
  return slow;
}

CollectiveOptions simple_options(const std::string& algorithm) {
  CollectiveOptions o;
  o.algorithm = algorithm;
  o.protocol = Protocol::simple;
  return o;
}

double moving_s(const CollectiveCost& c) {
  return c.time_s - c.load.latency_s;
}

// Two units of two leaves and as many spines, or rails, or a torus.
Cluster wired(Draw& draw) {
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 2 << draw.below(2);
  c.fabric.units = 2;
  c.fabric.nodes_per_unit = 2 + draw.below(3);
  c.fabric.spines = c.fabric.uplinks_per_leaf = 1 + draw.below(3);
  c.fabric.uplink_bandwidth = bytes_per_second(draw.between(10e9, 60e9));
  const int kind = draw.below(3);
  if (kind == 1) c.fabric.wiring = NicWiring::rails;
  if (kind == 2) {
    c.fabric.kind = "torus";
    c.fabric.dimensions = {c.fabric.nodes_per_unit, 2};
  }
  return c;
}

// The name by which a user slows a cable.
std::string cable_name(const Fabric& f, int index) {
  const Cable& cable = f.cables[static_cast<size_t>(index)];
  const std::string& a = f.vertices[static_cast<size_t>(cable.a)].name;
  if (cable.nic >= 0) return fmt::format("{} nic {}", a, cable.nic);
  return fmt::format("{} - {}", a, f.vertices[static_cast<size_t>(cable.b)].name);
}

// What enters a switch leaves it, and a node, too, where all send as much as they get.
void check_conserved(const Fabric& f, const CollectiveCost& cost) {
  const bool directed = cost.operation == Collective::broadcast || cost.operation == Collective::send_recv;
  std::vector<double> in(f.vertices.size(), 0), out = in;
  for (const LinkUse& use : cost.load.uses) {
    if (use.link >= f.cable_links()) continue;
    const Cable& cable = f.cables[static_cast<size_t>(use.link / 2)];
    out[static_cast<size_t>(use.link % 2 == 0 ? cable.a : cable.b)] += use.weight;
    in[static_cast<size_t>(use.link % 2 == 0 ? cable.b : cable.a)] += use.weight;
  }
  for (size_t v = 0; v < in.size(); ++v)
    if (!directed || f.vertices[v].kind != VertexKind::node) CHECK(in[v] == Approx(out[v]).epsilon(1e-9).margin(1e-12));
}

}  // namespace

TEST_CASE("a slow cable: a ring over it takes its bytes over what is left, another ring does not feel it") {
  Draw draw{SplitMix64{17}};
  for (int pass = 0; pass < 300; ++pass) {
    const int nodes = 3 + draw.below(14), slow_node = draw.below(nodes);
    const double share = draw.between(0.05, 0.95), bytes = draw.between(1e6, 1e9);
    const Cluster c = flat_cluster(nodes);
    const Fabric healthy = build_fabric(c);
    const Fabric slow = build_fabric(with_slow_cables(
        c, {slow_cable(fmt::format("node-{} nic 0", slow_node), share * c.node.nic_bandwidth.value())}, {true}));
    std::vector<int> members;
    for (int n = 0; n < nodes; ++n)
      if (draw.below(3) > 0) members.push_back(n);
    if (members.size() < 2) continue;
    const bool crossed = std::find(members.begin(), members.end(), slow_node) != members.end();
    for (const Collective op : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
      const auto ranks = ranks_of(slow, members);
      const CollectiveCost cost = Collectives(slow, simple_options("ring")).cost(op, ranks, bytes);
      INFO("pass " << pass << ": " << members.size() << " of " << nodes << ", node " << slow_node << " at " << share);
      const double moved = bus_factor(op, static_cast<int>(members.size())) * bytes;
      CHECK(moving_s(cost) == Approx(moved / (crossed ? share : 1) / c.node.nic_bandwidth.value()).epsilon(1e-12));
      if (!crossed) CHECK(cost.time_s == Collectives(healthy, simple_options("ring")).cost(op, ranks, bytes).time_s);
    }
    // Not slow yet: the cluster as it is.
    CHECK(with_slow_cables(c, {slow_cable("node-0 nic 0", 1e9)}, {false}).fabric.cable_changes.empty());
  }
}

TEST_CASE("a slow cable makes nothing faster, and bytes are conserved: random wiring, all algorithms") {
  Draw draw{SplitMix64{18}};
  int slower = 0, same = 0;
  for (int pass = 0; pass < 200; ++pass) {
    const Cluster c = wired(draw);
    const Fabric healthy = build_fabric(c);
    const int cable = draw.below(static_cast<int>(healthy.cables.size()));
    const double share = draw.between(0.1, 0.9);
    const std::string name = cable_name(healthy, cable);
    INFO("pass " << pass << ": " << c.fabric.kind << ", " << name << " at " << share);
    const Fabric slow = build_fabric(
        with_slow_cables(c, {slow_cable(name, share * healthy.cables[static_cast<size_t>(cable)].line_Bps)}, {true}));
    const auto ranks = ranks_of(healthy, place_packed(healthy, 2 + draw.below(healthy.node_count - 1)));
    const Group group(healthy, ranks);
    const auto& operations = Choices<Collective>::table();
    const Collective op = operations[static_cast<size_t>(draw.below(static_cast<int>(operations.size())))].second;
    for (const CollectiveAlgorithm& algorithm : algorithms()) {
      if (!algorithm.refusal(group, op).empty() || algorithm.name == "sharp") continue;
      const CollectiveCost before =
          Collectives(healthy, simple_options(std::string(algorithm.name))).cost(op, ranks, 1e9);
      const CollectiveCost after = Collectives(slow, simple_options(std::string(algorithm.name))).cost(op, ranks, 1e9);
      INFO(algorithm.name << " " << choice_name(op));
      CHECK(after.time_s >= before.time_s * (1 - 1e-9));
      // Never worse than all of its traffic over what is left of one cable.
      CHECK(moving_s(after) <= moving_s(before) / share * (1 + 1e-9));
      std::set<int> changed;
      for (int link = 0; link < healthy.cable_links(); ++link)
        if (healthy.link_capacity_Bps(link) != slow.link_capacity_Bps(link)) changed.insert(link);
      CHECK(!changed.empty());
      const bool crossed = std::any_of(before.load.uses.begin(), before.load.uses.end(),
                                       [&](const LinkUse& use) { return changed.count(use.link) > 0; });
      if (!crossed) CHECK(after.time_s == Approx(before.time_s).epsilon(1e-12));
      (after.time_s > before.time_s * (1 + 1e-9) ? slower : same) += 1;
      check_conserved(slow, after);
    }
  }
  CHECK(slower >= 50);
  CHECK(same >= 50);
}
