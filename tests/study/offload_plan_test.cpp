// What waits in the host's memory, as plans and results see it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "simulated.hpp"
#include "study/fitting_plans.hpp"
#include "study/plan_search.hpp"

using namespace tw;

namespace {

Outcome outcome(const std::vector<std::string>& set) {
  return simulate_all({loaded(kLlama, set)}, {}, 1, 600, {}).front();
}

std::string fault(const std::string& scenario, const std::vector<std::string>& set) {
  Faults faults;
  load_scenario(scenario, set, faults);
  return faults.empty() ? "" : faults.list().front().text();
}

}  // namespace

TEST_CASE("states in the host's memory free the GPU's, lengthen the step, and are told by node") {
  const Result here = outcome({}).result, away = outcome({"/training/offload_states=1"}).result;
  CHECK_FALSE(here.memory.host_bytes);
  CHECK(*here.memory.host_capacity_bytes == 2e12);
  CHECK(away.memory.parts_bytes.at("optimizer") == 0);
  CHECK(*away.step.time_s > *here.step.time_s);
  // 12 bytes of states and a pinned gradient in FP32 for each parameter.
  CHECK(*away.memory.host_bytes == Approx(8 * here.memory.parts_bytes.at("optimizer") * 16 / 12));
}

TEST_CASE("a node without the host memory that a plan asks for refuses it") {
  const Outcome small = outcome({"/training/offload_states=1", "/cluster/node/host_memory/capacity=\"10 GB\""});
  CHECK(small.exit_code == 3);
  CHECK_THAT(small.result.error, Catch::Contains("out of host memory") && Catch::Contains("of 9 GiB on each node"));
  CHECK_THAT(fault(kLlama, {"/training/offload_states=1", "/cluster/node/host_memory/capacity=\"0 B\""}),
             Catch::Contains("/training/offload_states") && Catch::Contains("is not known"));
  CHECK_THAT(fault(kLlama, {"/training/offload_states=1", R"(/training/optimizer={"update": "muon"})"}),
             Catch::Contains("AdamW"));
}

TEST_CASE("where nothing else fits, a refusal names states in the host's memory") {
  const std::vector<std::string> set{"/network=models/networks/llama4-scout-vision.json",
                                     R"(/plan={"nodes": 2, "ep": 16, "gbs": 128, "sharding": "zero3"})"};
  const LoadedScenario scout = loaded(kLlama, set);
  const std::vector<std::string> nearest = nearest_fitting_plans(scout.scenario);
  REQUIRE_FALSE(nearest.empty());
  for (const std::string& text : nearest) {
    CHECK_THAT(text, Catch::Contains("--set /training/offload_states=1"));
    // As it says, it fits.
    std::vector<std::string> its = set;
    for (size_t at = text.find("--set "); at != std::string::npos; at = text.find("--set ", at + 1))
      its.push_back(text.substr(at + 6, text.find(' ', at + 6) - at - 6));
    const Scenario& s = loaded(kLlama, its).scenario;
    const PlanMemory memory = plan_memory(*s.network, *s.training, s.plan, s.software);
    CHECK(memory.memory.total() <= s.cluster.node.accelerator.memory.value());
    CHECK(memory.host_bytes * s.cluster.node.gpus <= s.cluster.node.host_memory.capacity.value());
  }
}

TEST_CASE("a plan that is named without its layout says so") {
  // All layers on one of two stages.
  const LoadedScenario all = loaded("scenarios/mixtral-8x7b.json", {"/plan/pp=2", "/plan/layout=\"32|\""});
  for (const std::string& text : nearest_fitting_plans(all.scenario))
    CHECK((text.find("/plan/pp=") == std::string::npos) == (text.find("/plan/layout=null") == std::string::npos));
}

TEST_CASE("plans: shares of states in the host's memory are searched, and make room") {
  PlanSearchOptions o;
  o.objectives = {PlanObjective::time};
  o.space.sharding = {Sharding::none};
  o.most_simulated = 4;
  const std::vector<std::string> set{"/plan/sharding=none", "/training/offload_states=1"};
  o.space.offload_states = {0, 1};
  const PlanSearch s = search_plans(loaded(kLlama, set), set, o);
  CHECK(std::any_of(s.answers.begin(), s.answers.end(), [](const auto& a) { return a.candidate.offload_states == 1; }));
  for (const PlanAnswer& a : s.answers)
    if (a.candidate.offload_states == 1) CHECK(a.result.memory.host_bytes);
}

TEST_CASE("plans: layers whose activations wait in the host's memory are searched, each layer once") {
  PlanSearchOptions o;
  o.objectives = {PlanObjective::time};
  o.space.offload_layers = {0, 16, 1000, 2000};  // the last two are all that can
  o.space.recompute = {{}};
  o.most_simulated = 6;
  const std::vector<std::string> set{"/plan/mbs=2", "/plan/cp=1"};
  const PlanSearch s = search_plans(loaded(kLlama, set), set, o);
  std::set<int> seen;
  for (const PlanAnswer& a : s.answers) {
    seen.insert(a.candidate.offload_layers);
    if (a.candidate.offload_layers > 0) CHECK(a.result.memory.host_bytes);
    std::vector<std::string> its = set;
    for (const std::string& one : overrides_of(a.candidate)) its.push_back(one);
    CHECK(loaded(kLlama, its).scenario.training->offload_layers == a.candidate.offload_layers);
  }
  CHECK(seen.count(2000) == 0);
  CHECK(seen.size() > 1);
}
