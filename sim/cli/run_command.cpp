// trainwatt run: simulates scenarios and reports them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "mlperf/export.hpp"
#include "power/telemetry.hpp"
#include "report/figures.hpp"
#include "report/inputs_json.hpp"
#include "report/power_figures.hpp"
#include "report/result_json.hpp"
#include "report/step_figures.hpp"
#include "report/study_figures.hpp"
#include "report/sweep_report.hpp"
#include "report/table.hpp"
#include "report/trace.hpp"
#include "study/each_run.hpp"
#include "topology/fabric.hpp"
#include "topology/inspect.hpp"

namespace tw::cli {
namespace {

struct RunArguments {
  std::vector<std::string> scenarios, set;
  std::string output, json, telemetry, mlperf_logs, memory;
  double telemetry_interval_s = 1;
  uint64_t seed = 1;
  int runs = 0, level = 1, jobs = 0;
  bool explain = false, quiet = false;
};

// The words that simulate the same again.
report::Reproduction reproduction(const RunArguments& a) {
  report::Reproduction how{{"trainwatt", "run"}, a.seed, a.runs, a.level};
  how.command.insert(how.command.end(), a.scenarios.begin(), a.scenarios.end());
  for (const std::string& set : a.set) how.command.insert(how.command.end(), {"--set", set});
  if (a.seed != 1) how.command.insert(how.command.end(), {"--seed", fmt::format("{}", a.seed)});
  if (a.runs > 0) how.command.insert(how.command.end(), {"--runs", fmt::format("{}", a.runs)});
  if (a.level != 1) how.command.insert(how.command.end(), {"--level", fmt::format("{}", a.level)});
  how.command.insert(how.command.end(), {"-o", "out"});
  return how;
}

// A drawing of more nodes is megabytes of lines that nobody can tell apart.
constexpr int kMostNodesDrawn = 600;

void write_folder(const Console& console, const RunArguments& a, const std::vector<LoadedScenario>& scenarios,
                  const std::vector<Outcome>& outcomes, const std::string& table) {
  const std::string& folder = a.output;
  write_file(in_folder(folder, "result.json"), report::results_json(outcomes));
  write_file(in_folder(folder, "results.csv"), report::results_csv(outcomes));
  write_file(in_folder(folder, "table.txt"), table);
  write_file(in_folder(folder, "inputs.json"), report::inputs_json(reproduction(a), scenarios));
  report::Figures figures;
  std::string drawn;  // scenarios of one cluster share its drawing
  for (size_t i = 0; i < outcomes.size(); ++i)
    if (outcomes[i].result.error.empty()) {
      const Cluster& cluster = scenarios[i].scenario.cluster;
      if (cluster.nodes() <= kMostNodesDrawn) {
        const std::string svg = svg_text(build_fabric(cluster));
        if (svg != drawn)
          write_file(in_folder(folder, "topology-" + report::file_name_of(outcomes[i].result.scenario) + ".svg"), svg);
        drawn = svg;
      }
      figures.add(report::power_figure(folder, scenarios[i].scenario, outcomes[i].result));
      figures.add(report::step_power_figure(folder, outcomes[i].result));
      figures.add(report::energy_flow_figure(folder, outcomes[i].result));
      figures.add(report::memory_figure(folder, outcomes[i].result));
      figures.add(report::roofline_figure(folder, scenarios[i].scenario, outcomes[i].result));
      figures.add(report::link_load_figure(folder, outcomes[i].result));
    }
  figures.add(report::step_breakdown_figure(folder, outcomes));
  figures.add(
      report::error_figure(folder, "predicted-measured", "Simulated against measured", report::error_points(outcomes)));
  for (const std::string& text : report::draw(std::move(figures))) console.message(text);
}

// Memory through a step as counters of a trace, as CSV, or, on stdout, as a table.
void write_memory_of(const Console& console, const RunArguments& a, const Result& r) {
  if (!r.error.empty()) return;
  if (r.step_detail.memory.at_s.empty())
    return console.message("--memory: what a GPU of a profiled workload holds is not known; nothing is written");
  if (a.memory == "-") return console.result(report::memory_table(r));
  const bool csv = a.memory.size() > 4 && a.memory.compare(a.memory.size() - 4, 4, ".csv") == 0;
  report::TraceDetail detail;
  detail.memory = {r.step_detail.memory};
  write_file(a.memory, csv ? report::memory_csv(r)
                           : report::chrome_trace(r.scenario, r.step_detail.memory.at_s.back(), {}, detail));
}

// Readings of every node, bus, rectifier and switch of the runs that succeeded.
void write_telemetry_of(const Console& console, const RunArguments& a, const std::vector<LoadedScenario>& scenarios,
                        const std::vector<Outcome>& outcomes) {
  struct Kept {  // what TelemetryRun points to
    PowerRun power;
    std::vector<TelemetrySwitch> switches;
  };
  std::vector<Kept> kept;
  kept.reserve(outcomes.size());
  std::vector<TelemetryRun> runs;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Result& r = outcomes[i].result;
    if (!r.error.empty()) continue;
    const Scenario& s = scenarios[i].scenario;
    const Fabric fabric = build_fabric(s.cluster);
    kept.push_back(
        {integrate_power(s.cluster, r.timeline, r.power_options), telemetry_switches(fabric, r.power.switches)});
    runs.push_back({r.scenario, r.seed, &s.cluster, &r.timeline, &kept.back().power, r.power.network_rule,
                    kept.back().switches, s.run.mlperf_v4_0.meter_before.value(), s.run.mlperf_v4_0.meter_after.value(),
                    &r.grid.step});
  }
  constexpr double many = 1e7;
  if (const double readings = telemetry_readings(runs, a.telemetry_interval_s); readings > many)
    console.message(fmt::format("telemetry: {:.2g} readings, some {:.0f} GB; --telemetry-interval S takes fewer",
                                readings, std::ceil(readings * 60 / 1e9)));
  write_telemetry(a.telemetry, runs, a.telemetry_interval_s);
}

// Logs of every run of the scenarios that succeeded. Returns the exit code.
int write_mlperf_logs_of(const RunArguments& a, Console& console, const std::vector<LoadedScenario>& scenarios,
                         const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<Outcome>> further;
  {
    Progress progress(console, "simulating every run");
    further = simulate_further_runs(scenarios, {a.seed, a.runs, a.level}, workers(a.jobs), kDeadline_s,
                                    [&](size_t done, size_t all) { progress.update(done, all); });
  }
  int code = 0;
  for (size_t i = 0; i < scenarios.size(); ++i) {
    if (!outcomes[i].result.error.empty()) continue;
    mlperf::MlperfRuns runs{&scenarios[i], {&outcomes[i].result}};
    std::string problem;
    for (const Outcome& o : further[i]) {
      runs.runs.push_back(&o.result);
      code = std::max(code, o.exit_code);
      if (problem.empty()) problem = o.result.error;
    }
    const SeriesResult& all = outcomes[i].result.series_of_runs;
    if (problem.empty() && all.finished < all.count) problem = "a run stopped before its target";
    if (problem.empty())
      mlperf::write_mlperf_logs(a.mlperf_logs, runs);
    else
      console.error(fmt::format("{}: no logs: {}", scenarios[i].file, problem));
  }
  return code;
}

ExitCode run(const RunArguments& a, Console& console) {
  Faults& faults = console.faults;
  if (a.telemetry == "-") faults.add({"--telemetry", "", "telemetry cannot go to stdout", "a file, .sqlite or .csv"});
  if (!a.memory.empty() && a.scenarios.size() > 1)
    faults.add({"--memory", "", "several scenarios", "one, or -o DIR for a figure of each"});
  std::vector<LoadedScenario> scenarios;
  for (const std::string& file : a.scenarios)
    scenarios.push_back(load_scenario(file, a.set, faults, a.explain || !a.output.empty()));
  if (faults.empty()) mlperf::check_mlperf_folder("--mlperf-logs", a.mlperf_logs, scenarios, a.seed, faults);
  faults.throw_if_any();
  if (a.explain) {
    for (const LoadedScenario& s : scenarios) console.result(fmt::format("{}\n{}\n", s.scenario.name, s.explain));
    return ExitCode::done;
  }

  std::vector<Outcome> outcomes;
  {
    Progress progress(console, "simulating");
    // One scenario alone shares its seeded runs among the processors.
    const int jobs = workers(a.jobs);
    outcomes = simulate_all(scenarios, {a.seed, a.runs, a.level, scenarios.size() == 1 ? jobs : 1}, jobs, kDeadline_s,
                            [&](size_t done, size_t all) { progress.update(done, all); });
  }
  int code = 0;
  std::string table;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Outcome& o = outcomes[i];
    if (o.result.scenario.empty()) o.result.scenario = scenarios[i].scenario.name;
    add_intervals(o.result, scenarios[i].scenario, residual_table());
    code = std::max(code, o.exit_code);
    if (!a.set.empty() && !o.result.reference.rows.empty())
      o.result.warnings.push_back(
          "inputs were overridden by --set; the measured figures belong to the scenario as it stands");
    if (!o.result.error.empty())
      console.error(fmt::format("{}: {}", scenarios[i].file, o.result.error));
    else if (o.exit_code != 0)
      console.error(fmt::format("{}: {} of {} runs stopped before their target", scenarios[i].file,
                                o.result.series_of_runs.count - o.result.series_of_runs.finished,
                                o.result.series_of_runs.count));
    table += report::result_table(o.result);
  }
  table += report::side_by_side(outcomes);
  if (!a.output.empty()) write_folder(console, a, scenarios, outcomes, table);
  if (!a.json.empty()) write_output(console, a.json, report::results_json(outcomes));
  if (!a.telemetry.empty()) write_telemetry_of(console, a, scenarios, outcomes);
  if (!a.mlperf_logs.empty()) code = std::max(code, write_mlperf_logs_of(a, console, scenarios, outcomes));
  if (a.json != "-") console.result(table);
  if (!a.memory.empty()) write_memory_of(console, a, outcomes.front().result);
  return static_cast<ExitCode>(code);
}

}  // namespace

