// The search for plans.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "simulated.hpp"
#include "study/plan_estimate.hpp"
#include "study/plan_search.hpp"
#include "study/plan_space.hpp"
#include "study/stage_splits.hpp"
#include "topology/placement.hpp"

using namespace tw;

namespace {

PlanSearch searched(const std::string& file, PlanSearchOptions o = {}, const std::vector<std::string>& set = {}) {
  if (o.objectives.empty()) o.objectives = {PlanObjective::time};
  return search_plans(loaded(file, set), set, o);
}

// Place of the scenario's own plan among the answers, from 1, and how much longer it trains than the best, in percent.
std::pair<size_t, double> place_of_own(const PlanSearch& s) {
  for (size_t i = 0; i < s.answers.size(); ++i)
    if (s.answers[i].candidate.own)
      return {i + 1, 100 * (s.answers[i].values.front() / s.answers.front().values.front() - 1)};
  return {0, 1e9};
}

// A published choice (reference/mlperf/dgxc_llama31.csv), and how far down the answers it may stand.
struct Choice {
  const char *network, *precision, *plan;
  int layers = 0;
  size_t place = 5;
  double longer_pct = 3;
};
void check_choice(const Choice& c) {
  std::vector<std::string> set{std::string("/network=models/networks/llama3.1-") + c.network + ".json",
                               std::string("/training/precision=") + c.precision, std::string("/plan=") + c.plan};
  if (c.layers > 0) set.push_back("/network/layers=" + std::to_string(c.layers));
  const auto [place, longer_pct] = place_of_own(searched(kLlama, {}, set));
  INFO(c.network << " " << c.precision << ": place " << place << ", " << longer_pct << " % longer than the best");
  CHECK(place >= 1);
  CHECK(place <= c.place);
  CHECK(longer_pct <= c.longer_pct);
}

}  // namespace

TEST_CASE("plans: ways of recomputation are tried in the order given, lists of modules among them") {
  PlanSearchOptions o;
  const RecomputeWay list{Recompute::selective, {Module::norms, Module::activation}};
  o.space.recompute = {{}, list, {Recompute::full, {}}};
  o.most_simulated = 8;
  const std::vector<std::string> set{"/training/precision=bf16", "/plan/mbs=2"};
  const PlanSearch s = searched(kLlama, o, set);
  const auto with_list = std::find_if(s.answers.begin(), s.answers.end(),
                                      [&](const PlanAnswer& a) { return a.candidate.recompute == list; });
  REQUIRE(with_list != s.answers.end());
  CHECK(recompute_text(list) == "norms+activation");
  // What it stands for is what --set says of it.
  std::vector<std::string> its = set;
  for (const std::string& one : overrides_of(with_list->candidate)) its.push_back(one);
  CHECK(loaded(kLlama, its).scenario.training->recompute_modules == list.modules);
}

TEST_CASE("plans: groups of hybrid sharding and kinds of context parallelism are searched where they matter") {
  PlanSearchOptions o;
  o.space.sharding = {Sharding::none, Sharding::zero3};
  o.space.shard_group = {0, 8, 16};
  o.space.context = {ContextExchange::ring, ContextExchange::all_gather, ContextExchange::heads};
  o.most_simulated = 1;
  const std::vector<std::string> set{"/plan/nodes=2", "/plan/sharding=zero3", "/plan/gbs=64"};
  const LoadedScenario base = loaded(kLlama, set);
  PlanSearch out;
  std::vector<PlanCandidate> too_large;
  const std::vector<PlanCandidate> list = enumerate_plans(base.scenario, o, out, too_large);
  std::set<std::pair<Sharding, int>> groups;
  std::set<std::pair<bool, ContextExchange>> contexts;
  std::set<std::string> all;
  for (const PlanCandidate& c : list) {
    groups.insert({c.plan.sharding, c.plan.shard_group});
    contexts.insert({c.plan.cp > 1, c.plan.context});
    std::string text;
    for (const std::string& one : overrides_of(c)) text += one + " ";
    all.insert(text);
  }
  // All of 16 ranks are no group; nothing is grouped where nothing is sharded, nor exchanged where no context is cut.
  CHECK(groups == std::set<std::pair<Sharding, int>>{{Sharding::none, 0}, {Sharding::zero3, 0}, {Sharding::zero3, 8}});
  CHECK(contexts == std::set<std::pair<bool, ContextExchange>>{{false, ContextExchange::ring},
                                                               {true, ContextExchange::ring},
                                                               {true, ContextExchange::all_gather},
                                                               {true, ContextExchange::heads}});
  CHECK(all.size() == list.size());  // none twice
  // What a candidate stands for is what --set says of it, and the default search looks at the scenario's own alone.
  std::vector<std::string> its = set;
  for (const PlanCandidate& c : list)
    if (c.plan.shard_group == 8 && c.plan.context == ContextExchange::heads) {
      for (const std::string& one : overrides_of(c)) its.push_back(one);
      break;
    }
  CHECK(loaded(kLlama, its).scenario.plan.shard_group == 8);
  CHECK(loaded(kLlama, its).scenario.plan.context == ContextExchange::heads);
  o.space = {};
  for (const PlanCandidate& c : enumerate_plans(base.scenario, o, out, too_large)) {
    CHECK(c.plan.shard_group == 0);
    CHECK(c.plan.context == ContextExchange::ring);
    CHECK(c.offload_layers == 0);
  }
}

