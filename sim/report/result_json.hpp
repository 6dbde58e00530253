// Results as JSON: the contract that other programs read. SI units, stable keys, null where a key does not apply.
#pragma once

#include <string>
#include <vector>

#include "study/simulate.hpp"
#include "study/validate.hpp"

namespace tw::report {

// An array in argument order; a scenario that failed leaves {"scenario", "error"}.
std::string results_json(const std::vector<Outcome>& outcomes);

std::string suites_json(const std::vector<SuiteOutcome>& suites);

// Inconsistencies of a published reference that a reader has to know, such as a carbon figure that does not follow from
// the site's own factor.
std::vector<std::string> reference_warnings(const Result& result);

}  // namespace tw::report
