// trainwatt import: MLPerf results as they were submitted.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "report/import_report.hpp"
#include "study/mlperf_submission.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::string folder, system, benchmark, output, json, csv;
  bool quiet = false;
};

Import read(const Arguments& a, const Console& console) {
  Progress progress(console, "reading");
  return import_submission(
      a.folder,
      [&](const std::string& system, const std::string& benchmark) {
        return (a.system.empty() || a.system == system) && (a.benchmark.empty() || a.benchmark == benchmark);
      },
      [&](size_t done, size_t all) { progress.update(done, all); });
}

ExitCode run(const Arguments& a, Console& console) {
  console.quiet = a.quiet;
  Faults faults;
  check_output_folder("-o", a.output, faults);
  check_output_file("--json", a.json, faults);
  check_output_file("--csv", a.csv, faults);
  if (a.json == "-" && a.csv == "-")
    faults.add({"--csv", "", "JSON and CSV cannot both go to stdout", "a file for one of them"});
  faults.throw_if_any();
  const Import import = read(a, console);
  const std::string table = report::import_table(import);
  if (!import.usable()) {
    console.error(table + fmt::format("{}: no run is complete (run_start and run_stop)", a.folder));
    return ExitCode::bad_input;
  }
  if (!a.output.empty()) {
    const auto in_folder = [&](const char* name) { return (std::filesystem::path(a.output) / name).string(); };
    write_file(in_folder("import.json"), report::import_json(import));
    write_file(in_folder("runs.csv"), report::import_csv(import));
    write_file(in_folder("findings.csv"), report::findings_csv(import));
    write_file(in_folder("table.txt"), table);
  }
  if (!a.json.empty()) write_output(console, a.json, report::import_json(import));
  if (!a.csv.empty()) write_output(console, a.csv, report::import_csv(import));
  if (a.json != "-" && a.csv != "-") console.result(table);
  return ExitCode::done;
}

}  // namespace

Command import_command() {
  const auto a = std::make_shared<Arguments>();
  return {"import",
          "Reads MLPerf Training results: runs, scores, energies and what is wrong with the data",
          "  trainwatt import training_results_v4.0/smc-dc-power\n"
          "  trainwatt import results/8xSMC-H100-SXM-80GB/llama2_70b_lora --json -",
          {{"folder",
            "DIR",
            "a submission, a whole round, or any part of one down to a folder with result_*.txt",
            &a->folder,
            true,
            {}},
           {"--system", "NAME", "only this system (the name of its folder)", &a->system, false, {}},
           {"--benchmark", "NAME", "only this benchmark", &a->benchmark, false, {}},
           {"-o,--output",
            "DIR",
            "write import.json, runs.csv, findings.csv and table.txt into DIR",
            &a->output,
            false,
            {}},
           {"--json", "FILE", "write everything as JSON; - is stdout, in place of the table", &a->json, false, {}},
           {"--csv", "FILE", "write a row for each run; - is stdout, in place of the table", &a->csv, false, {}},
           {"-q,--quiet", "", "no progress bar and no remarks", &a->quiet, false, {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
