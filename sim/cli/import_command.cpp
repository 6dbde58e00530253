// trainwatt import: MLPerf results as they were submitted.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "mlperf/compare_pages.hpp"
#include "mlperf/import_compare.hpp"
#include "mlperf/import_report.hpp"
#include "mlperf/submission.hpp"

namespace tw::cli {
namespace {

struct ImportArguments {
  std::string folder, system, benchmark, output, json, csv, compare, profile;
  bool quiet = false;
};

Import read(const ImportArguments& a, const Console& console) {
  Progress progress(console, "reading");
  return import_submission(
      a.folder,
      [&](const std::string& system, const std::string& benchmark) {
        return (a.system.empty() || a.system == system) && (a.benchmark.empty() || a.benchmark == benchmark);
      },
      [&](size_t done, size_t all) { progress.update(done, all); });
}

// The imported runs beside a simulation of `scenario`.
struct Comparison {
  const ImportedBenchmark* benchmark = nullptr;  // null: none is asked for
  Outcome outcome;
  std::vector<ImportComparison> rows;
};

Comparison compare(const ImportedBenchmark& benchmark, const LoadedScenario& scenario) {
  Comparison c;
  c.benchmark = &benchmark;
  c.outcome = simulate_all({scenario}, {}, 1, kDeadline_s, {}).front();
  if (c.outcome.result.error.empty()) c.rows = compare_import(benchmark, c.outcome.result);
  return c;
}

LoadedScenario scenario_of(const std::string& file, const std::vector<std::string>& overrides) {
  Faults faults;
  LoadedScenario scenario = load_scenario(file, overrides, faults);
  faults.throw_if_any();
  return scenario;
}

// How the fitted scenario, written to `profile`, names the one it overrides: as given where that is found from
// anywhere, else from its folder.
std::string base_name(const std::string& scenario, const std::string& profile) {
  namespace fs = std::filesystem;
  if (profile == "-" || !fs::path(scenario).is_relative()) return scenario;
  for (const std::string& folder : data_folders())
    if (fs::exists(fs::path(folder) / scenario)) return scenario;
  const fs::path parent = fs::path(profile).parent_path();
  return fs::proximate(scenario, parent.empty() ? fs::path(".") : parent).string();
}

// Fits the scenario's constants to the runs: what depends on one another settles in a few simulations.
void write_profile(const ImportArguments& a, Console& console, const ImportedBenchmark& benchmark) {
  constexpr int rounds = 3;
  LoadedScenario scenario = scenario_of(a.compare, {});
  std::vector<FittedConstant> constants;
  Progress progress(console, "fitting");
  for (int round = 0;; ++round) {
    const Comparison c = compare(benchmark, scenario);
    progress.update(static_cast<size_t>(round), rounds);
    if (!c.outcome.result.error.empty()) throw SimulationError(c.outcome.result.error);
    if (round == rounds) {
      console.message("With the fitted constants:");
      console.message(mlperf::import_comparison_table(benchmark, c.outcome.result, c.rows));
      break;
    }
    constants = fit_constants(benchmark, scenario, c.outcome.result);
    std::vector<std::string> overrides;
    for (const FittedConstant& f : constants) overrides.push_back(f.pointer + "=" + f.value);
    scenario = scenario_of(a.compare, overrides);
  }
  write_output(console, a.profile,
               mlperf::fitted_scenario(base_name(a.compare, a.profile), scenario.scenario.name + "-fitted", constants));
}

void write_folder(const ImportArguments& a, Console& console, const Import& import, const Comparison& comparison,
                  const std::string& table, const Pieces& json) {
  namespace fs = std::filesystem;
  const auto in_folder = [&](const char* name) { return (fs::path(a.output) / name).string(); };
  write_output(console, in_folder("import.json"), json);
  write_file(in_folder("runs.csv"), mlperf::import_csv(import));
  write_file(in_folder("findings.csv"), mlperf::findings_csv(import));
  write_file(in_folder("table.txt"), table);
  const std::string top = fs::is_directory(a.folder) ? a.folder : fs::path(a.folder).parent_path().string();
  std::vector<std::string> notes;
  for (const ImportedBenchmark& b : import.benchmarks) {
    const bool compared = comparison.benchmark == &b && comparison.outcome.result.error.empty();
    for (const std::string& note :
         mlperf::import_figure(a.output, top, b, compared ? &comparison.outcome.result : nullptr))
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  for (const std::string& note : notes) console.message(note);
}

ExitCode run(const ImportArguments& a, Console& console) {
  Faults& faults = console.faults;
  if (!a.profile.empty() && a.compare.empty())
    faults.add({"--profile", "", "needs a scenario whose constants it fits", "--compare SCENARIO"});
  LoadedScenario scenario;
  if (!a.compare.empty()) scenario = load_scenario(a.compare, {}, faults);
  faults.throw_if_any();
  const Import import = read(a, console);
  std::string table = mlperf::import_table(import);
  if (!import.usable()) {
    console.error(table + fmt::format("{}: no run is complete (run_start and run_stop)", a.folder));
    return ExitCode::bad_input;
  }
  Comparison comparison;
  std::string compared_json;
  if (!a.compare.empty()) {
    comparison = compare(counterpart(import, scenario), scenario);
    const Result& result = comparison.outcome.result;
    if (!result.error.empty()) {
      console.error(fmt::format("{}: {}", a.compare, result.error));
    } else {
      table += "\n" + mlperf::import_comparison_table(*comparison.benchmark, result, comparison.rows);
      compared_json = mlperf::import_comparison_json(result.scenario, *comparison.benchmark, comparison.rows);
    }
  }
  const Pieces json = [&](const auto& write) { mlperf::import_json(import, compared_json, write); };
  if (!a.output.empty()) write_folder(a, console, import, comparison, table, json);
  if (!a.json.empty()) write_output(console, a.json, json);
  if (!a.csv.empty()) write_output(console, a.csv, mlperf::import_csv(import));
  if (a.json != "-" && a.csv != "-" && a.profile != "-") console.result(table);
  if (!a.profile.empty() && comparison.outcome.exit_code == 0) write_profile(a, console, *comparison.benchmark);
  return static_cast<ExitCode>(comparison.outcome.exit_code);
}

}  // namespace

Command import_command() {
  const auto a = std::make_shared<ImportArguments>();
  return {
      "import",
      "Reads MLPerf Training results: runs, scores, energies and what is wrong with the data",
      "  trainwatt import training_results_v4.0/smc-dc-power\n"
      "  trainwatt import results/8xSMC-H100-SXM-80GB/llama2_70b_lora --json -\n"
      "  trainwatt import reference/mlperf_logs --compare scenarios/smc-llama2-70b-lora-8n.json -o out\n"
      "  trainwatt import mine/results --compare mine.json --profile mine-fitted.json",
      {argument("folder", "DIR", "a submission, a whole round, or any part of one down to a folder with result_*.txt",
                &a->folder),
       option("--system", "NAME", "only this system (the name of its folder)", &a->system),
       option("--benchmark", "NAME", "only this benchmark", &a->benchmark),
       output_folder("-o,--output",
                     "write import.json, runs.csv, findings.csv, table.txt and a figure of the power of each benchmark "
                     "into DIR",
                     &a->output),
       json_file("everything", &a->json),
       output_file("--csv", "write a row for each run; - is stdout, in place of the table", &a->csv),
       option("--compare", "SCENARIO", "simulate it and show it beside the runs on as many nodes", &a->compare),
       output_file("--profile",
                   "with --compare: write a scenario that overrides SCENARIO with constants of its software and "
                   "cluster fitted to the runs, each with its source; - is stdout, in place of the table",
                   &a->profile),
       quiet(&a->quiet)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
