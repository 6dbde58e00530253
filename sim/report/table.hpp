// Results as tables for people, 80 columns wide where names allow it.
#pragma once

#include <string>
#include <vector>

#include "study/simulate.hpp"
#include "study/validate.hpp"

namespace tw::report {

std::string result_table(const Result& result);

// One scenario a block of lines: predicted, measured, error of what a reader looks for first. Empty for fewer than two.
std::string side_by_side(const std::vector<Outcome>& outcomes);

std::string suite_table(const SuiteOutcome& suite);

// One line a scenario, for spreadsheets: SI units, named in the first line.
std::string results_csv(const std::vector<Outcome>& outcomes);

}  // namespace tw::report
