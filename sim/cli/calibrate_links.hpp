// trainwatt calibrate --nccl-tests: link efficiencies of a cluster from measured collectives.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace tw::cli {

struct LinkCalibration {
  std::string test, cluster, output;
};

ExitCode calibrate_links(const LinkCalibration& a, Console& console);

}  // namespace tw::cli