TEST_CASE("plans: an estimate knows the group and the exchange") {
  const auto step_s = [](std::vector<std::string> set) {
    const LoadedScenario l = loaded(kLlama, set);
    const Scenario& s = l.scenario;
    const Fabric fabric = build_fabric(s.cluster);
    PlanEstimator estimate(fabric, s.placement);
    const StepInputs in{&*s.network, &*s.training, nullptr, &s.cluster, &s.software, &s.plan};
    Plan other = s.plan;  // on the same links but for what differs
    other.shard_group = 0, other.context = ContextExchange::ring;
    const StepInputs first{&*s.network, &*s.training, nullptr, &s.cluster, &s.software, &other};
    (void)estimate(first);
    return std::pair{estimate(in).step_s, PlanEstimator(fabric, s.placement)(in).step_s};
  };
  for (const char* one : {"/plan/shard_group=8", "/plan/context=heads", "/plan/context=all_gather"}) {
    INFO(one);
    const auto [after_another, alone] = step_s({"/plan/nodes=4", "/plan/cp=2", "/plan/sharding=zero3", one});
    CHECK(after_another == alone);
  }
}

TEST_CASE("a plan of experts tells their groups") {
  const std::vector<std::string> set{"/plan/nodes=2", "/plan/tp=2",  "/plan/pp=1",
                                     "/plan/ep=4",    "/plan/etp=1", "/plan/sharding=zero3"};
  const Result r = result("scenarios/mixtral-8x7b.json", set);
  CHECK(r.plan.etp == 1);
  CHECK(r.plan.edp == 4);  // 16 ranks / 4
  CHECK_FALSE(result(k1).plan.etp);
}

TEST_CASE("plans: every combination is either left out for a reason or estimated") {
  const PlanSearch s = searched(k1);
  size_t sum = s.estimated;
  for (const auto& [why, count] : s.left_out) sum += count;
  CHECK(sum == s.considered);
  CHECK(s.estimated > 0);
  CHECK(s.simulated <= s.estimated);
  for (size_t i = 1; i < s.answers.size(); ++i) CHECK(s.answers[i - 1].values <= s.answers[i].values);
  for (const PlanAnswer& a : s.answers) {
    CHECK(a.candidate.plan.dp * a.candidate.plan.tp * a.candidate.plan.pp * a.candidate.plan.cp == 8);
    CHECK(a.candidate.plan.tp <= 8);
  }
}

TEST_CASE("plans: the published choices for LoRA on 8 and 64 H100 are found") {
  // TP 4, CP 1, four micro-batches; TP 4, CP 2, eight replicas: all submissions to MLPerf v4.0 on these
  // (reference/mlperf/llama2_70b_lora.csv).
  for (const std::string& file : {k1, k8}) {
    const auto [place, longer_pct] = place_of_own(searched(file));
    INFO(file << ": place " << place << ", " << longer_pct << " % longer than the best");
    CHECK(place >= 1);
    CHECK(place <= 5);
    CHECK(longer_pct <= 3);
  }
}

