// trainwatt hall: many jobs in one hall.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "report/hall_report.hpp"

namespace tw::cli {
namespace {

struct HallArguments {
  std::string hall, output, json;
  std::vector<std::string> set;
  uint64_t seed = 1;
  int runs = 1, jobs = 0;
  bool quiet = false;
};

ExitCode run(const HallArguments& a, Console& console) {
  const LoadedHall loaded = load_hall(a.hall, a.set, console.faults);
  console.faults.throw_if_any();
  HallAnswer answer;
  {
    Progress progress(console, "simulating the jobs");
    answer = simulate_hall(loaded, {a.seed, a.runs, workers(a.jobs), kDeadline_s},
                           [&](size_t done, size_t all) { progress.update(done, all); });
  }
  const std::string table = report::hall_table(answer), json = report::hall_json(answer);
  if (!a.output.empty()) {
    write_file(in_folder(a.output, "hall.json"), json);
    write_file(in_folder(a.output, "jobs.csv"), report::hall_jobs_csv(answer));
    write_file(in_folder(a.output, "table.txt"), table);
    for (const std::string& text : report::draw(report::hall_figures(a.output, answer))) console.message(text);
  }
  if (!a.json.empty()) write_output(console, a.json, json);
  if (a.json != "-") console.result(table);
  for (const std::string& warning : answer.warnings) console.message("warning: " + warning);
  return ExitCode::done;
}

}  // namespace

Command hall_command() {
  const auto a = std::make_shared<HallArguments>();
  return {"hall",
          "Runs many jobs in one hall, on one clock: waits, caps, power over time, energy, carbon and cost of each",
          "  trainwatt hall scenarios/halls/smc-week.json -o out\n"
          "  trainwatt hall scenarios/halls/two-megawatts.json --set /budget/keep='[\"pause\"]' -o out\n"
          "  trainwatt hall scenarios/halls/hundred-megawatts.json --runs 20 -o out     failures of 20 seeds\n"
          "\n"
          "DIR gets hall.json, jobs.csv, power.csv (from one change to the next), hall.csv (who was where when),\n"
          "spectrum.csv, table.txt and the figures.",
          {argument("hall", "FILE", "hall file", &a->hall),
           output_folder("-o,--output", "folder of the results", &a->output), json_file("the answer", &a->json),
           overrides("the hall file", &a->set), seed(&a->seed),
           option("--runs", "N", "seeds of failures and random arrivals, from the seed on; the first in detail",
                  &a->runs, between(1, 10000)),
           jobs("scenarios simulated", &a->jobs), quiet(&a->quiet)},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
