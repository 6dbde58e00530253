#include "power/network_rule.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "core/random.hpp"
#include "core/sum.hpp"
#include "power/rule_shares.hpp"
#include "reference_cluster.hpp"
#include "topology/fabric.hpp"

namespace {

using namespace tw;

std::vector<int> nodes_from(int first, int n) {
  std::vector<int> nodes(static_cast<size_t>(n));
  std::iota(nodes.begin(), nodes.end(), first);
  return nodes;
}

NetworkJob first_nodes(int n) {
  return {nodes_from(0, n), {}};
}

const std::vector<NetworkRule> kRules{NetworkRule::as_published, NetworkRule::as_stated, NetworkRule::whole_switches,
                                      NetworkRule::by_load};

// Three levels: 4 units of 4 nodes with 4 rail leaves each; `grouping` says whether pods or rails share spines.
Cluster three_levels(SpineGrouping grouping) {
  Cluster c = test::reference_cluster(4);
  c.fabric.kind = "fat_tree";
  c.node.nics = 4;
  c.fabric.nodes_per_unit = 4;
  c.fabric.leaves_per_unit = 4;
  c.fabric.wiring = NicWiring::rails;
  c.fabric.spines = 8;
  c.fabric.uplinks_per_leaf = 4;
  c.fabric.spine_groups = 4;
  c.fabric.spine_grouping = grouping;
  c.fabric.uplinks_per_spine = 8;
  c.fabric.cores = 4;
  return c;
}

Cluster torus() {
  Cluster c = test::reference_cluster(1);
  c.fabric.kind = "torus";
  c.fabric.dimensions = {4, 3, 2};
  return c;
}

Cluster dragonfly() {
  Cluster c = test::reference_cluster(5);
  c.fabric.kind = "dragonfly";
  c.fabric.nodes_per_unit = 4;
  c.fabric.switches_per_group = 2;
  c.fabric.global_links_per_switch = 2;
  return c;
}

// A chain of three switches with two nodes each, and a spare switch that no shortest way needs.
Cluster graph() {
  Cluster c = test::reference_cluster(1);
  c.fabric.kind = "graph";
  c.node.nics = 1;
  for (const char* name : {"a", "b", "c", "spare"}) c.fabric.graph_switches.push_back({name, 1, -1, 8});
  for (int n = 0; n < 6; ++n)
    c.fabric.graph_cables.push_back(
        {"node-" + std::to_string(n), std::string(1, static_cast<char>('a' + n / 2)), 1, bytes_per_second(50e9)});
  for (const auto& [from, to] :
       {std::pair{"a", "b"}, std::pair{"b", "c"}, std::pair{"a", "spare"}, std::pair{"spare", "b"}})
    c.fabric.graph_cables.push_back({from, to, 2, bytes_per_second(50e9)});
  return c;
}

std::vector<std::pair<std::string, Cluster>> all_kinds() {
  return {{"two levels", test::reference_cluster(4)},
          {"three levels by rails", three_levels(SpineGrouping::rails)},
          {"three levels by pods", three_levels(SpineGrouping::units)},
          {"torus", torus()},
          {"dragonfly", dragonfly()},
          {"graph", graph()}};
}

// The nodes of a cluster dealt to a few jobs at random, some in runs and some scattered, all or some of them.
std::vector<NetworkJob> random_jobs(const Fabric& fabric, uint64_t seed, bool all) {
  auto stream = random_stream(seed, "random jobs", 0);
  const auto count = 1 + static_cast<size_t>(uniform(stream) * 6);
  std::vector<NetworkJob> jobs(count);
  const bool scattered = uniform(stream) < 0.5;
  size_t now = 0;
  for (int n = 0; n < fabric.node_count; ++n) {
    if (!all && uniform(stream) < 0.3) continue;
    if (scattered || uniform(stream) < 0.25) now = static_cast<size_t>(uniform(stream) * static_cast<double>(count));
    jobs[now].nodes.push_back(n);
  }
  for (NetworkJob& job : jobs) {
    job.cable_Bps.assign(fabric.cables.size(), 0);
    const std::vector<int> reached = switches_reached(fabric, {job.nodes, {}});
    const std::set<int> mine(reached.begin(), reached.end());
    const std::set<int> nodes(job.nodes.begin(), job.nodes.end());
    for (size_t c = 0; c < fabric.cables.size(); ++c)
      if (mine.count(fabric.cables[c].b) != 0 &&
          (mine.count(fabric.cables[c].a) != 0 || nodes.count(fabric.cables[c].a) != 0))
        job.cable_Bps[c] = uniform(stream) * fabric.cables[c].capacity_Bps / static_cast<double>(count);
  }
  return jobs;
}

}  // namespace

