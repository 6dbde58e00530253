// One load for a whole collective against its single messages, and jobs that share links.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>

#include "../topology/clusters.hpp"
#include "network/busy_engine.hpp"
#include "network/contention.hpp"
#include "network/link_merge.hpp"
#include "network/message_level.hpp"
#include "network/process.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::flat_cluster;
using tw::test::reference_cluster;

namespace {

// A job as the network sees it: it computes, then communicates, `repeats` times.
struct NetworkJob {
  std::string name;
  LoadClass load;        // link ids of the fabric
  double bytes = 0;      // of one communication
  double compute_s = 0;  // before each
  int repeats = 1;
  double begin_s = 0;
};

struct JobOutcome {
  std::string name;
  double alone_s = 0;  // from its begin to its end without the others
  double together_s = 0;
  double slow_down() const { return alone_s > 0 ? together_s / alone_s : 1; }
  std::string bottleneck;  // class of the links that bind it together with the others
  std::string narrowest;   // the link itself
};

// Runs all jobs on one engine on SimGrid: one call a process (see in_child()).
std::vector<JobOutcome> run_together(const Fabric& fabric, const std::vector<NetworkJob>& jobs) {
  std::vector<LoadClass> classes;
  for (const NetworkJob& j : jobs) {
    classes.push_back(j.load);
    classes.back().name = j.name;
  }
  std::vector<LoadClass> fabric_classes = classes;
  const std::vector<Link> links = engine_links(fabric, classes);
  const auto engine = open_engine(links, classes);
  std::vector<JobOutcome> outcomes(jobs.size());
  std::function<void(size_t, int)> turn = [&](size_t j, int done) {
    if (done == jobs[j].repeats) {
      outcomes[j].together_s = engine->now_s() - jobs[j].begin_s;
      return;
    }
    engine->at(engine->now_s() + jobs[j].compute_s, [&, j, done] {
      engine->start(static_cast<int>(j), jobs[j].bytes, [&, j, done] { turn(j, done + 1); });
    });
  };
  for (size_t j = 0; j < jobs.size(); ++j) {
    outcomes[j].name = jobs[j].name;
    outcomes[j].alone_s = jobs[j].repeats * (jobs[j].compute_s + alone_s(links, classes[j], jobs[j].bytes));
    engine->at(jobs[j].begin_s, [&, j] { turn(j, 0); });
  }
  engine->run();
  for (size_t j = 0; j < jobs.size(); ++j) {
    const int link = narrowest_link(links, classes, j);
    if (link < 0) continue;
    outcomes[j].narrowest = links[static_cast<size_t>(link)].name;
    for (size_t u = 0; u < classes[j].uses.size(); ++u)
      if (classes[j].uses[u].link == link) outcomes[j].bottleneck = fabric.link_class(fabric_classes[j].uses[u].link);
  }
  return outcomes;
}

struct Wired {
  std::string name;
  Cluster cluster;
  int nodes;
  double idle = 0.25;  // of the time of a clique, while members that take turns leave links idle
};

// Topologies of at most 8 nodes with at most 2 accelerators each.
std::vector<Wired> cases() {
  std::vector<Wired> list;
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 2;
  c.fabric.units = 2;
  c.fabric.nodes_per_unit = 4;
  list.push_back({"scalable units", c, 8});
  Cluster rails = c;
  rails.fabric.wiring = NicWiring::rails;
  rails.fabric.spines = rails.fabric.uplinks_per_leaf = 1;
  list.push_back({"rails, one spine", rails, 8});
  Cluster torus = c;
  torus.fabric.kind = "torus";
  torus.fabric.dimensions = {4, 2};
  list.push_back({"torus 4 x 2", torus, 8});
  Cluster dragonfly = c;
  dragonfly.fabric.kind = "dragonfly";
  dragonfly.fabric.switches_per_group = 2;
  list.push_back({"dragonfly", dragonfly, 8});
  Cluster pods = c;
  pods.fabric.kind = "fat_tree";
  pods.fabric.units = 4;
  pods.fabric.nodes_per_unit = 2;
  pods.fabric.spines = pods.fabric.uplinks_per_leaf = 4;
  pods.fabric.spine_groups = 2;
  pods.fabric.uplinks_per_leaf = pods.fabric.uplinks_per_spine = pods.fabric.cores = 2;
  list.push_back({"three levels", pods, 8});
  Cluster slow = flat_cluster(6);
  slow.fabric.cable_changes = {{"node-2 nic 0", bytes_per_second(20e9)}};
  list.push_back({"one leaf, a slow adapter", slow, 6});
  Cluster rail_only = rails;
  rail_only.fabric.units = 1;
  rail_only.fabric.spines = rail_only.fabric.uplinks_per_leaf = 0;
  list.push_back({"rails that do not meet", rail_only, 4});
  Cluster planes = pods;  // two adapters an accelerator, each in a plane of its own
  planes.node.nics = 4;
  planes.fabric.units = 2;
  planes.fabric.leaves_per_unit = 4;
  planes.fabric.wiring = NicWiring::rails;
  planes.fabric.spines = 8;
  planes.fabric.spine_groups = 4;
  planes.fabric.spine_grouping = SpineGrouping::rails;
  planes.fabric.cores = planes.fabric.uplinks_per_spine = 0;
  list.push_back({"planes", planes, 4});
  Cluster graph = c;  // a square of switches and a cable across, one node less on the last
  graph.fabric = {};
  graph.fabric.kind = "graph";
  graph.fabric.units = 1;
  graph.fabric.nodes_per_unit = 7;
  for (const char* name : {"a", "b", "c", "d"}) graph.fabric.graph_switches.push_back({name, 1, -1, 16});
  for (int n = 0; n < 7; ++n)
    graph.fabric.graph_cables.push_back(
        {fmt::format("node-{}", n), std::string(1, static_cast<char>('a' + n / 2)), 2, {}});
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "a"}, {"a", "c"}})
    graph.fabric.graph_cables.push_back({from, to, 1, bytes_per_second(30e9)});
  list.push_back({"graph", graph, 7, 0.5});  // most of it goes over two cables, which not all turns use
  return list;
}

}  // namespace

