// trainwatt check: reads scenarios, tells all faults, simulates nothing; and holds results to what has to add up.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "core/files.hpp"
#include "study/check_result.hpp"
#include "study/scenario.hpp"

namespace tw::cli {
namespace {

struct CheckArguments {
  std::vector<std::string> files, set;
  bool explain = false, quiet = false;
};

ExitCode run(const CheckArguments& a, Console& console) {
  Faults& faults = console.faults;
  std::vector<std::string> good;
  for (const std::string& file : a.files) {
    const auto path = find_input_file(file, "");
    if (const auto results = path ? check_results(read_file(*path), file, faults) : std::nullopt) {
      good.push_back(fmt::format("{}: {} result{} add{} up\n", file, *results, *results == 1 ? "" : "s",
                                 *results == 1 ? "s" : ""));
      continue;
    }
    const LoadedScenario s = load_scenario(file, a.set, faults, a.explain);
    good.push_back(fmt::format("{}: valid, inputs {}\n", s.file, s.sha256.substr(0, 16)) +
                   (a.explain ? s.explain + "\n" : ""));
  }
  faults.throw_if_any();
  if (!a.quiet || a.explain)
    for (const std::string& text : good) console.result(a.quiet ? text.substr(text.find('\n') + 1) : text);
  return ExitCode::done;
}

}  // namespace

Command check_command() {
  const auto a = std::make_shared<CheckArguments>();
  return {
      "check",
      "Checks scenarios and everything they draw in, or results of run --json; simulates nothing",
      "  trainwatt check scenarios/*.json\n"
      "  trainwatt check mine.json --set /plan/tp=8 --explain-inputs\n"
      "  trainwatt check out/result.json                          parts, sums and shares of a result",
      {argument("file", "FILE", "scenarios, or results of run --json", &a->files), overrides("every scenario", &a->set),
       flag("--explain-inputs", "print every value in effect and where it comes from", &a->explain),
       quiet(&a->quiet, "say nothing about what is right")},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
