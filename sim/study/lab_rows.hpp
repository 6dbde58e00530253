// Steady power phases of a laboratory table as rows of a suite: the board model alone predicts them, no run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/error.hpp"

namespace tw {

struct RowOutcome;

struct PowerPhases {
  std::string csv;
  std::map<std::string, std::string> accelerators;  // cells of column gpu -> accelerator profile
  double bound_pct = 5;
  static void describe(Description<PowerPhases>& d);
};

// Phases whose description gives no mix of activities, and boards without a profile here, are faults.
std::vector<RowOutcome> phase_rows(const PowerPhases& phases, Faults& faults);

}  // namespace tw
