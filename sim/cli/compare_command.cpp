// trainwatt compare: what differs between runs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/compare_series.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "report/compare_report.hpp"
#include "report/result_json.hpp"
#include "study/simulate.hpp"

namespace tw::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> files;
  std::string json, output;
  int jobs = 0;
  bool all = false;
  double offset_s = 0;
};

ExitCode run(const CompareArguments& a, Console& console) {
  Faults& faults = console.faults;
  if (a.files.size() < 2) faults.add({"compare", "", "one file has nothing to be compared with", "two or more files"});
  std::vector<Comparand> all;
  std::vector<LoadedScenario> scenarios;  // what has to be simulated, and where its comparand stands
  std::vector<size_t> places;
  std::vector<std::string> inputs;
  std::vector<MeasuredPower> measured;
  for (const std::string& file : a.files) {
    const auto path = named_file(file, faults);
    if (!path) continue;
    if (auto series = measured_power(file, read_file(*path), faults)) {
      measured.push_back(std::move(*series));
      continue;
    }
    if (auto results = comparands_of_results(read_file(*path), file, faults)) {
      for (Comparand& c : *results) {
        if (c.name.empty()) c.name = file;
        all.push_back(std::move(c));
      }
      continue;
    }
    const size_t before = faults.size();
    scenarios.push_back(load_scenario(file, {}, faults));
    if (faults.size() != before) continue;
    Faults ignored;
    inputs.push_back(Document::load(file, description<Scenario>().info(), {}, ignored).canonical());
    places.push_back(all.size());
    all.emplace_back();
  }
  if (!measured.empty() &&
      (measured.size() != 1 || scenarios.size() != 1 || !all.front().name.empty() || all.size() != 1))
    faults.add({"compare", "", "measured power lies beside one simulation", "one scenario and one series"});
  if (measured.empty() && !a.output.empty())
    faults.add({"-o", "", "figures are drawn of measured power only", "a scenario and a power series"});
  faults.throw_if_any();
  const bool beside_results = places.size() < all.size();
  auto outcomes = simulate_all(scenarios, {}, workers(a.jobs), kDeadline_s, {});
  int code = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].result.error.empty()) code = std::max(code, outcomes[i].exit_code);
    if (!outcomes[i].result.error.empty())
      console.error(fmt::format("{}: {}", scenarios[i].file, outcomes[i].result.error));
    if (!measured.empty()) continue;
    if (beside_results) add_intervals(outcomes[i].result, scenarios[i].scenario, residual_table());
    all[places[i]] =
        comparand_of(scenarios[i].scenario.name, beside_results ? "" : inputs[i], report::results_json({outcomes[i]}));
  }
  if (code != 0) return static_cast<ExitCode>(code);
  if (!measured.empty())
    return compare_series(scenarios[0].scenario, outcomes[0].result, measured[0], {a.offset_s, a.output, a.json},
                          console);
  if (!a.json.empty()) write_output(console, a.json, report::compare_json(all));
  if (a.json != "-") console.result(report::compare_table(all, a.all));
  return ExitCode::done;
}

}  // namespace

Command compare_command() {
  const auto a = std::make_shared<CompareArguments>();
  return {
      "compare",
      "Shows what differs between runs: inputs, outputs, and the parts of the step that explain it",
      "  trainwatt compare before.json after.json\n"
      "  trainwatt compare scenarios/smc-llama2-70b-lora-8n.json scenarios/smc-llama2-70b-lora-9n.json\n"
      "  trainwatt compare base.json a.json b.json               each against the first\n"
      "  trainwatt compare mine.json measured.csv -o out         power: simulated and measured\n"
      "\n"
      "Scenarios are simulated, and all of their inputs are compared. Results hold the plan and a hash of the inputs. "
      "Measured power is a series that read makes, or any file that it makes one of.",
      {argument("file", "FILE",
                "results of run --json, or scenarios, which are simulated; or one scenario and a measured power series",
                &a->files),
       flag("--all", "show outputs that changed within their noise as well", &a->all),
       option("--offset", "S", "seconds into the measured series at which the run starts (default 0)", &a->offset_s,
              between(0, 1e9)),
       output_folder("-o,--output", "write the power figure, measured under simulated, into DIR", &a->output),
       json_file("the differences", &a->json), jobs("scenarios simulated", &a->jobs)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
