// The accuracy table of the README.
#pragma once

#include <string>
#include <vector>

#include "study/validate.hpp"

namespace tw::report {

// Markdown, a table a suite: rows are quantities, columns the runs that stand before the slash of the row ids. Cells
// hold the error in percent, f for a fitted row, v for one that was in view, the bound in brackets, ! where it is not
// met.
std::string accuracy_markdown(const std::vector<SuiteOutcome>& suites);

// How many rows of each suite lie within the interval that was made without it.
std::string coverage_table(const std::vector<Coverage>& coverage);

// reference/known_gaps.json, one gap a line.
std::string known_gaps_text(const KnownGaps& known);

}  // namespace tw::report
