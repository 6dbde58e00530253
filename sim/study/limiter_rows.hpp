// A board's limiter in time against measured bursts, as rows of a suite: no run, the board's laws alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "hardware/activity.hpp"

namespace tw {

struct RowOutcome;

// Bursts of one kernel with rests between, a run each, and what the driver read meanwhile. Given: when bursts began and
// ended, when the driver renewed its counter (and so decided), what the board drew at rest. Rows: watts and clock of
// each kernel at `times` after a burst's beginning, mean over its bursts (burst_w, burst_mhz); energy from one burst's
// beginning to the next, mean over a run, since the counter is renewed too seldom for less (burst_j).
struct LimiterBursts {
  std::string bursts, samples;  // CSV
  std::string accelerator;      // profile
  std::map<std::string, Activity> kernels;
  std::vector<Time> times;
  Time reading_mean, reading_lag;  // a reading is the mean over that time, and that old
  std::vector<int> fitted_runs;
  double bound_pct = 8, energy_bound_pct = 4;
  static void describe(Description<LimiterBursts>& d);
};

std::vector<RowOutcome> limiter_rows(const LimiterBursts& bursts, Faults& faults);

}  // namespace tw
