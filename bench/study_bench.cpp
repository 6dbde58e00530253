// Studies and searches as a user waits for them: whole sweeps into a folder, whole searches for a plan.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/files.hpp"
#include "study/plan_search.hpp"
#include "study/sweep_run.hpp"

namespace {

using namespace tw;

int jobs() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Power caps of the 64-node LoRA scenario; the number of points is the argument: time should grow in proportion.
void sweep(benchmark::State& state) {
  const std::string folder = fmt::format("/tmp/trainwatt_bench_{}", ::getpid());
  write_file(folder + "/study.json",
             fmt::format(R"({{"name": "caps", "scenario": "scenarios/smc-llama2-70b-lora-64n.json",
      "axes": [{{"set": {{"/cluster/node/accelerator/board_limit": {{"from": "400 W", "to": "700 W", "count": {}}}}}}}]}})",
                         state.range(0)));
  for (auto _ : state) {
    Faults faults;
    const LoadedStudy study = load_study(folder + "/study.json", {}, faults);
    faults.throw_if_any();
    SweepOptions options;
    options.jobs = jobs();
    options.overwrite = true;
    options.to_json = [](const Result& r) { return nlohmann::json{{"step_s", *r.step.time_s}}.dump(); };
    run_sweep(study, folder, options);
  }
  std::filesystem::remove_all(folder);
  state.counters["points_per_s"] =
      benchmark::Counter(static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(sweep)->Arg(50)->Arg(200)->Unit(benchmark::kMillisecond)->UseRealTime();

// All plans of Llama 3.1 70B on 512 H100.
void plan_70b_512(benchmark::State& state) {
  const std::vector<std::string> set{
      "/network=\"models/networks/llama3.1-70b.json\"",
      R"(/plan={"nodes": 64, "tp": 4, "pp": 4, "vp": 5, "cp": 2, "gbs": 1024, "sharding": "zero1"})"};
  Faults faults;
  const LoadedScenario scenario = load_scenario("scenarios/llama3.1-pretraining.json", set, faults);
  faults.throw_if_any();
  PlanSearchOptions options;
  options.objectives = {PlanObjective::time};
  options.jobs = jobs();
  for (auto _ : state) {
    const PlanSearch found = search_plans(scenario, set, options);
    state.counters["considered"] = static_cast<double>(found.considered);
    state.counters["estimated"] = static_cast<double>(found.estimated);
    state.counters["simulated"] = static_cast<double>(found.simulated);
  }
}
BENCHMARK(plan_70b_512)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