TEST_CASE("levels 1, 2 and 3 agree up to the latency of the rounds: nine topologies, every algorithm and collective") {
  constexpr int kPieces = 64;
  int tried = 0;
  for (const Wired& c : cases()) {
    const Fabric f = build_fabric(c.cluster);
    const auto ranks = ranks_of(f, place_packed(f, c.nodes));
    for (const CollectiveAlgorithm& algorithm : algorithms())
      for (const auto& [name, op] : Choices<Operation>::table()) {
        const Group group(f, ranks);
        if (!algorithm.refusal(group, op).empty()) continue;
        CollectiveOptions o;
        o.protocol = Protocol::simple;
        o.algorithm = algorithm.name;
        const double bytes = 256e6;
        const CollectiveCost cost = Collectives(f, o).cost(op, ranks, bytes);
        const ChildResult load = in_child([&] { return fmt::format("{:.17g}", load_level_s(f, cost)); }, 120);
        const ChildResult messages =
            in_child([&] { return fmt::format("{:.17g}", message_level_s(f, op, ranks, bytes, o, kPieces)); }, 120);
        INFO(c.name << ", " << algorithm.name << ", " << name << ": level 1 " << cost.time_s << ", 2 " << load.value
                    << load.error << ", 3 " << messages.value << messages.error);
        REQUIRE(messages.code == ExitCode::done);
        const double level2_s = std::stod(load.value), level3_s = std::stod(messages.value);
        CHECK(level2_s == Approx(cost.time_s).epsilon(1e-9));
        // The messages cannot be faster than the load, and are slower by at most the latency of all rounds, or what a
        // pipeline of pieces needs to fill: each stage of it holds one.
        const FlowPlan plan = algorithm.plan(group, op);
        const double moving_s = cost.time_s - cost.load.latency_s;
        const bool pieces = plan.stages.size() > 1 || plan.stages.front().relays;
        double depth = 0;
        bool in_turn = false;  // members of a clique take turns, which leaves links idle here and there
        for (const Stage& s : plan.stages) {
          depth += s.relays ? 1 + static_cast<double>(ranks.size()) : 1;
          in_turn = in_turn || !s.cliques.empty();
        }
        const double fill_s = pieces ? moving_s * 2 * depth / kPieces + kPieces * 30e-6 : 0,
                     // Where cliques and rings follow one another, the stages hardly overlap.
            idle_s = in_turn ? (plan.stages.size() > 1 ? 1.0 : c.idle) * moving_s : 0;
        CHECK(level3_s >= moving_s * (1 - 1e-6));
        CHECK(level3_s <= moving_s * (1 + 1e-6) + fill_s + idle_s +
                              std::max(cost.load.latency_s, (2.0 * static_cast<double>(ranks.size())) * 17e-6));
        ++tried;
      }
  }
  CHECK(tried >= 90);
}

