// Results as JSON: the contract that other programs read. SI units, stable keys, null where a key does not apply.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "study/simulate.hpp"
#include "study/validate.hpp"

namespace tw::report {

// Indented; what is not UTF-8 is replaced.
std::string json_text(const nlohmann::ordered_json& j);

// An array in argument order; a scenario that failed leaves {"scenario", "error"}.
std::string results_json(const std::vector<Outcome>& outcomes);

// What a study keeps of a result: without the list of nodes, on one line.
std::string point_json(const Result& result);

std::string suites_json(const std::vector<SuiteOutcome>& suites);

}  // namespace tw::report