Command run_command() {
  const auto a = std::make_shared<RunArguments>();
  return {
      "run",
      "Simulates scenarios: time, power, energy and carbon of a training run",
      "  trainwatt run scenarios/smc-llama2-70b-lora-8n.json\n"
      "  trainwatt run scenarios/smc-llama2-70b-lora-8n.json --set /plan/nodes=16 --set /plan/gbs=16\n"
      "  trainwatt run scenarios/*.json -o out --json out/all.json\n"
      "  trainwatt run scenarios/smc-llama2-70b-lora-64n.json --telemetry power.sqlite\n"
      "  trainwatt run scenarios/smc-llama2-70b-lora-8n.json --runs 10 --mlperf-logs logs\n"
      "  trainwatt run mine.json --set \"/cluster/fabric/uplink_bandwidth=200 Gbit/s\" --json -",
      {argument("scenario", "FILE", "scenario files", &a->scenarios),
       output_folder("-o,--output",
                     "write result.json, results.csv, table.txt, inputs.json and the figures into DIR, for report",
                     &a->output),
       json_file("the results", &a->json),
       option("--set", "POINTER=VALUE", "override a value of every scenario, as /plan/tp=8; may be repeated", &a->set),
       seed(&a->seed),
       option("--runs", "N",
              "seeded repetitions; distributions are taken over them (default: as the scenario says, else 1)", &a->runs,
              between(1, 1e6)),
       option("--level", "N",
              "1: one rank a class (default); 2: every node; 3: every message, up to 256 GPUs: one for each round of a "
              "ring, up to 64, and 64 pieces of what is passed on",
              &a->level, between(1, 3)),
       jobs("scenarios, or runs of one scenario, simulated", &a->jobs),
       output_file("--telemetry",
                   "write readings of every node, bus, rectifier and switch: SQLite, or CSV by the ending .csv",
                   &a->telemetry),
       option("--telemetry-interval", "S", "seconds between readings (default 1)", &a->telemetry_interval_s,
              between(1e-3, 1e9)),
       output_file("--memory",
                   "write memory of a GPU through one step: counters of a Chrome/Perfetto trace, CSV by the ending "
                   ".csv; - prints a table",
                   &a->memory),
       output_folder("--mlperf-logs",
                     "write logs and power files of every run into DIR in the form of an MLPerf Training submission; "
                     "they are marked as simulated, are no MLPerf results and not verified by MLCommons",
                     &a->mlperf_logs),
       flag("--explain-inputs", "print every value in effect and where it comes from; simulate nothing", &a->explain),
       quiet(&a->quiet)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
