// The steady power phases of the GPU lab (reference/gpu_lab/power.csv) as the mixes of activities that their
// descriptions give, so that `validate` can compare the board model with them.
#pragma once

#include <optional>
#include <string>

#include "hardware/activity.hpp"

namespace tw {

struct LabPhase {
  ActivityTimes shares;  // of wall time at burst speed
  double toggling = 1;   // 0: data of zeros
};

// `iterations_per_s` as in the file (0 when blank). Absent for a phase that is unknown here.
std::optional<LabPhase> lab_phase(const std::string& phase, double iterations_per_s);

}  // namespace tw
