// The two energy windows. Both are always given, because published figures follow the second.
//   run          run_start to run_stop.
//   mlperf_v4_0  the scoring rule of MLPerf Training v4.0: (mean power of the whole meter file * run time + network
//                power * run time) * RCP factor. The meter file may reach beyond the run (there: 55 s before and 57 s
//                after it on one node), so its mean is not that of the run.
#pragma once

#include <optional>

#include "power/power_run.hpp"

namespace tw {

// Joules; the keys of the result contract. facility/ adds its own.
struct EnergyWindow {
  double nodes_dc_j = 0;
  std::optional<double> network_j;   // null where the rule is undefined
  std::optional<double> total_dc_j;  // nodes + network
  double rectifier_loss_j = 0;       // with what batteries of the buses took and have not given back
  std::optional<double> total_ac_j;  // total_dc_j + rectifier_loss_j: the network has no measured rectifiers
  std::optional<double> rcp_factor;  // mlperf_v4_0 only
};

EnergyWindow run_window(const PowerRun& run, std::optional<double> network_w);

// before_s, after_s: how far the meter file reaches beyond the run.
EnergyWindow mlperf_window(const Cluster& cluster, const PowerRun& run, std::optional<double> network_w,
                           double before_s, double after_s, double rcp_factor);

}  // namespace tw
