// trainwatt sweep: a study, every combination of its values.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "cli/sweep_outputs.hpp"
#include "core/files.hpp"
#include "report/hall_report.hpp"
#include "report/inputs_json.hpp"
#include "report/result_json.hpp"
#include "report/sweep_report.hpp"
#include "study/sweep_run.hpp"

namespace tw::cli {
namespace {

struct SweepArguments {
  std::string study, output, shard;
  std::vector<std::string> set;
  int jobs = 0;
  bool resume = false, overwrite = false, quiet = false;
};

void tell(const Console& console, const SweepTotals& t) {
  if (t.before > 0) console.message(fmt::format("{} of {} points were finished before", t.before, t.points));
  if (t.skipped > 0) console.message(fmt::format("{} points were left out; their rows say why", t.skipped));
  if (t.stopped > 0)
    console.error(fmt::format("{} points stopped before their target: they have no time to train", t.stopped));
  if (t.refused > 0)
    console.error(fmt::format("{} points were refused or do not fit; their rows in sweep.csv say why", t.refused));
  if (t.broken > 0)
    console.error(
        fmt::format("{} points failed; their rows in sweep.csv say why, --resume tries them again", t.broken));
}

ExitCode run(const SweepArguments& a, Console& console) {
  Faults& faults = console.faults;
  SweepOptions options;
  if (!a.shard.empty()) parse_shard(a.shard, options.shard, options.shards, faults);
  if (a.resume && a.overwrite) faults.add({"--resume", "", "cannot be combined with --overwrite", "one of them"});
  const LoadedStudy loaded = load_study(a.study, a.set, faults);
  faults.throw_if_any();
  options.jobs = workers(a.jobs);
  options.deadline_s = kDeadline_s;
  options.resume = a.resume, options.overwrite = a.overwrite;
  options.to_json = report::point_json;
  options.hall_json = report::hall_json;
  options.snapshot = [&](const SweepStore& store) {
    write_file(in_folder(a.output, "sweep.csv"), report::sweep_csv(report::sweep_table_of(store)));
  };
  const FolderLock lock(a.output);
  SweepTotals totals;
  {
    Progress progress(console, "sweep");
    options.progress = [&](size_t done, size_t all, size_t before) { progress.update(done, all, before); };
    totals = run_sweep(loaded, a.output, options);
  }
  report::Reproduction how{{"trainwatt", "sweep", a.study}, loaded.study.seed, loaded.study.runs, loaded.study.level};
  for (const std::string& set : a.set) how.command.insert(how.command.end(), {"--set", set});
  how.command.insert(how.command.end(), {"-o", "out"});
  std::optional<LoadedScenario> scenario;
  if (!loaded.of_hall()) scenario = load_scenario(loaded.scenario_file, loaded.study.set, faults, true);
  write_file(in_folder(a.output, "inputs.json"), report::study_inputs_json(how, loaded, scenario));
  write_sweep_outputs(console, a.output);
  tell(console, totals);
  return static_cast<ExitCode>(totals.code);
}

}  // namespace

Command sweep_command() {
  const auto a = std::make_shared<SweepArguments>();
  return {
      "sweep",
      "Simulates a study: one scenario with many values of some of its inputs",
      "  trainwatt sweep scenarios/studies/half-the-spines.json -o out\n"
      "  trainwatt sweep mine.json -o out --jobs 8\n"
      "  trainwatt sweep mine.json -o out --resume               after an interruption, a kill or a full disk\n"
      "  trainwatt sweep mine.json -o out/2 --shard 2/8          on one of eight machines; then trainwatt merge\n"
      "\n"
      "DIR gets sweep.sqlite (a row a point as it finishes), sweep.csv (every 10 s, and whole at the end), table.txt\n"
      "and the figures. A point that is refused (2), does not fit (3) or fails (4) is a row with its error, and the\n"
      "study goes on. Exit code: 0 when the study is complete, also with rows that are refused or do not fit; 4 or 1\n"
      "when a simulation broke; 2 or 3 when not one point could be simulated. Where the study says\n"
      "\"skip\": [\"refused\", \"does_not_fit\"], such rows are expected and count as left out.",
      {argument("study", "FILE", "study file", &a->study),
       required(output_folder("-o,--output", "folder of the results; one study a folder", &a->output)),
       flag("--resume",
            "go on with the study in DIR: what is finished is not simulated again; begins anew where DIR holds none",
            &a->resume),
       flag("--overwrite", "forget the results in DIR and begin anew", &a->overwrite),
       option("--shard", "I/N", "only part I of N of the points, for several machines", &a->shard),
       overrides("the study file", &a->set), jobs("points simulated", &a->jobs), quiet(&a->quiet)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
