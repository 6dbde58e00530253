// Whole training steps and runs, from the cluster's numbers to the answer. Each in a child of its own, as the program
// does it, so that the peak of memory is that of this case alone.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "network/process.hpp"
#include "run/run_model.hpp"
#include "study/result.hpp"
#include "study/simulate.hpp"
#include "topology/placement.hpp"

namespace {

using namespace tw;

struct Case {
  const char* name;
  std::string scenario;
  std::vector<std::string> set;
};

const std::string kLlama = "scenarios/llama3.1-pretraining.json", kLora = "scenarios/smc-llama2-70b-lora-64n.json";

std::vector<std::string> llama(const std::string& network, const std::string& cluster, const std::string& plan) {
  return {"/network=\"models/networks/" + network + ".json\"", "/cluster=\"topologies/" + cluster + ".json\"",
          "/plan=" + plan};
}

// 70B: 80 layers, 8 micro-batches. 405B: 126 layers in 16 stages.
const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {"70B_512", kLlama,
       llama("llama3.1-70b", "eos-h100",
             R"({"nodes": 64, "tp": 4, "pp": 4, "mbs": 1, "gbs": 256, "sharding": "zero1"})")},
      {"405B_2048", kLlama,
       llama("llama3.1-405b", "superpod-h100-4096",
             R"({"nodes": 256, "tp": 8, "pp": 16, "cp": 2, "mbs": 1, "gbs": 512, "sharding": "zero1"})")},
      {"405B_16384", kLlama,
       llama("llama3.1-405b", "superpod-h100-16384",
             R"({"nodes": 2048, "tp": 8, "pp": 16, "cp": 2, "mbs": 1, "gbs": 2048, "sharding": "zero1"})")},
      // 96 layers in 12 stages of 8 chunks: 221,184 visits.
      {"175B_96_interleaved", kLlama,
       llama("gpt3-175b", "eos-h100",
             R"({"nodes": 12, "tp": 8, "pp": 12, "vp": 8, "mbs": 1, "gbs": 1152, "sharding": "zero1"})")},
  };
  return list;
}

LoadedScenario loaded(const Case& c, const std::vector<std::string>& more = {}) {
  std::vector<std::string> set = c.set;
  set.insert(set.end(), more.begin(), more.end());
  Faults faults;
  LoadedScenario s = load_scenario(c.scenario, set, faults);
  faults.throw_if_any();
  return s;
}

// Fabric, routes, engine and one step; then further steps on the same engine.
std::string one_step(const LoadedScenario& loaded, int level, bool noisy, int further) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  const Scenario& s = loaded.scenario;
  const auto begin = Clock::now();
  const StepInputs in{s.network ? &*s.network : nullptr,
                      s.training ? &*s.training : nullptr,
                      s.workload ? &*s.workload : nullptr,
                      &s.cluster,
                      &s.software,
                      &s.plan};
  const Fabric fabric = build_fabric(s.cluster);
  const int replicas = level > 1 ? s.plan.dp : 1;
  const StepNetwork net = build_step_network(in, fabric, place(fabric, s.placement, s.plan.nodes), replicas);
  const auto engine = network::open_engine(net.links, net.classes);
  StepPlan plan = plan_step(in, net, {});
  if (!noisy) plan.noise = {};
  const double step_s = simulate_step(plan, net, *engine, replicas, 1, 0).time_s;
  const double first_s = seconds(begin);
  const auto again = Clock::now();
  for (int k = 1; k <= further; ++k) simulate_step(plan, net, *engine, replicas, 1, static_cast<uint64_t>(k));
  return fmt::format("{} {} {}", first_s, further > 0 ? seconds(again) / further : 0, step_s);
}

void report(benchmark::State& state, const ChildResult& r) {
  state.counters["peak_MiB"] = r.peak_bytes / 1048576;
  state.counters["child_cpu_ms"] = r.cpu_s * 1e3;  // on a busy machine the wall time says little
  double first_s = 0, next_s = 0, step_s = 0;      // of one_step(); a whole result is no such text
  if (std::sscanf(r.value.c_str(), "%lf %lf %lf", &first_s, &next_s, &step_s) != 3) return;
  state.counters["first_ms"] = first_s * 1e3;
  state.counters["next_ms"] = next_s * 1e3;
  state.counters["answer_s"] = step_s;
}

void step(benchmark::State& state) {
  const Case& c = cases()[static_cast<size_t>(state.range(0))];
  const auto level = static_cast<int>(state.range(1));
  const LoadedScenario s = loaded(c);
  ChildResult r;
  for (auto _ : state) {
    r = in_child([&] { return one_step(s, level, true, 5); });
    if (r.code != ExitCode::done) return state.SkipWithError(r.error.c_str());
  }
  report(state, r);
  state.SetLabel(fmt::format("{} level {}", c.name, level));
}
BENCHMARK(step)
    ->Args({0, 1})
    ->Args({0, 2})
    ->Args({1, 1})
    ->Args({1, 2})
    ->Args({2, 1})
    ->Args({2, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The same as a user asks for it: inputs read and checked, a run of 20 steps, power, energy.
void run_of_steps(benchmark::State& state) {
  const Case& c = cases()[static_cast<size_t>(state.range(0))];
  ChildResult r;
  for (auto _ : state) {
    r = in_child([&] { return to_bytes(simulate(loaded(c), {})); });
    if (r.code != ExitCode::done) return state.SkipWithError(r.error.c_str());
  }
  report(state, r);
  state.SetLabel(c.name);
}
BENCHMARK(run_of_steps)->DenseRange(0, 3)->Unit(benchmark::kMillisecond)->UseRealTime();

// The reference run: 64 nodes, all 108 steps, evaluations and power.
void lora_run(benchmark::State& state) {
  const Case c{"LoRA_512", kLora, {}};
  ChildResult r;
  for (auto _ : state) {
    r = in_child([&] { return to_bytes(simulate(loaded(c), {})); });
    if (r.code != ExitCode::done) return state.SkipWithError(r.error.c_str());
  }
  report(state, r);
}
BENCHMARK(lora_run)->Unit(benchmark::kMillisecond)->UseRealTime();

// A thousand seeded runs of it, two at a time.
void lora_thousand_runs(benchmark::State& state) {
  const Case c{"LoRA_512", kLora, {}};
  SimulationOptions options;
  options.runs = 1000;
  options.workers = 2;
  ChildResult r;
  for (auto _ : state) {
    r = in_child([&] { return to_bytes(simulate(loaded(c), options)); });
    if (r.code != ExitCode::done) return state.SkipWithError(r.error.c_str());
  }
  report(state, r);
}
BENCHMARK(lora_thousand_runs)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