// Cases of their own, since each takes seconds of a processor.
TEST_CASE("plans: the published choices for Llama 3.1 8B are found") {
  check_choice({"8b", "bf16", R"({"nodes": 1, "cp": 2, "gbs": 128, "sharding": "zero1"})"});
  // A known gap: where products add to gradients, more tokens a rank are worth more than the recipe's CP 2 lets them
  // be, and tensor parallelism whose exchanges run beside pieces of its products costs less.
  check_choice({"8b", "fp8", R"({"nodes": 16, "cp": 2, "gbs": 2048, "sharding": "zero1"})", 0, 7, 6.9});
}

TEST_CASE("plans: the published choice for Llama 3.1 70B in BF16 is found") {
  check_choice({"70b", "bf16", R"({"nodes": 8, "tp": 4, "pp": 4, "vp": 5, "cp": 2, "gbs": 128, "sharding": "zero1"})"});
}

TEST_CASE("plans: the published choice for Llama 3.1 70B in FP8 is found") {
  check_choice({"70b", "fp8", R"({"nodes": 8, "tp": 4, "pp": 8, "vp": 5, "gbs": 128, "sharding": "zero1"})"});
}

TEST_CASE("plans: the published choice for a Llama 3.1 405B of 8 layers is missed by no more than is known") {
  // The plans of the 405B proxies are those of the whole model, which needs TP 8: a model of 8 to 62 layers would be
  // trained faster with less tensor parallelism (reference/known_gaps.json).
  check_choice({"405b", "bf16", R"({"nodes": 4, "tp": 8, "cp": 2, "gbs": 64, "sharding": "zero1"})", 8, 17, 15});
}

TEST_CASE("plans: an estimate is near what is simulated") {
  const std::vector<std::string> set{
      "/network=\"models/networks/llama3.1-70b.json\"",
      R"(/plan={"nodes": 8, "tp": 4, "pp": 4, "vp": 5, "cp": 2, "gbs": 128, "sharding": "zero1"})"};
  const LoadedScenario s = loaded(kLlama, set);
  const StepInputs in = run_inputs(s.scenario).step;
  const Fabric fabric = build_fabric(s.scenario.cluster);
  const StepEstimate e = PlanEstimator(fabric, s.scenario.placement)(in);
  const Result r = result(s);
  CHECK(*r.step.time_s == Approx(e.step_s).epsilon(0.05));
  REQUIRE(r.power.train);
  CHECK(*r.power.train == Approx(e.node_w).epsilon(0.05));
}

TEST_CASE("plans: gradients that leave after every backward are in an estimate") {
  const std::vector<std::string> set{
      "/network=\"models/networks/llama3.1-70b.json\"", "/cluster/node/nic_bandwidth=50 Gbit/s",
      R"(/plan={"nodes": 8, "tp": 4, "pp": 2, "cp": 2, "gbs": 128, "sharding": "zero2"})"};
  const LoadedScenario s = loaded(kLlama, set);
  const Fabric fabric = build_fabric(s.scenario.cluster);
  StepInputs in = run_inputs(s.scenario).step;
  const double zero2_s = PlanEstimator(fabric, s.scenario.placement)(in).step_s;
  CHECK(*result(s).step.time_s == Approx(zero2_s).epsilon(0.15));
  Plan once = *in.plan;
  once.sharding = Sharding::zero1;
  in.plan = &once;
  CHECK(zero2_s > 1.5 * PlanEstimator(fabric, s.scenario.placement)(in).step_s);
}

TEST_CASE("plans: limits hold, and what they stand in the way of is kept") {
  PlanSearchOptions o;
  o.limits.deadline_s = 1;
  const PlanSearch late = searched(k1, o);
  CHECK(late.answers.empty());
  REQUIRE(!late.beyond.empty());
  for (const PlanAnswer& a : late.beyond) CHECK(a.beyond == "deadline");
  o.limits = {};
  o.limits.memory_bytes = 60e9;
  for (const PlanAnswer& a : searched(k1, o).answers) CHECK(a.candidate.memory_bytes <= 60e9);
  o.limits.memory_bytes = 1e9;
  CHECK_THROWS_AS(searched(k1, o), DoesNotFit);
}