TEST_CASE("named rules reproduce the stated and the published switch power") {
  const Fabric fabric = build_fabric(test::reference_cluster());
  const auto w = [&](NetworkRule rule, int n) { return *network_power_w(rule, fabric, {first_nodes(n)}); };
  CHECK(w(NetworkRule::as_published, 1) == 0);
  CHECK(w(NetworkRule::as_published, 8) == 16100);
  CHECK(w(NetworkRule::as_published, 9) == 16100);
  CHECK(w(NetworkRule::as_published, 64) == 59570);
  CHECK(w(NetworkRule::as_stated, 1) == 0);
  CHECK(w(NetworkRule::as_stated, 8) == 4830);
  CHECK(w(NetworkRule::as_stated, 9) == 5031.25);
  CHECK(w(NetworkRule::as_stated, 64) == 30590);
  CHECK(w(NetworkRule::whole_switches, 1) == 0);
  CHECK(w(NetworkRule::whole_switches, 8) == 20 * 1610);
  CHECK(w(NetworkRule::whole_switches, 64) == 38 * 1610);
  // Six nodes of one unit never leave their two leaves.
  CHECK(w(NetworkRule::whole_switches, 6) == 2 * 1610);
  CHECK(w(NetworkRule::as_stated, 6) == 2 * 24 / 64.0 * 1610);
}

TEST_CASE("by_load needs traffic and never exceeds the ports it uses") {
  const Fabric fabric = build_fabric(test::reference_cluster());
  NetworkJob job = first_nodes(8);
  CHECK_FALSE(network_power_w(NetworkRule::by_load, fabric, {job}).has_value());
  CHECK(*network_power_w(NetworkRule::by_load, fabric, {first_nodes(1)}) == 0);
  const std::vector<int> reached = switches_reached(fabric, job);
  for (const Cable& cable : fabric.cables) {
    const bool mine = (cable.a < 8 || std::count(reached.begin(), reached.end(), cable.a) > 0) &&
                      std::count(reached.begin(), reached.end(), cable.b) > 0;
    job.cable_Bps.push_back(mine ? 2 * cable.capacity_Bps : 0);
  }
  CHECK(*network_power_w(NetworkRule::by_load, fabric, {job}) ==
        Approx(*network_power_w(NetworkRule::as_stated, fabric, {job})));
  for (double& load : job.cable_Bps) load /= 4;
  CHECK(*network_power_w(NetworkRule::by_load, fabric, {job}) == Approx(4830.0 / 4));
}

TEST_CASE("only the published rule is undefined on some fabrics") {
  for (const auto& [name, cluster] : all_kinds()) {
    INFO(name);
    const Fabric fabric = build_fabric(cluster);
    NetworkJob job = first_nodes(fabric.node_count / 2);
    job.cable_Bps.assign(fabric.cables.size(), 0);
    for (const NetworkRule rule : kRules)
      CHECK(network_power_w(rule, fabric, {job}).has_value() ==
            (rule != NetworkRule::as_published || name == "two levels"));
    CHECK(shares_by_rule(fabric, {job}).size() == 4);
  }
}

TEST_CASE("shares of random jobs add up to the switches that they reach") {
  for (const auto& [name, cluster] : all_kinds()) {
    const Fabric fabric = build_fabric(cluster);
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const bool all = seed % 4 != 0;
      const std::vector<NetworkJob> jobs = random_jobs(fabric, seed, all);
      std::set<int> reached;
      std::vector<std::set<int>> of_job;
      for (const NetworkJob& job : jobs) {
        const std::vector<int> list = switches_reached(fabric, job);
        of_job.emplace_back(list.begin(), list.end());
        reached.insert(list.begin(), list.end());
      }
      for (const NetworkRule rule : kRules) {
        const auto shares = apportion(rule, fabric, jobs);
        if (!shares) continue;
        INFO(name << ", seed " << seed << ", rule " << static_cast<int>(rule));
        std::map<int, double> sum;
        Sum together_w;
        for (size_t j = 0; j < jobs.size(); ++j)
          for (const SwitchShare& share : (*shares)[j]) {
            CHECK(share.share >= 0);
            CHECK(of_job[j].count(share.vertex) == 1);  // nobody pays for what its traffic cannot reach
            sum[share.vertex] += share.share;
            together_w.add(share.watts);
          }
        for (const auto& [vertex, share] : sum) CHECK(share <= 1 + 1e-12);
        if (!all) continue;
        CHECK(together_w.value() == Approx(1610.0 * static_cast<double>(reached.size())).epsilon(1e-12));
        if (jobs.size() == 1) CHECK(reached.size() + (name == "graph" ? 1 : 0) >= sum.size());
      }
    }
  }
}

