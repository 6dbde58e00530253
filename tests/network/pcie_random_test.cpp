// Random PCIe trees: what every link inside the nodes carries is the sum of the flows through it, by a walk of our own.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "../topology/clusters.hpp"
#include "core/random.hpp"
#include "network/collective.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::flat_cluster;

namespace {

struct Dice {
  SplitMix64 stream;
  int below(int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); }
  double between(double low, double high) { return low + (high - low) * uniform(stream); }
};

// Two nodes without NVLink, each a forest of switches over one or two sockets, devices anywhere below them.
Cluster random_tree(Dice& dice) {
  Cluster c = flat_cluster(2);
  c.node.gpus = 2 + dice.below(5);
  c.node.nics = 1 + dice.below(4);
  c.node.nic_bandwidth = bytes_per_second(dice.between(5e9, 60e9));
  c.node.nvlink.bandwidth = bytes_per_second(1e9);
  c.node.nvlink.island = 1;
  c.node.accelerator.host_bandwidth = bytes_per_second(dice.between(10e9, 60e9));
  c.node.pcie.inter_socket = bytes_per_second(dice.between(5e9, 60e9));
  std::vector<PcieSwitch>& all = c.node.pcie.switches;
  const int count = 1 + dice.below(6), sockets = 1 + dice.below(std::min(2, count));
  for (int s = 0; s < count; ++s) {
    PcieSwitch made;
    made.name = fmt::format("switch {}", s);
    made.uplink = bytes_per_second(dice.between(5e9, 60e9));
    made.socket = s < sockets ? s : dice.below(sockets);
    if (s >= sockets && dice.below(3) > 0) {
      const int above = dice.below(s);
      made.above = all[static_cast<size_t>(above)].name;
      made.socket = all[static_cast<size_t>(above)].socket;
    }
    all.push_back(std::move(made));
  }
  for (int g = 0; g < c.node.gpus; ++g) all[static_cast<size_t>(dice.below(count))].gpus.push_back(g);
  for (int k = 0; k < c.node.nics; ++k) all[static_cast<size_t>(dice.below(count))].nics.push_back(k);
  return c;
}

// Names of the shared links between two devices: up to where both hang below one switch, else over the sockets.
std::vector<std::string> walk(const PcieTree& tree, int from, int to) {
  const auto index = [&](const std::string& name) {
    return static_cast<int>(
        std::find_if(tree.switches.begin(), tree.switches.end(), [&](const PcieSwitch& s) { return s.name == name; }) -
        tree.switches.begin());
  };
  const auto chain = [&](int at) {
    std::vector<int> list{at};
    while (!tree.switches[static_cast<size_t>(list.back())].above.empty())
      list.push_back(index(tree.switches[static_cast<size_t>(list.back())].above));
    return list;
  };
  const std::vector<int> up = chain(from), down = chain(to);
  std::vector<std::string> links;
  const auto in = [](const std::vector<int>& list, int s) {
    return std::find(list.begin(), list.end(), s) != list.end();
  };
  bool meet = false;
  for (const int s : up) {
    meet = meet || in(down, s);
    if (!in(down, s)) links.push_back(tree.switches[static_cast<size_t>(s)].name + " up");
  }
  for (const int s : down)
    if (!in(up, s)) links.push_back(tree.switches[static_cast<size_t>(s)].name + " down");
  const int a = tree.switches[static_cast<size_t>(from)].socket, b = tree.switches[static_cast<size_t>(to)].socket;
  if (!meet && a != b) {
    links.push_back(fmt::format("socket {} out", a));
    links.push_back(fmt::format("socket {} in", b));
  }
  return links;
}

using CarriedBytes = std::map<std::string, double>;  // "node-0 switch 1 up" -> bytes for each byte of the buffer

void send_by_hand(const Group& g, int a, int b, double share, CarriedBytes& out) {
  const Fabric& f = g.fabric;
  const Rank &from = g.ranks[static_cast<size_t>(a)], &to = g.ranks[static_cast<size_t>(b)];
  const auto pass = [&](int node, int at, int end, double part) {
    for (const std::string& link : walk(f.pcie, at, end)) out[fmt::format("node-{} {}", node, link)] += part;
  };
  const auto place = [](const std::vector<int>& of, int device) { return of[static_cast<size_t>(device)]; };
  if (from.node == to.node) return pass(from.node, place(f.gpu_place, from.gpu), place(f.gpu_place, to.gpu), share);
  for (const int k : g.adapters(a))
    pass(from.node, place(f.gpu_place, from.gpu), place(f.nic_place, k),
         share / static_cast<double>(g.adapters(a).size()));
  for (const int k : g.adapters(b))
    pass(to.node, place(f.nic_place, k), place(f.gpu_place, to.gpu), share / static_cast<double>(g.adapters(b).size()));
}

