// trainwatt check: reads scenarios, tells all faults, simulates nothing.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "study/scenario.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::vector<std::string> scenarios, set;
  bool explain = false, quiet = false;
};

ExitCode run(const Arguments& a, Console& console) {
  console.quiet = a.quiet;
  Faults faults;
  std::vector<LoadedScenario> scenarios;
  for (const std::string& file : a.scenarios) scenarios.push_back(load_scenario(file, a.set, faults, a.explain));
  faults.throw_if_any();
  for (const LoadedScenario& s : scenarios) {
    if (!a.quiet) console.result(fmt::format("{}: valid, inputs {}\n", s.file, s.sha256.substr(0, 16)));
    if (a.explain) console.result(s.explain + "\n");
  }
  return ExitCode::done;
}

}  // namespace

Command check_command() {
  const auto a = std::make_shared<Arguments>();
  return {"check",
          "Checks scenarios and everything they draw in; simulates nothing",
          "  trainwatt check scenarios/*.json\n"
          "  trainwatt check mine.json --set /plan/tp=8 --explain-inputs",
          {{"scenario", "FILE", "scenario files", &a->scenarios, true, {}},
           {"--set", "POINTER=VALUE", "override a value of every scenario; may be repeated", &a->set, false, {}},
           {"--explain-inputs", "", "print every value in effect and where it comes from", &a->explain, false, {}},
           {"-q,--quiet", "", "say nothing about what is right", &a->quiet, false, {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
