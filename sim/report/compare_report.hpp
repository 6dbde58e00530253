// Differences of runs, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "study/compare.hpp"

namespace tw::report {

// What differs in the inputs, what that did to the outputs, and which parts of the step explain it; each against the
// first. Unless `everything` is asked for, outputs that changed by less than the seeds of the runs leave open, or by
// less than a tenth of a percent, are counted instead of shown.
std::string compare_table(const std::vector<Comparand>& all, bool everything = true);
// {"names", "inputs": [{"path", "values", "change_pct", "changes_pct"}], "outputs": [...],
//  "step": [{"name", "change_s", "parts": [{"part", "first_s", "other_s", "change_s"}]}]}
std::string compare_json(const std::vector<Comparand>& all);

}  // namespace tw::report
