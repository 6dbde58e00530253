// How long a run will be, before it is played.
#pragma once

#include "run/run_model.hpp"

namespace tw {

constexpr double kMostFailures = 1e5;
constexpr double kLongestRun_s = 10 * 365.25 * 86400;

struct Horizon {
  long steps = 0;
  double expected_s = 0;  // steps and evaluations, nothing else
};

// Samples to the target of one run of a series, before rounding to whole steps.
double target_samples(const RunInputs& in, const SeriesRun& series);

// Throws DoesNotFit where steps, time, evaluations, failures or checkpoints are more than what is simulated.
Horizon horizon_of(const RunInputs& in, const RunModel& model, double target_samples);

// On the nodes that evaluate.
double evaluation_batches(const RunInputs& in);

}  // namespace tw
