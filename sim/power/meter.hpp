// Meters as real ones read: polled, late, rounded.
#pragma once

#include <vector>

#include "power/piecewise.hpp"
#include "power/power_run.hpp"

namespace tw {

struct Meter {
  double interval_s = 2;  // between polls
  double lag_s = 0;       // a reading at t shows t - lag
  double rounding_w = 1;  // 0 = none
};
// The reference cluster's meters at its nodes: 2.0 s polls, late by 0.7 s (smc_v4.0/README.md, data quality).
inline constexpr Meter dc_meter{2, 0.7, 1};

struct Readings {
  std::vector<double> time_s, watts;
};

// Polls at from, from + interval, ... up to `to` inclusive.
Readings sample(const Meter& meter, const PiecewiseWatts& power, double from_s, double to_s);

// Mean and quantiles over the nodes of a job, as the meter reads them.
struct NodeSeries {
  std::vector<double> time_s, mean_w, p5_w, p50_w, p95_w;
};
NodeSeries node_series(const PowerRun& run, const Meter& meter, double from_s, double to_s);

// Linear interpolation between order statistics (as numpy's default). `values` is sorted.
double quantile(const std::vector<double>& sorted, double q);

}  // namespace tw