TEST_CASE("plans: two objectives give a front that nothing beats; workers change nothing") {
  PlanSearchOptions o;
  o.objectives = {PlanObjective::time, PlanObjective::energy};
  o.space.nodes = {1, 2};
  o.most_simulated = 24;
  const PlanSearch one = searched(k1, o);
  REQUIRE(!one.answers.empty());
  for (const PlanAnswer& a : one.answers)
    for (const PlanAnswer& b : one.answers)
      if (a.front == 0) CHECK_FALSE((b.values[0] <= a.values[0] && b.values[1] <= a.values[1] && b.values != a.values));
  const auto best = one.answers.front().values;
  o.objectives = {PlanObjective::time};
  PlanSearchOptions two = o;
  two.jobs = 2;
  // Another number of workers simulates in other batches, but finds the same best.
  CHECK(searched(k1, o).answers.front().values == searched(k1, two).answers.front().values);
}

TEST_CASE("plans: a limit prunes first, what fell is counted, and the batch follows the nodes") {
  PlanSearchOptions o;
  o.space.nodes = {1, 2, 4, 8};
  o.space.gbs_per_node = {8};
  o.limits.facility_w = 35e3;
  o.most_simulated = 16;
  o.jobs = 2;
  const PlanSearch s = searched(k8, o);
  CHECK(s.fallen.at("facility power") > 0);
  REQUIRE(!s.answers.empty());
  for (const PlanAnswer& a : s.answers) {
    CHECK(a.result.grid.facility.peak_w <= 35e3);
    CHECK(a.candidate.plan.gbs == 8 * a.candidate.plan.nodes);
  }
  // Few simulations are spent on plans that break the limit.
  CHECK(s.beyond.size() <= 6);
}

TEST_CASE("plans: stages that layers do not divide into are searched, unless fewer would be as fast") {
  using List = std::vector<int>;
  CHECK(virtual_stages(80, 8, false) == List{1, 2, 5, 10});
  CHECK(virtual_stages(80, 2, false) == List{1, 2, 4});
  // 126 layers and two places for embedding and head, over 8 chunks of 16.
  const List of_405b = virtual_stages(126, 2, false);
  CHECK(std::find(of_405b.begin(), of_405b.end(), 4) != of_405b.end());
  CHECK(virtual_stages(61, 8, false) == List{1, 2, 3, 4, 5, 6, 7});
  CHECK(virtual_stages(80, 16, true) == List{1, 2, 3, 4, 5});
  CHECK(virtual_stages(6, 1, false) == List{1});
  // With a next-token layer 61 + 3 places over 16 or 32 chunks, as DeepSeek-V3 is cut.
  CHECK(virtual_stages(61, 8, false, 1) == List{1, 2, 4});
  CHECK(layers_of_chunks(61, 8, 2, 1) == List{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2});
  CHECK_FALSE(stages_too_uneven(61, 32, 1));
  CHECK_FALSE(stages_too_uneven(61, 8));
  CHECK(stages_too_uneven(80, 64));  // 2 layers at most, as with 40 stages
  CHECK(stages_too_uneven(4, 8));
  CHECK_FALSE(stages_too_uneven(126, 64));

  const std::vector<std::string> set{
      "/network=models/networks/llama3.1-70b.json", "/network/layers=78",
      R"(/plan={"nodes": 8, "tp": 8, "pp": 4, "gbs": 128, "sharding": "zero1", "layout": "20|20|20|18"})"};
  PlanSearchOptions o;
  o.most_simulated = 6;
  o.jobs = 2;
  const PlanSearch s = searched(kLlama, o, set);
  CHECK(place_of_own(s).first >= 1);
  size_t uneven = 0;
  for (const PlanAnswer& a : s.answers) {
    uneven += 78 % a.candidate.plan.pp != 0 ? 1 : 0;
    INFO(a.beyond);
    CHECK(a.candidate.plan.layout.empty() != a.candidate.own);
  }
  for (const PlanAnswer& a : s.beyond) CHECK(a.beyond.find("layout") == std::string::npos);
  CHECK(s.left_out.count("layers do not divide into stages and chunks") == 0);
  CHECK(uneven >= 1);
}
