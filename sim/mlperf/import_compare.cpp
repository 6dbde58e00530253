#include "mlperf/import_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.hpp"

namespace tw {
namespace {

using Maybe = std::optional<double>;

Maybe mean_of(const std::vector<const MeasuredRun*>& runs, const std::function<Maybe(const MeasuredRun&)>& value) {
  double sum = 0;
  for (const MeasuredRun* run : runs) {
    const Maybe v = value(*run);
    if (!v) return std::nullopt;
    sum += *v;
  }
  return runs.empty() ? Maybe() : Maybe(sum / static_cast<double>(runs.size()));
}

// Mean of the evaluations after the first, as the result contract has it.
Maybe later_eval_s(const MeasuredRun& run) {
  const ImportedRun& l = run.log;
  if (l.evaluations < 2) return std::nullopt;
  return (*l.eval_s * l.evaluations - *l.eval_first_s) / (l.evaluations - 1);
}

}  // namespace

const ImportedBenchmark& counterpart(const Import& import, const LoadedScenario& scenario) {
  if (import.benchmarks.size() == 1) return import.benchmarks.front();
  const int nodes = scenario.scenario.plan.nodes + scenario.scenario.plan.evaluation_nodes;
  const ImportedBenchmark* found = nullptr;
  size_t several = 0;
  std::string list;
  for (const ImportedBenchmark& b : import.benchmarks) {
    if (list.size() < 400)
      list += fmt::format("{}{} {} ({} nodes)", list.empty() ? "" : ", ", b.system, b.benchmark, b.nodes);
    if (b.nodes != nodes) continue;
    found = &b;
    ++several;
  }
  if (several == 1) return *found;
  throw InputError(
      {{"--compare", "", fmt::format("{} imported benchmarks ran on the {} nodes of {}", several, nodes, scenario.file),
        "choose with --system and --benchmark from " + list}});
}

std::vector<const MeasuredRun*> counted_runs(const ImportedBenchmark& benchmark) {
  const auto all = [&](const std::function<bool(const MeasuredRun&)>& counts) {
    std::vector<const MeasuredRun*> runs;
    for (const MeasuredRun& run : benchmark.runs)
      if (counts(run)) runs.push_back(&run);
    return runs;
  };
  auto runs = all([](const MeasuredRun& r) { return r.in_score; });
  if (runs.empty()) runs = all([](const MeasuredRun& r) { return r.log.succeeded() && r.log.duplicate_of.empty(); });
  if (runs.empty()) runs = all([](const MeasuredRun& r) { return r.log.finished(); });
  return runs;
}

std::vector<ImportComparison> compare_import(const ImportedBenchmark& benchmark, const Result& r) {
  const auto runs = counted_runs(benchmark);
  std::vector<ImportComparison> rows;
  const auto add = [&](const char* quantity, const char* unit, Maybe imported, Maybe simulated) {
    if (!imported && !simulated) return;
    Maybe error;
    if (imported && simulated && *imported != 0) error = 100 * (*simulated / *imported - 1);
    rows.push_back({quantity, unit, imported, simulated, error});
  };
  const auto log = [&](Maybe ImportedRun::*field) {
    return mean_of(runs, [&](const MeasuredRun& m) { return m.log.*field; });
  };
  const bool ac = benchmark.meter == "ac";
  const auto nodes_j = [&](const EnergyResult& e) -> Maybe {
    if (!e.nodes_dc_j) return std::nullopt;
    return *e.nodes_dc_j + (ac ? e.rectifier_loss_j.value_or(0) : 0);
  };
  const double factor = benchmark.score.factor;
  const Maybe mlperf_j = nodes_j(r.energy_mlperf_v4_0);
  add("run_s", "s", log(&ImportedRun::run_s), r.run.time_to_train_s.mean);
  add("step_s", "s", log(&ImportedRun::step_s), r.step.time_s);
  add("samples", "", log(&ImportedRun::samples), r.run.samples);
  add("evaluations", "", mean_of(runs, [](const MeasuredRun& m) { return Maybe(m.log.evaluations); }),
      r.run.evaluations);
  add("eval_s", "s", mean_of(runs, later_eval_s), r.run.eval_s);
  add("eval_first_s", "s", log(&ImportedRun::eval_first_s), r.run.eval_first_s);
  add("init_s", "s", log(&ImportedRun::init_s), r.run.init_s);
  add("node_w", "W", mean_of(runs, [](const MeasuredRun& m) { return m.node_w_mean; }), ac ? Maybe() : r.power.mean);
  add("nodes_run_j", "J", mean_of(runs, [](const MeasuredRun& m) { return m.nodes_run_j; }), nodes_j(r.energy));
  // Both sides without a factor: the scenario's and the submission's may differ.
  add("nodes_mlperf_j", "J", mean_of(runs, [](const MeasuredRun& m) { return m.nodes_mlperf_j; }),
      mlperf_j ? Maybe(*mlperf_j / r.energy_mlperf_v4_0.rcp_factor.value_or(1)) : mlperf_j);
  add("network_w", "W", mean_of(runs, [](const MeasuredRun& m) { return m.network_w; }), r.power.network_w);
  if (benchmark.score.time_s && r.run.time_to_train_s.olympic)
    add("score_s", "s", benchmark.score.time_s, *r.run.time_to_train_s.olympic * factor);
  return rows;
}

std::vector<FittedConstant> fit_constants(const ImportedBenchmark& benchmark, const LoadedScenario& scenario,
                                          const Result& r) {
  const auto runs = counted_runs(benchmark);
  const Scenario& s = scenario.scenario;
  const std::string rows = fmt::format("fitted on {} runs of {} {} {}", runs.size(), benchmark.submitter,
                                       benchmark.system, benchmark.benchmark);
  std::vector<FittedConstant> out;
  const auto time = [&](const char* key, Maybe value, const std::string& how) {
    if (value)
      out.push_back(
          {std::string("/software/") + key, fmt::format("{:.6g} s", std::max(0.0, *value)), rows + ": " + how});
  };
  const auto log = [&](Maybe ImportedRun::*field) {
    return mean_of(runs, [&](const MeasuredRun& m) { return m.log.*field; });
  };
  time("init", log(&ImportedRun::init_s), "init_start to run_start");
  if (const Maybe gap = log(&ImportedRun::first_gap_s); gap && benchmark.benchmark == "llama2_70b_lora")
    time("wait_before_first_evaluation", gap, "first block outside the timer of its steps");
  const Maybe later = mean_of(runs, later_eval_s), first = log(&ImportedRun::eval_first_s);
  if (later && r.run.eval_s)
    time("evaluation_fixed", s.software.phases.evaluation_fixed.value() + *later - *r.run.eval_s,
         "evaluations after the first, less what the simulation takes for the rest of one");
  if (later && first) time("first_evaluation_extra", *first - *later, "first evaluation over the later ones");
  const Maybe step = log(&ImportedRun::step_s);
  if (step && r.step.time_s && *step > 0)
    out.push_back({"/cluster/hosts/device_speed",
                   fmt::format("{:.5g}", s.cluster.hosts.device_speed * *r.step.time_s / *step),
                   rows + ": steps after the first block, all of their error taken as speed of the devices"});
  return out;
}

}  // namespace tw
