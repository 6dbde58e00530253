// How long a run lasts and what interrupts its steps: the "run" block of a scenario.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "power/failure.hpp"
#include "run/checkpoint.hpp"
#include "run/convergence.hpp"
#include "run/data_loading.hpp"
#include "run/reliability.hpp"
#include "run/slow_node.hpp"

namespace tw {

// The measurement window and score of MLPerf Training v4.0 (DESIGN 8).
struct MlperfWindow {
  std::optional<double> rcp_factor;  // absent: from the convergence data, else 1
  Time meter_before;                 // the meter file starts this long before run_start
  Time meter_after;                  // and ends this long after run_stop
  static void describe(Description<MlperfWindow>& d);
};

struct RunPlan {
  std::optional<double> samples;       // to the target; absent: a fixed number of steps
  std::vector<double> samples_by_run;  // or of each seeded run: run i takes element i modulo length
  std::optional<double> steps;
  std::optional<double> tokens;
  std::optional<Convergence> convergence;
  int runs = 0;                    // seeded runs; 0: as many as samples_by_run lists, else one
  double first_evaluation_at = 0;  // samples
  double evaluation_interval = 0;  // samples; 0 = no evaluations
  double evaluation_samples = 0;
  bool asynchronous_evaluation = false;
  MlperfWindow mlperf_v4_0;
  std::optional<CheckpointPlan> checkpoints;
  DataLoading data;
  std::optional<Reliability> reliability;
  int spare_nodes = 0;
  std::vector<SlowNode> slow_nodes;
  std::vector<SlowCable> slow_cables;
  std::vector<PowerFailure> power_failures;  // what if, in the order of their times
  std::string start;                         // run_start in civil time, for hourly series
  static void describe(Description<RunPlan>& d);
};

// Seeded runs that a plan asks for by itself.
inline int planned_runs(const RunPlan& run) {
  if (run.runs > 0) return run.runs;
  return run.samples_by_run.empty() ? 1 : static_cast<int>(run.samples_by_run.size());
}

}  // namespace tw
