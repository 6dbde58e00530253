// Level 3, every message of a step, against level 2, and the bytes that a step puts on the fabric against those of its
// operations, over random plans.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "core/random.hpp"
#include "network/metered_engine.hpp"
#include "step/rank_grid.hpp"
#include "step/step_model.hpp"
#include "step/visit_network.hpp"
#include "study/simulated.hpp"
#include "topology/placement.hpp"
#include "workload/pattern.hpp"

using namespace tw;

namespace {

using Sets = std::vector<std::string>;

Sets small_job(const Sets& more) {
  Sets set{"/cluster=\"topologies/smc-h100.json\"", "/cluster/hosts/noise=null", "/run={\"steps\": 2}",
           "/training/sequence=4096"};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

// Payload that each class of links carries in one step: NIC, leaf-spine, NVLink; both directions together.
using Carried = std::map<std::string, double>;

void carry(const Fabric& f, const network::LoadClass& load, double bytes, Carried& carried) {
  for (const network::LinkUse& use : load.uses) carried[f.link_class(use.link)] += use.weight * bytes;
}

}  // namespace

TEST_CASE("levels 2 and 3 of a step agree up to the rounds: rings, shards, pipelines, experts, contexts") {
  SimulationOptions two, three;
  two.level = 2, three.level = 3;
  struct Shape {
    std::string name, file;
    Sets set;
  };
  const std::vector<Shape> shapes{
      {"rings over 4 nodes",
       kLlama,
       {"/plan/nodes=4", "/plan/tp=8", "/plan/cp=1", "/plan/gbs=8", "/plan/sharding=none"}},
      {"one group of 16 ranks", kLlama, {"/plan/nodes=2", "/plan/tp=1", "/plan/cp=1", "/plan/gbs=16"}},
      {"shards of a node",
       kLlama,
       {"/plan/nodes=4", "/plan/tp=2", "/plan/cp=1", "/plan/gbs=32", "/plan/sharding=zero1", "/plan/shard_group=4"}},
      {"gathered layer by layer",
       kLlama,
       {"/plan/nodes=2", "/plan/tp=2", "/plan/cp=1", "/plan/gbs=16", "/plan/sharding=zero3"}},
      {"a pipeline of 4 stages",
       kLlama,
       {"/plan/nodes=4", "/plan/tp=4", "/plan/pp=4", "/plan/vp=2", "/plan/cp=1", "/plan/gbs=16"}},
      {"contexts over two nodes", kLlama, {"/plan/nodes=4", "/plan/tp=8", "/plan/cp=2", "/plan/gbs=4"}},
      {"experts over two nodes",
       "scenarios/mixtral-8x7b.json",
       {"/plan/nodes=4", "/plan/tp=2", "/plan/ep=8", "/plan/gbs=16", "/plan/sharding=zero1"}},
      {"trees in the network",
       kLlama,
       {"/plan/nodes=2", "/plan/tp=4", "/plan/cp=1", "/plan/gbs=8", "/plan/sharding=none", "/software/nvls=false"}}};
  for (const Shape& s : shapes) {
    const Result loads = result(s.file, small_job(s.set), two), messages = result(s.file, small_job(s.set), three);
    INFO(s.name << ": level 2 " << *loads.step.time_s << " s, level 3 " << *messages.step.time_s << " s");
    // Above, by what a tree of pieces needs to fill; below, since single messages of one exchange that meets another
    // have more of a link together than the one load of level 2.
    CHECK(*messages.step.time_s >= 0.99 * *loads.step.time_s);
    CHECK(*messages.step.time_s <= 1.05 * *loads.step.time_s);
    // Nothing else is on the links of these: a ring's rounds are in its latency.
    if (s.name == "rings over 4 nodes" || s.name == "shards of a node")
      CHECK(*messages.step.time_s == Approx(*loads.step.time_s).epsilon(1e-4));
  }
  CHECK_THROWS_WITH(result(kLlama, small_job({"/plan/nodes=64", "/plan/tp=8", "/plan/cp=1", "/plan/gbs=64"}), three),
                    Catch::Contains("at most 256 GPUs, not 512"));
}

TEST_CASE("the gradients of a tied table meet from both ends of a pipeline, and only there") {
  const auto waits_s = [](const char* network, int pp, double* bytes) {
    const LoadedScenario scenario =
        loaded(kLlama, small_job({fmt::format("/network=models/networks/{}.json", network),
                                  fmt::format("/plan={{\"nodes\": 8, \"tp\": 8, \"pp\": {}, \"gbs\": 64, "
                                              "\"sharding\": \"zero1\"}}",
                                              pp)}));
    const StepInputs in = run_inputs(scenario.scenario).step;
    const Fabric fabric = build_fabric(scenario.scenario.cluster);
    const StepNetwork net = build_step_network(in, fabric, place(fabric, scenario.scenario.placement, 8), 1);
    *bytes = in.software->memory.gradient_bytes_per_parameter * static_cast<double>(in.network->hidden) *
             static_cast<double>(in.network->vocabulary) / 8;
    return std::pair{plan_step(in, net, {}).fixed_s - in.software->phases.step_fixed.value(),
                     pp > 1 ? transfer_s(net, net.forward_hand_over.front().front(), *bytes) : 0};
  };
  double bytes = 0;
  const auto [tied_s, sent_s] = waits_s("gpt3-175b", 8, &bytes);
  CHECK(tied_s == Approx(sent_s).epsilon(0.01));  // the table is padded
  CHECK(tied_s > bytes / 51e9);                   // a NIC of 400 Gbit/s carries it once each way
  CHECK(waits_s("gpt3-175b", 1, &bytes).first == 0);
  CHECK(waits_s("llama3.1-70b", 8, &bytes).first == 0);
}

TEST_CASE("what the engine carries is what the operations send, by class of links, over random plans") {
  SplitMix64 random = random_stream(17, "plans", 0);
  const auto one_of = [&](const std::vector<int>& choices) { return choices[random() % choices.size()]; };
  int tried = 0;
  for (int i = 0; i < 60; ++i) {
    const int nodes = one_of({2, 4, 8}), tp = one_of({1, 2, 8}), pp = one_of({1, 2, 4}), cp = one_of({1, 2}),
              ga = one_of({4, 8});
    const int vp = pp > 1 ? one_of({1, 2}) : 1, ranks = 8 * nodes;
    if (ranks % (tp * pp * cp) != 0 || ranks == tp * pp * cp) continue;
    const int dp = ranks / (tp * pp * cp);
    const char* sharding = std::vector<const char*>{"none", "zero1", "zero3"}[static_cast<size_t>(one_of({0, 1, 2}))];
    if (pp > 1 && std::string(sharding) == "zero3") sharding = "zero1";
    const Sets set =
        small_job({fmt::format("/plan={{\"nodes\": {}, \"tp\": {}, \"pp\": {}, \"vp\": {}, \"cp\": {}, \"gbs\": {}, "
                               "\"sharding\": \"{}\"}}",
                               nodes, tp, pp, vp, cp, dp * ga, sharding),
                   "/software/gradients_beside_backward=false", "/software/nvls=false"});
    INFO(set.back() << " " << set[4]);
    const LoadedScenario scenario = loaded(kLlama, set);
    const Scenario& s = scenario.scenario;
    const StepInputs in = run_inputs(s).step;
    const Fabric fabric = build_fabric(s.cluster);
    const std::vector<int> placed = place(fabric, s.placement, nodes);
    const StepNetwork net = build_step_network(in, fabric, placed, 1, {}, true);  // all links named
    const auto engine = network::fluid_engine(net.links, net.classes);
    network::MeteredEngine meter(*engine, net.classes.size());
    StepPlan plan = plan_step(in, net, {});
    plan.noise = {};
    simulate_step(plan, net, meter, 1, 1, 0);
    Carried engine_bytes, sent;
    for (size_t k = 0; k < net.classes.size(); ++k) {
      network::LoadClass load = net.classes[k];
      for (network::LinkUse& use : load.uses) use.link = net.link_ids[static_cast<size_t>(use.link)];
      carry(fabric, load, meter.rate_Bps(k) * meter.now_s(), engine_bytes);
    }
    // The same by hand: gradients and weights once a step, activations and their gradients between neighbouring chunks
    // once a micro-batch, what layers exchange over the fabric each time they run.
    network::CollectiveOptions options;
    options.domain_floor_s = 0;
    network::Collectives collectives(fabric, options);
    const RankGrid grid(s.plan, fabric, placed);
    const auto groups = groups_of(in);
    const auto add = [&](network::Operation op, const std::vector<std::vector<network::Rank>>& ranks_of_groups,
                         double bytes, double size) {
      if (bytes > 0 && ranks_of_groups.front().size() > 1)
        carry(fabric, collectives.cost(op, ranks_of_groups, size).load, bytes, sent);
    };
    const bool zero1 = s.plan.sharding == Sharding::zero1, none = s.plan.sharding == Sharding::none;
    for (int stage = 0; stage < pp; ++stage) {
      double gradients = 0, chunk = 0;
      for (int c = 0; c < vp; ++c) gradients += chunk = exchanged_gradients(in, groups, c * pp + stage).dense;
      const auto same = grid.gradient_groups(stage);
      const double size = gradients / vp / gradient_buckets;
      if (none) add(network::Operation::all_reduce, same, gradients, size);
      if (zero1) {
        add(network::Operation::reduce_scatter, same, gradients, size);
        add(network::Operation::all_gather, same, gradients * 2 / s.software.memory.gradient_bytes_per_parameter, size);
      }
      if (pp == 1) continue;
      const double hand_over = plan.hand_over_bytes;
      for (int d = 0; d < dp; ++d) {
        const int next = (stage + 1) % pp;
        const double times = ga * (next == 0 ? vp - 1 : vp);
        for (const bool backward : {false, true})
          add(network::Operation::send_recv,
              backward ? grid.hand_over_pairs(d, next, stage) : grid.hand_over_pairs(d, stage, next), times * hand_over,
              hand_over);
      }
    }
    if (s.plan.sharding == Sharding::zero3 || !net.in_visits.empty()) {
      // Exchanges inside visits: as the visits hold them, which a test of their own compares with the operations.
      for (const auto& [what, links] : net.in_visits) {
        double bytes = 0;
        for (const PassCost& cost : plan.cost)
          for (const TaskCost* visit : {&cost.forward, &cost.backward})
            for (const VisitExchange& x : visit->shared)
              if (x.what == what) bytes += x.bytes * ga / pp;
        for (size_t w = 0; w < links.classes.size(); ++w) {
          network::LoadClass load = net.classes[static_cast<size_t>(links.classes[w])];
          for (network::LinkUse& use : load.uses) use.link = net.link_ids[static_cast<size_t>(use.link)];
          carry(fabric, load, bytes, sent);
        }
      }
    }
    for (const auto& [name, bytes] : sent) {
      INFO(name);
      CHECK(engine_bytes[name] == Approx(bytes).epsilon(1e-9));
    }
    for (const auto& [name, bytes] : engine_bytes) CHECK(sent.count(name) == 1);
    tried += sent.empty() ? 0 : 1;
  }
  CHECK(tried >= 25);
}

namespace {

Sets experts_on(const std::string& plan, const std::string& routing, int nic_Gbps, int uplink_Gbps) {
  return {"/network=\"models/networks/qwen3-30b-a3b.json\"",
          "/cluster=\"topologies/smc-h100.json\"",
          "/cluster/hosts=null",
          "/training/recompute=full",
          "/run={\"steps\": 1}",
          "/software/gradients_beside_backward=false",  // so that blocks stay in step
          "/plan=" + plan,
          "/cluster/fabric/routing=" + routing,
          fmt::format("/cluster/node/nic_bandwidth={} Gbit/s", nic_Gbps),
          fmt::format("/cluster/fabric/uplink_bandwidth={} Gbit/s", uplink_Gbps)};
}

double step_at(const Sets& set, int level) {
  SimulationOptions options;
  options.level = level;
  return *result("scenarios/mixtral-8x7b.json", set, options).step.time_s;
}

}  // namespace

TEST_CASE("groups of all replicas load their links together: level 1 as level 2, and never slower on faster cables") {
  SplitMix64 random = random_stream(29, "plans", 0);
  const auto one_of = [&](const std::vector<int>& choices) { return choices[random() % choices.size()]; };
  int tried = 0, alike = 0;
  for (int i = 0; i < 60; ++i) {
    const int nodes = one_of({2, 4, 6, 8, 16}), tp = one_of({1, 2, 4}), cp = one_of({1, 2, 4}),
              ep = one_of({4, 8, 16, 32}), ranks = 8 * nodes;
    if (ranks % (tp * cp) != 0 || ranks % (ep * tp) != 0) continue;
    const std::string plan = fmt::format(
        "{{\"nodes\": {}, \"tp\": {}, \"cp\": {}, \"ep\": {}, \"mbs\": 1, \"gbs\": {}, \"sharding\": \"zero1\"}}",
        nodes, tp, cp, ep, ranks / tp / cp);
    const std::string routing = one_of({0, 1}) == 0 ? "adaptive" : "ecmp";
    const int nic = one_of({200, 400}), uplink = one_of({25, 50, 100, 200});
    const Sets set = experts_on(plan, routing, nic, uplink);
    const double one_s = step_at(set, 1);
    INFO(plan << " " << routing << ", NICs of " << nic << ", uplinks of " << uplink << " Gbit/s");
    // Blocks of one unit, sprayed: all alike. Where some have more of a link to themselves they end at other times.
    if (nodes <= 6 && routing == "adaptive") {
      CHECK(one_s == Approx(step_at(set, 2)).epsilon(0.01));
      ++alike;
    }
    CHECK(step_at(experts_on(plan, routing, nic, 2 * uplink), 1) <= one_s * (1 + 1e-9));
    ++tried;
  }
  CHECK(tried >= 25);
  CHECK(alike >= 8);
}
