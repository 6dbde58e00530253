// What a reader needs to repeat a result: the command, and every input in effect with where it came from. Lies as
// inputs.json beside the results that `run`, `sweep` and `validate` leave in a folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/scenario.hpp"
#include "study/sweep.hpp"

namespace tw::report {

struct Reproduction {
  std::vector<std::string> command;  // words, without the output options
  uint64_t seed = 1;
  int runs = 1, level = 1;
};

// A value in effect: "/plan/tp", "4", "scenarios/mine.json /plan/tp" or "default".
struct InputValue {
  std::string pointer, value, origin;
};
// Of the lines that LoadedScenario::explain holds.
std::vector<InputValue> input_values(const std::string& explanation);

// A path as it is named inside a data folder, so that no result holds where the program was installed.
std::string portable_path(const std::string& path);
// Words as a shell takes them.
std::string command_text(const std::vector<std::string>& words);

// Scenarios have to be loaded with their explanation.
std::string inputs_json(const Reproduction& how, const std::vector<LoadedScenario>& scenarios);
// The same for a study: its description, what changes, and the scenario that it changes.
std::string study_inputs_json(const Reproduction& how, const LoadedStudy& loaded,
                              const std::optional<LoadedScenario>& scenario);

}  // namespace tw::report
