// Steady power phases of a laboratory table as rows of a suite: the board model alone predicts them, no run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/error.hpp"
#include "hardware/activity.hpp"

namespace tw {

struct RowOutcome;

// What the accelerator does in a phase, as its description gives it: `activity` for `share` of the time at burst speed,
// `rest` for what is left. Where kernels run one after the other, the share is their rate times the time of one, less
// the part of the multiprocessors that its tiles leave empty.
struct LabPhase {
  std::string phase;
  Activity activity = Activity::idle;
  double share = 1;
  Activity rest = Activity::context;
  Time kernel;               // time of one; zero: `share` holds
  double per_iteration = 1;  // kernels
  int tiles = 0;             // of one kernel; 0: it fills the device
  int multiprocessors = 132;
  double toggling = 1;  // 0: data of zeros
  std::string source;
  static void describe(Description<LabPhase>& d);
  // Shares of wall time; `iterations_per_s` as in the table.
  ActivityTimes mix(double iterations_per_s) const;
};

struct PowerPhases {
  std::string csv;
  std::map<std::string, std::string> accelerators;  // cells of column gpu -> accelerator profile
  std::vector<LabPhase> phases;
  double bound_pct = 5;
  static void describe(Description<PowerPhases>& d);
};

// Phases that are not described, and boards without a profile here, are faults.
std::vector<RowOutcome> phase_rows(const PowerPhases& phases, Faults& faults);

}  // namespace tw
