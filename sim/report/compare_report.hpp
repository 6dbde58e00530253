// Differences of runs, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "study/compare.hpp"

namespace tw::report {

std::string compare_table(const std::vector<Comparand>& all);
// {"names", "inputs": [{"path", "values", "change_pct"}], "outputs": [...]}
std::string compare_json(const std::vector<Comparand>& all);

}  // namespace tw::report