CarriedBytes by_hand(const Group& g, const FlowPlan& plan) {
  CarriedBytes out;
  for (const Stage& stage : plan.stages) {
    for (const Flow& flow : stage.flows) {
      const int via = flow.via < 0 ? flow.from : flow.via;
      if (via != flow.from) send_by_hand(g, flow.from, via, flow.share, out);
      send_by_hand(g, via, flow.to, flow.share, out);
    }
    for (const Clique& clique : stage.cliques)
      for (const int a : clique.members)
        for (const int b : clique.members)
          if (a != b) send_by_hand(g, a, b, clique.share, out);
  }
  return out;
}

}  // namespace

TEST_CASE("random PCIe trees: bytes on every link are the sum of its flows, and no link is outrun") {
  int loaded = 0;
  for (int n = 0; n < 150; ++n) {
    Dice dice{random_stream(17, "PCIe trees", static_cast<uint64_t>(n))};
    const Fabric f = build_fabric(random_tree(dice));
    const auto ranks = ranks_of(f, dice.below(3) == 0 ? std::vector<int>{0} : std::vector<int>{0, 1});
    const Group group(f, ranks);
    for (const CollectiveAlgorithm& algorithm : algorithms())
      for (const auto& [name, op] : Choices<Operation>::table()) {
        if (!algorithm.refusal(group, op).empty() || algorithm.uses_switches) continue;
        INFO("tree " << n << ", " << algorithm.name << ", " << name);
        CollectiveOptions o;
        o.algorithm = algorithm.name;
        o.protocol = Protocol::simple;
        const CollectiveCost cost = Collectives(f, o).cost(op, ranks, 1e9);
        const double efficiency =
            default_library().algorithms.at(algorithm.name == "tree" ? "tree" : "ring").simple->efficiency;
        CarriedBytes expected = by_hand(group, algorithm.plan(group, op));
        double narrowest_s = 0;
        for (const LinkUse& use : cost.load.uses) {
          narrowest_s = std::max(narrowest_s, 1e9 * use.weight / f.link_capacity_Bps(use.link));
          if (use.link < f.pcie_links()) continue;
          const auto found = expected.find(f.link_name(use.link));
          REQUIRE(found != expected.end());
          CHECK(use.weight * efficiency == Approx(found->second).epsilon(1e-9));
          expected.erase(found);
          ++loaded;
        }
        CHECK(expected.empty());
        CHECK(cost.time_s >= narrowest_s * (1 - 1e-12));
        CHECK(cost.time_s - cost.load.latency_s == Approx(narrowest_s).epsilon(1e-9));
      }
  }
  CHECK(loaded > 5000);
}

TEST_CASE(
    "random PCIe trees: every accelerator has adapters, the nearest, and those that are equally near share them") {
  for (int n = 0; n < 300; ++n) {
    Dice dice{random_stream(18, "PCIe trees", static_cast<uint64_t>(n))};
    const Fabric f = build_fabric(random_tree(dice));
    INFO("tree " << n);
    // Across the sockets is farther than any way inside one.
    const auto distance = [&](int gpu, int nic) {
      const int a = f.gpu_place[static_cast<size_t>(gpu)], b = f.nic_place[static_cast<size_t>(nic)];
      const auto socket = [&](int s) { return f.pcie.switches[static_cast<size_t>(s)].socket; };
      return static_cast<int>(walk(f.pcie, a, b).size()) + (socket(a) == socket(b) ? 0 : 1000);
    };
    std::map<std::vector<int>, std::map<int, int>> users;  // of adapters that are the nearest ones together
    for (int g = 0; g < f.gpus; ++g) {
      int least = distance(g, 0);
      for (int k = 1; k < f.nics; ++k) least = std::min(least, distance(g, k));
      std::vector<int> nearest;
      for (int k = 0; k < f.nics; ++k)
        if (distance(g, k) == least) nearest.push_back(k);
      const std::vector<int>& own = f.nics_beside[static_cast<size_t>(g)];
      CHECK(!own.empty());
      for (const int k : own) {
        CHECK(distance(g, k) == least);
        ++users[nearest][k];
      }
    }
    for (const auto& [nearest, of_each] : users) {
      int most = 0, fewest = 1000;
      for (const auto& [nic, count] : of_each) most = std::max(most, count), fewest = std::min(fewest, count);
      CHECK(most - fewest <= 1);
    }
  }
}
