// trainwatt validate: predictions against measured rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "report/accuracy.hpp"
#include "report/figures.hpp"
#include "report/inputs_json.hpp"
#include "report/result_json.hpp"
#include "report/table.hpp"

namespace tw::cli {
namespace {

struct ValidateArguments {
  std::vector<std::string> suites;
  std::string output, json, markdown, gaps, residuals;
  uint64_t seed = 1;
  int runs = 0, jobs = 0;
  bool quiet = false;
};

ExitCode run(const ValidateArguments& a, Console& console) {
  console.faults.throw_if_any();
  std::vector<SuiteOutcome> suites;
  {
    Progress progress(console, "validating");
    suites = validate(a.suites, {a.seed, a.runs, 1}, workers(a.jobs), kDeadline_s,
                      [&](size_t done, size_t all) { progress.update(done, all); });
  }
  int code = 0;
  std::string table;
  for (const SuiteOutcome& suite : suites) {
    code = std::max(code, suite.exit_code);
    for (const std::string& error : suite.errors) console.error(fmt::format("{}: {}", suite.name, error));
    table += report::suite_table(suite);
  }
  if (!a.output.empty()) {
    report::Figures figures;
    for (const SuiteOutcome& suite : suites)
      figures.add(report::error_figure(a.output, "predicted-measured-" + suite.name,
                                       "Simulated against measured, suite " + suite.name, report::error_points(suite)));
    for (const std::string& note : report::draw(std::move(figures))) console.message(note);
    write_file(in_folder(a.output, "validate.json"), report::suites_json(suites));
    write_file(in_folder(a.output, "validate.txt"), table);
    report::Reproduction how{{"trainwatt", "validate"}, a.seed, a.runs, 1};
    how.command.insert(how.command.end(), a.suites.begin(), a.suites.end());
    how.command.insert(how.command.end(), {"-o", "out"});
    write_file(in_folder(a.output, "validate-inputs.json"), report::inputs_json(how, {}));
  }
  if (!a.json.empty()) write_output(console, a.json, report::suites_json(suites));
  if (!a.markdown.empty()) write_output(console, a.markdown, report::accuracy_markdown(suites));
  if (!a.gaps.empty()) {
    Faults none;
    write_output(console, a.gaps, report::known_gaps_text(shrunk(load_known_gaps(none), suites)));
  }
  if (!a.residuals.empty()) {
    const ResidualTable residuals = residuals_of(suites);
    write_output(console, a.residuals, residual_table_text(residuals));
    table += report::coverage_table(coverage_of(suites, residuals));
  }
  if (a.json != "-" && a.markdown != "-" && a.gaps != "-" && a.residuals != "-") console.result(table);
  return static_cast<ExitCode>(code);
}

}  // namespace

Command validate_command() {
  const auto a = std::make_shared<ValidateArguments>();
  return {
      "validate",
      "Holds predictions against measured rows, suite by suite",
      "  trainwatt validate\n"
      "  trainwatt validate smc --json -\n"
      "  trainwatt validate smc-calibrated -o out",
      {option("suite", "SUITE", "suites by name or file (default: all of reference/suites)", &a->suites),
       output_folder("-o,--output", "write validate.json, validate.txt and a figure a suite into DIR", &a->output),
       json_file("the rows", &a->json),
       output_file("--markdown", "write the accuracy table of the README", &a->markdown),
       output_file("--gaps", "write the known gaps, those that were closed left out, those that shrank shrunk",
                   &a->gaps),
       output_file("--residuals", "write the errors of the predicted rows by class, what intervals are made of",
                   &a->residuals),
       seed(&a->seed),
       option("--runs", "N", "seeded repetitions, at least those of the suite (default: as each scenario says, else 1)",
              &a->runs, between(1, 1e6)),
       jobs("scenarios simulated", &a->jobs), quiet(&a->quiet)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
