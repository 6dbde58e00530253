// The constants of a node's power profile that a measured series tells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/scenario.hpp"

namespace tw {

// Readings on the clock of the run, which begins at 0: mean power of a node, or of one of its GPUs.
struct PowerReadings {
  std::vector<double> at_s, watts;
  bool gpu = false;
};

struct FittedWatts {
  std::string name, unit;  // key of the node's power profile
  double before = 0, after = 0;
  std::optional<double> standard_error;  // null where it is held
  std::string held;                      // why; empty: fitted
};

struct PowerFit {
  NodePower profile;
  std::vector<FittedWatts> constants;
  size_t readings = 0;    // inside the run
  double measured_w = 0;  // their mean
  // Simulated less measured, with the profile as it was and as it is.
  double rms_before_w = 0, rms_after_w = 0, bias_before_w = 0, bias_after_w = 0;
};

// Least squares on simulations of the scenario, each with one constant moved: power is linear in all but the fans',
// which stay as they are (a second round follows what they do). Throws InputError for readings that the run does not
// cover, and the error of a simulation that fails. `jobs`: simulations at once.
PowerFit fit_power(const LoadedScenario& scenario, PowerReadings readings, int jobs);

}  // namespace tw