TEST_CASE("a job reaches what lies between any two of its nodes: all pairs on a torus") {
  Cluster cluster = torus();
  cluster.fabric.dimensions = {7, 6};
  const Fabric fabric = build_fabric(cluster);
  const auto apart = [](int a, int b, int size) { return std::min((a - b + size) % size, (b - a + size) % size); };
  const auto distance = [&](int a, int b) { return apart(a % 7, b % 7, 7) + apart(a / 7, b / 7, 6); };
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    auto stream = random_stream(seed, "nodes", 0);
    std::vector<int> nodes;  // every fourth, or a run of them
    for (int n = 0; n < 42; ++n)
      if (seed % 2 == 0 ? uniform(stream) < 0.25 : n >= static_cast<int>(seed) / 3 && n < static_cast<int>(seed))
        nodes.push_back(n);
    std::set<std::string> expected, found;
    for (const int a : nodes)
      for (const int b : nodes)
        for (int v = 0; v < 42; ++v)
          if (nodes.size() > 1 && distance(a, v) + distance(v, b) == distance(a, b))
            expected.insert("router-" + std::to_string(v));
    for (const int v : switches_reached(fabric, {nodes, {}}))
      found.insert(fabric.vertices[static_cast<size_t>(v)].name);
    CHECK(found == expected);
  }
}

TEST_CASE("a job does not reach what no shortest way between its nodes needs") {
  const auto names = [](const Cluster& cluster, std::vector<int> nodes) {
    const Fabric fabric = build_fabric(cluster);
    std::set<std::string> list;
    for (const int v : switches_reached(fabric, {std::move(nodes), {}}))
      list.insert(fabric.vertices[static_cast<size_t>(v)].name);
    return list;
  };
  CHECK(names(graph(), {0, 4}) == std::set<std::string>{"a", "b", "c"});
  CHECK(names(graph(), {0, 1}) == std::set<std::string>{"a"});
  CHECK(names(torus(), {0, 2}) == std::set<std::string>{"router-0", "router-1", "router-2", "router-3"});
  // By rails every unit meets in the spines of its rail; by pods two units meet in the cores.
  CHECK(names(three_levels(SpineGrouping::rails), {0, 4}).size() == 8 + 8);
  CHECK(names(three_levels(SpineGrouping::units), {0, 4}).size() == 8 + 4 + 4);
  CHECK(names(three_levels(SpineGrouping::units), {0, 1}).size() == 4);
  Cluster racks = test::reference_cluster(1);
  racks.node.nvlink.nodes = 3;
  CHECK(names(racks, {0, 1, 2}).empty());  // one NVLink domain
  CHECK(names(racks, {2, 3}).size() == 2);
}

TEST_CASE("jobs that fill Eos share the switches that they reach") {
  const Cluster cluster = load<Cluster>(source_folder() + "/topologies/eos-h100.json");
  const Fabric fabric = build_fabric(cluster);
  for (const int size : {8, 64, 576}) {
    std::vector<NetworkJob> jobs;
    for (int first = 0; first < 576; first += size) jobs.push_back({nodes_from(first, size), {}});
    for (const NetworkRule rule : {NetworkRule::as_stated, NetworkRule::whole_switches}) {
      double together_w = 0, alone_w = 0;
      const auto shares = apportion(rule, fabric, jobs);
      for (size_t j = 0; j < jobs.size(); ++j) {
        together_w += network_power_w(fabric, (*shares)[j]);
        alone_w += *network_power_w(rule, fabric, {jobs[j]});
      }
      INFO(size << " nodes, rule " << static_cast<int>(rule));
      // Units of 32 nodes have leaves of their own; between units every rail has its spines; no rail needs a core.
      CHECK(together_w == Approx(1610.0 * (size == 8 ? 144 : 144 + 128)));
      if (rule == NetworkRule::as_stated) CHECK(alone_w <= together_w * (1 + 1e-12));
    }
  }
}

TEST_CASE("failed switches draw nothing and are charged to nobody") {
  Cluster cluster = test::reference_cluster();
  for (int s = 0; s < 8; ++s) cluster.fabric.failed.push_back("spine-" + std::to_string(s));
  const Fabric fabric = build_fabric(cluster);
  CHECK(*network_power_w(NetworkRule::whole_switches, fabric, {first_nodes(64)}) == 30 * 1610);
  CHECK(*network_power_w(NetworkRule::as_published, fabric, {first_nodes(64)}) == Approx((22 + 8 * 60 / 64.0) * 1610));
  CHECK(*network_power_w(NetworkRule::as_stated, fabric, {first_nodes(64)}) < 30590);
}
