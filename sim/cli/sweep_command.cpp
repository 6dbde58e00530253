// trainwatt sweep: a study, every combination of its values.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "report/inputs_json.hpp"
#include "report/result_json.hpp"
#include "report/sweep_report.hpp"
#include "study/sweep.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::string study, output;
  std::vector<std::string> set;
  int jobs = 0;
  bool quiet = false;
};

ExitCode run(const Arguments& a, Console& console) {
  console.quiet = a.quiet;
  Faults faults;
  check_output_folder("-o", a.output, faults);
  const LoadedStudy loaded = load_study(a.study, a.set, faults);
  faults.throw_if_any();
  const std::vector<StudyPoint> points = points_of(loaded.study);
  std::vector<Outcome> outcomes;
  {
    Progress progress(console, "sweep");
    outcomes = run_study(loaded, points, a.jobs > 0 ? a.jobs : default_jobs(), kDeadline_s,
                         [&](size_t done, size_t all) { progress.update(done, all); });
  }
  int code = 0;
  size_t failed = 0;
  for (const Outcome& o : outcomes) {
    code = std::max(code, o.exit_code);
    failed += o.result.error.empty() ? 0 : 1;
  }
  write_file((std::filesystem::path(a.output) / "sweep.csv").string(),
             report::sweep_csv(loaded.study, points, outcomes));
  report::Reproduction how{{"trainwatt", "sweep", a.study}, loaded.study.seed, loaded.study.runs, loaded.study.level};
  for (const std::string& set : a.set) how.command.insert(how.command.end(), {"--set", set});
  how.command.insert(how.command.end(), {"-o", "out"});
  write_file((std::filesystem::path(a.output) / "inputs.json").string(),
             report::study_inputs_json(how, loaded.study,
                                       load_scenario(loaded.scenario_file, loaded.study.set, faults, true)));
  const std::string table = report::sweep_table(loaded.study, points, outcomes);
  write_file((std::filesystem::path(a.output) / "table.txt").string(), table);
  for (const std::string& note : report::sweep_figures(a.output, loaded.study, points, outcomes)) console.message(note);
  console.result(table);
  if (failed > 0)
    console.error(fmt::format("{} of {} points failed; their rows in sweep.csv say why", failed, points.size()));
  return static_cast<ExitCode>(code);
}

}  // namespace

Command sweep_command() {
  const auto a = std::make_shared<Arguments>();
  return {"sweep",
          "Simulates a study: one scenario with many values of some of its inputs",
          "  trainwatt sweep scenarios/studies/half-the-spines.json -o out\n"
          "  trainwatt sweep mine.json -o out --jobs 8",
          {{"study", "FILE", "study file", &a->study, true, {}},
           {"-o,--output", "DIR", "write sweep.csv, table.txt and the figures into DIR", &a->output, true, {}},
           {"--set", "POINTER=VALUE", "override a value of the study file; may be repeated", &a->set, false, {}},
           {"--jobs", "N", "points simulated at once (default: one a processor)", &a->jobs, false, between(1, 4096)},
           {"-q,--quiet", "", "no progress bar and no remarks", &a->quiet, false, {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
