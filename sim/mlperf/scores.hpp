// Scores of imported runs by the rules of MLPerf Training, through run/scoring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlperf/meter_file.hpp"

namespace tw {

// A run with its power. Energies are absent unless every node has a usable meter file.
struct MeasuredRun {
  ImportedRun log;
  std::vector<NodeMeter> nodes;
  std::optional<double> network_w;  // estimates of sw_*.txt, added up
  std::optional<double> nodes_run_j, nodes_mlperf_j;
  std::optional<double> node_w_mean, node_w_min, node_w_max;  // in the run window
  int distinct_traces = 0;
  bool in_score = false;

  std::optional<double> network_j() const;
  std::optional<double> total_run_j() const;     // nodes + network, run_start to run_stop
  std::optional<double> total_mlperf_j() const;  // the same in the window of MLPerf v4.0, before the RCP factor
};

struct ImportedScore {
  int required_runs = 0;  // 0: not known for this benchmark
  int drop = 1;           // at each end
  int failed = 0;
  double factor = 1;                      // RCP
  std::optional<double> time_s;           // olympic mean * factor
  std::optional<double> energy_mlperf_j;  // * factor
  std::optional<double> energy_run_j;     // mean over the same runs, without the factor
  std::string none_because;               // why there is no score
  std::string remark;                     // fewer runs than the rules ask for
};

// Marks the runs in score. A run that failed counts as slower than any other.
ImportedScore score_runs(const std::string& benchmark, std::vector<MeasuredRun>& runs, double factor);

}  // namespace tw
