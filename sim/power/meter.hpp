// Meters as real ones read: polled, late, rounded; and simulated readings beside measured ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/csv.hpp"
#include "power/piecewise.hpp"
#include "power/power_run.hpp"

namespace tw {

struct Meter {
  double interval_s = 2;       // between polls
  double lag_s = 0;            // a reading at t shows t - lag
  double time_constant_s = 0;  // first-order settling on top; 0 = none
  double rounding_w = 1;       // 0 = none
};
// The reference cluster's meters: 2.0 s polls; DC late by 0.7 s, AC by 1.3 s (smc_v4.0/README.md, data quality).
inline constexpr Meter dc_meter{2, 0.7, 0, 1};
inline constexpr Meter ac_meter{2, 1.3, 0.7, 1};

struct Readings {
  std::vector<double> time_s, watts;
};

// Polls at from, from + interval, ... up to `to` inclusive.
Readings sample(const Meter& meter, const PiecewiseWatts& power, double from_s, double to_s);
// The same for any function of time; a time constant is not applied.
Readings sample(const Meter& meter, const std::function<double(double)>& power_w, double from_s, double to_s);

// Mean and quantiles over the nodes of a job, as the meter reads them.
struct NodeSeries {
  std::vector<double> time_s, mean_w, p5_w, p50_w, p95_w;
};
NodeSeries node_series(const PowerRun& run, const Meter& meter, double from_s, double to_s);

// Linear interpolation between order statistics (as numpy's default). `values` is sorted.
double quantile(const std::vector<double>& sorted, double q);

// A measured trace: mean over nodes that have a reading.
struct MeasuredTrace {
  std::vector<double> time_s, mean_w, p5_w, p95_w;
  static MeasuredTrace load(const std::string& csv_path);  // columns time_s, node_*
};

// Events of a run that measured and simulated logs share: run_start, then begin and end of every evaluation, run_stop.
std::vector<double> logged_events(const std::string& events_csv_path);
std::vector<double> timeline_events(const Timeline& timeline);

// Pearson correlation of measured readings inside the run with simulated ones at the same place between events: time is
// stretched piecewise linearly so that each logged event falls on its simulated counterpart. Throws SimulationError
// when the two have different numbers of events.
double aligned_correlation(const MeasuredTrace& trace, const std::vector<double>& measured_events,
                           const std::vector<double>& simulated_events,
                           const std::function<double(double)>& simulated_w, const Meter& meter);

double correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tw
