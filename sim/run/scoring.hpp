// Official scores of MLPerf Training v4.0: an olympic mean over runs, scaled when the submission converged faster than
// the reference convergence points (RCP) allow. Rule: mlcommons/logging result_summarizer.py as of May 2024.
#pragma once

#include <optional>
#include <vector>

namespace tw {

// Mean of `values` without the `drop` least and the `drop` greatest. InputError when nothing is left.
double olympic_mean(std::vector<double> values, int drop);

// max(1, mean samples of the reference convergence points / olympic mean of the submission's samples).
double rcp_factor(double reference_samples, double submitted_samples);

struct ScoredRun {
  double run_s = 0;                     // run_start to run_stop
  std::optional<double> node_energy_j;  // of all nodes: mean power of the meter file * run_s
  double network_w = 0;                 // constant estimate
};

struct OfficialScore {
  double time_s = 0;               // olympic mean * factor
  std::optional<double> energy_j;  // mean over the same runs, cut by time not by energy, * factor
  std::vector<size_t> in_score;    // positions of the runs that count, fastest first
};

OfficialScore official_score(const std::vector<ScoredRun>& runs, int drop, double factor);

}  // namespace tw
