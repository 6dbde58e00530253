// The time side of a simulated run: the seeded runs together (Monte-Carlo), checkpoints, failures, data.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "power/energy_window.hpp"
#include "run/run_model.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

// What all runs of a series share, by reference.
struct RunSeries {
  const Scenario* scenario = nullptr;
  const RunInputs* inputs = nullptr;
  const RunModel* model = nullptr;
  network::Engine* engine = nullptr;
  uint64_t seed = 1;  // of the first run
  int runs = 1;
  NoisePools* pools = nullptr;
};

// What is kept of each run: seconds, joules.
struct RunSample {
  double time_s = 0, samples = 0, target_samples = 0, goodput = 0, lost_s = 0;
  double nodes_dc_j = 0, rectifier_loss_j = 0;
  double meter_dc_j = 0, meter_loss_j = 0;  // mean power of the meter file x run time, nodes alone
  ActivityTimes gpus_j;                     // parts of nodes_dc_j
  std::array<double, 5> others_j{};         // in the order of kNodePartNames
  bool finished = true;                     // reached its target
};
struct PlayedRuns {
  std::vector<RunSample> samples;
  std::vector<double> node_j;  // of each node, rising, inside the run: sum over the runs
  bool finished() const;       // all of them
};

// Run `index` of the series, its nodes numbered as in the cluster.
SimulatedRun play_one(const RunSeries& series, int index);
void add_sample(PlayedRuns& runs, const Scenario& scenario, const SimulatedRun& run);
// Adds the other runs to `runs`, which holds the first. Long series are cut into a fixed number of pieces, each in a
// process of its own, `workers` at a time: the bytes do not depend on it.
void play_series(PlayedRuns& runs, const RunSeries& series, int workers);

// Over all runs. The olympic mean drops the fastest and the slowest; below three runs it is the mean. Nothing where a
// run did not reach its target.
Distribution time_distribution(const Scenario& scenario, const PlayedRuns& runs, double rcp_factor);
// What a score is multiplied by: the scenario's factor, else that of the reference convergence points (those the run
// draws from, or its benchmark's) over the samples that its runs took; `rule` says which. 1 where neither is there.
double submission_factor(const Scenario& scenario, const std::vector<double>& target_samples, std::string& rule);
SeriesResult series_result(const Scenario& scenario, const PlayedRuns& runs, Maybe network_w);
// Means over all runs, as time_distribution() has of their times; the second over those in the score.
EnergyWindow mean_window(const PlayedRuns& runs, Maybe network_w);
EnergyWindow mean_mlperf_window(const Scenario& scenario, const PlayedRuns& runs, Maybe network_w, double rcp_factor);
// Days, energy by part, and what each node draws, over all runs in place of the first.
void take_means(Result& result, const PlayedRuns& runs);

// Of the run that the result shows. The distribution of times is left out.
RunResult run_result(const Scenario& scenario, const RunInputs& inputs, const RunModel& model, const SimulatedRun& run,
                     const StepResult& step);
std::vector<std::string> run_warnings(const Scenario& scenario, const Result& result, const SimulatedRun& run);

double days_per_trillion_tokens(double tokens_per_s);

// Runs for a mean that is right to `relative_error` with 95 % certainty, when single runs scatter by `relative_sd`.
double runs_needed(double relative_sd, double relative_error);

}  // namespace tw
