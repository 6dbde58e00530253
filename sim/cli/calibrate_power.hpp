// trainwatt calibrate --power: a node's power profile from a measured series.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace tw::cli {

struct PowerCalibration {
  std::string series, scenario, output;
  double offset_s = 0;
};

ExitCode calibrate_power(const PowerCalibration& a, Console& console);

}  // namespace tw::cli