TEST_CASE("bytes are conserved: what enters a node or a switch leaves it, by every algorithm") {
  for (const Wired& c : cases()) {
    const Fabric f = build_fabric(c.cluster);
    const auto ranks = ranks_of(f, place_packed(f, c.nodes));
    const Group group(f, ranks);
    for (const CollectiveAlgorithm& algorithm : algorithms())
      for (const auto& [name, op] : Choices<Operation>::table()) {
        if (!algorithm.refusal(group, op).empty() || algorithm.name == "sharp") continue;  // switches add up there
        const bool directed = op == Operation::broadcast || op == Operation::send_recv;
        CollectiveOptions o;
        o.protocol = Protocol::simple;
        o.algorithm = algorithm.name;
        const CollectiveCost cost = Collectives(f, o).cost(op, ranks, 1);
        const double efficiency = algorithm.name == "tree" ? 0.92 : 1;
        std::vector<double> in(f.vertices.size(), 0), out = in;
        for (const LinkUse& use : cost.load.uses) {
          if (use.link >= f.cable_links()) continue;
          const Cable& cable = f.cables[static_cast<size_t>(use.link / 2)];
          const int from = use.link % 2 == 0 ? cable.a : cable.b, to = use.link % 2 == 0 ? cable.b : cable.a;
          out[static_cast<size_t>(from)] += use.weight;
          in[static_cast<size_t>(to)] += use.weight;
        }
        INFO(c.name << ", " << algorithm.name << ", " << name);
        double sent = 0, between = 0;
        for (size_t v = 0; v < in.size(); ++v) {
          if (f.vertices[v].kind == VertexKind::node) {
            sent += out[v];
            if (!directed) CHECK(in[v] == Approx(out[v]).epsilon(1e-9).margin(1e-12));
          } else {
            CHECK(in[v] == Approx(out[v]).epsilon(1e-9).margin(1e-12));
          }
        }
        for (const Stage& s : algorithm.plan(group, op).stages) {
          for (const Flow& flow : s.flows)
            if (flow.from >= 0 && flow.to >= 0 && group.domain_of(flow.from) != group.domain_of(flow.to))
              between += flow.share;
          for (const Clique& q : s.cliques)
            for (const int a : q.members)
              for (const int b : q.members)
                if (group.domain_of(a) != group.domain_of(b)) between += q.share;
        }
        const double nvls = algorithm.name == "nvls" && group.count() > 1 ? 0.92 : 1;
        CHECK(sent * efficiency * nvls == Approx(between).epsilon(1e-9).margin(1e-12));
      }
  }
}

TEST_CASE("a program that waits for itself is a dead-lock, and its messages are named") {
  const ChildResult r = in_child([] {
    MessageProgram p;
    p.classes = {{"node-0 GPU 0 to node-1 GPU 0", {{0, 1}}, 0}, {"node-1 GPU 0 to node-0 GPU 0", {{0, 1}}, 0}};
    p.messages = {{0, 1, 1, {1}}, {1, 1, 1, {0}}};
    const auto engine = open_engine({{"l", 1}}, p.classes);
    return fmt::format("{}", run_program(*engine, p));
  });
  CHECK(r.code == ExitCode::simulation_failed);
  CHECK_THAT(r.error, Catch::Contains("dead-lock: 0 of 2") && Catch::Contains("node-1 GPU 0 to node-0 GPU 0"));
}

