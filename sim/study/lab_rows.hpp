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
  static void describe(Description<PowerPhases>& d) {
    d.object("power_phases", "A table of steady power phases of accelerators, one row each (quantity phase_w).");
    d.required("csv", &PowerPhases::csv, "the table: columns gpu, phase, watts_each, watts_mean, iterations_per_s");
    d.required("accelerators", &PowerPhases::accelerators, "accelerator profile by the cells of column gpu");
    d.optional("bound_pct", &PowerPhases::bound_pct, "largest error allowed, in percent", above(0));
  }
};

// Phases whose description gives no mix of activities, and boards without a profile here, are faults.
std::vector<RowOutcome> phase_rows(const PowerPhases& phases, Faults& faults);

}  // namespace tw