TEST_CASE("two jobs that share uplinks slow each other down as calculated") {
  // One uplink of 50 GB/s a leaf. Each job is a ring over two units: 4 rails of 25 GB/s on the uplink, alone 100 / 50 =
  // twice the time of its adapters; together both jobs share it: each takes twice as long.
  Cluster c = reference_cluster();
  c.fabric.spines = c.fabric.uplinks_per_leaf = 1;
  const Fabric f = build_fabric(c);
  const auto text = in_child([&] {
    CollectiveOptions o;
    o.algorithm = "ring";
    Collectives model(f, o);
    std::vector<NetworkJob> jobs;
    for (const auto& [name, nodes] :
         {std::pair{"first", std::vector<int>{0, 1, 6, 7}}, std::pair{"second", std::vector<int>{2, 3, 8, 9}}}) {
      const CollectiveCost cost = model.cost(Operation::all_reduce, ranks_of(f, nodes), 8e9);
      jobs.push_back({name, cost.load, 8e9, 0, 1, 0});
    }
    jobs.push_back({"in its unit", model.cost(Operation::all_reduce, ranks_of(f, {4, 5}), 8e9).load, 8e9, 0, 1, 0});
    std::string out;
    for (const JobOutcome& j : run_together(f, jobs))
      out += fmt::format("{} {:.6f} {}\n", j.name, j.slow_down(), j.bottleneck);
    return out;
  });
  INFO(text.error);
  CHECK_THAT(text.value, Catch::Contains("first 1.99") && Catch::Contains("second 1.99"));
  CHECK_THAT(text.value, Catch::Contains("leaf-spine"));
  CHECK_THAT(text.value, Catch::Contains("in its unit 1.0000"));
}

TEST_CASE("two jobs on one spine get what max-min by hand gives them, to 1e-9") {
  // One uplink of 50 GB/s a leaf. A job is a ring over two nodes in each of two units: 4 of its 8 channels leave by
  // each leaf, so that its uplink carries 2 x 31 / 32 / 2 bytes for each byte of the buffer, and an adapter an eighth
  // of 2 x 31 / 32.
  constexpr double up = 2.0 * 31 / 32 / 2, nic = 2.0 * 31 / 32 / 8, spine = 50e9;
  Cluster c = reference_cluster();
  c.fabric.spines = c.fabric.uplinks_per_leaf = 1;
  const auto times = [](const Cluster& cluster, double second_bytes) {
    const Fabric f = build_fabric(cluster);
    CollectiveOptions o;
    o.algorithm = "ring";
    o.protocol = Protocol::simple;
    Collectives model(f, o);
    std::vector<NetworkJob> jobs;
    for (const auto& [nodes, bytes] : {std::pair{std::vector<int>{0, 1, 6, 7}, 8e9}, {{2, 3, 8, 9}, second_bytes}})
      jobs.push_back({"job", model.cost(Operation::all_reduce, ranks_of(f, nodes), bytes).load, bytes, 0, 1, 0});
    std::vector<double> out;
    const ChildResult text = in_child([&] {
      std::string all;
      for (const JobOutcome& j : run_together(f, jobs)) all += fmt::format("{:.17g} ", j.together_s);
      return all;
    });
    REQUIRE(text.error.empty());
    const size_t gap = text.value.find(' ');
    return std::vector<double>{std::stod(text.value.substr(0, gap)) - jobs[0].load.latency_s,
                               std::stod(text.value.substr(gap)) - jobs[1].load.latency_s};
  };
  // Equal: half each. A quarter of the size: half each until it is done, then all.
  const std::vector<double> equal = times(c, 8e9), quarter = times(c, 2e9);
  CHECK(equal[0] == Approx(2 * 8e9 * up / spine).epsilon(1e-9));
  CHECK(equal[1] == Approx(equal[0]).epsilon(1e-12));
  CHECK(quarter[1] == Approx(2 * 2e9 * up / spine).epsilon(1e-9));
  CHECK(quarter[0] == Approx(quarter[1] + 6e9 * up / spine).epsilon(1e-9));
  // An adapter of 5 GB/s holds the second job below its half: the first has what is left.
  c.fabric.cable_changes = {{"node-8 nic 0", bytes_per_second(5e9)}};
  const double held = 5e9 / nic, rest = spine / up - held;
  const std::vector<double> uneven = times(c, 8e9);
  CHECK(held < spine / up / 2);
  CHECK(uneven[0] == Approx(8e9 / rest).epsilon(1e-9));
  CHECK(uneven[1] == Approx(8e9 / held).epsilon(1e-9));
}

TEST_CASE("storage traffic to a job's nodes takes its share of their adapters") {
  const Fabric f = build_fabric(reference_cluster());
  const auto r = in_child([&] {
    CollectiveOptions o;
    o.algorithm = "ring";
    Collectives model(f, o);
    const LoadClass reads = traffic_load(model.router(), f, "reads", {12, 13}, {0, 1, 2, 3});
    const CollectiveCost cost = model.cost(Operation::all_reduce, ranks_of(f, {0, 1, 2, 3}), 8e9);
    const auto jobs = run_together(f, {{"job", cost.load, 8e9, 0, 1, 0}, {"reads", reads, 400e9, 0, 1, 0}});
    return fmt::format("{:.9f} {:.9f} {:.9f} {}", jobs[0].together_s, cost.load.latency_s, jobs[1].together_s,
                       jobs[0].bottleneck);
  });
  INFO(r.error << r.value);
  double job_s = 0, latency_s = 0, reads_s = 0;
  char link[16] = "";
  REQUIRE(std::sscanf(r.value.c_str(), "%lf %lf %lf %15s", &job_s, &latency_s, &reads_s, link) == 4);
  CHECK(std::string(link) == "NIC");
  // Two senders fill their adapters of 25 GB/s and reach four nodes: half as much on each adapter there. Both grow
  // alike in bytes of their own narrowest link until job + reads / 2 = 25 GB/s: 16.67 GB/s each. The job alone moves 2
  // x 31/32 x 1 GB over each adapter in 77.5 ms, now in 116.25 ms; the reads then have their 50 GB of an adapter less
  // what they moved meanwhile.
  const double moving_s = 2 * 31.0 / 32 * 1e9 / 25e9;
  CHECK(job_s == Approx(1.5 * moving_s + latency_s).epsilon(2e-3));
  CHECK(reads_s == Approx(2 + 0.5 * moving_s).epsilon(2e-3));
}

TEST_CASE("neighbours on an engine: a job's transfers share with them, and their turns are told") {
  // One link of 50 GB/s: the job sends 5 GB twice, each after 0.1 s of computing; the neighbour sends 1 GB over and
  // over.
  const auto r = in_child([] {
    const std::vector<Link> links{{"shared", 50e9}};
    const auto engine = open_engine(links, {{"job", {{0, 1}}, 0}, {"neighbour", {{0, 1}}, 0}});
    BusyEngine busy(*engine, {{"neighbour", 1, 1e9, 0}});
    std::string out;
    for (const bool beside : {false, true}) {
      busy.let_neighbours_run(beside);
      const double begin_s = busy.now_s();
      double end_s = 0;
      busy.at(begin_s + 0.1, [&] {
        busy.start(0, 5e9,
                   [&] { busy.at(busy.now_s() + 0.1, [&] { busy.start(0, 5e9, [&] { end_s = busy.now_s(); }); }); });
      });
      busy.run();
      out += fmt::format("{:.9f} ", end_s - begin_s);
    }
    const NeighbourTurns t = busy.turns().front();
    return out + fmt::format("{} {:.9f}", t.turns, t.time_s / t.turns);
  });
  INFO(r.error << r.value);
  double alone_s = 0, together_s = 0, turn_s = 0;
  int turns = 0;
  REQUIRE(std::sscanf(r.value.c_str(), "%lf %lf %d %lf", &alone_s, &together_s, &turns, &turn_s) == 4);
  CHECK(alone_s == Approx(2 * (0.1 + 0.1)).epsilon(1e-9));
  CHECK(together_s == Approx(2 * (0.1 + 0.2)).epsilon(1e-6));  // half of the link while it sends
  // In 0.2 s of the whole link and 0.4 s of half of it the neighbour moves 20 GB: 20 turns of 30 ms in the mean.
  CHECK(turns >= 18);
  CHECK(turns <= 21);
  CHECK(turn_s == Approx(0.6 / 20).epsilon(0.06));
}
