// How a job's power moves, as grid operators ask: percentiles, ramps, swings.
#pragma once

#include <optional>
#include <vector>

#include "power/piecewise.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// Change of the mean power of one window against the window before it, at its steepest.
struct Ramp {
  double window_s = 0;
  double up_w_per_s = 0, up_at_s = 0;      // >= 0
  double down_w_per_s = 0, down_at_s = 0;  // >= 0, a fall
  static void describe(Outputs<Ramp>& d);
};

struct PowerSwings {
  double mean_w = 0, sd_w = 0, least_w = 0, peak_w = 0;
  double p5_w = 0, p50_w = 0, p95_w = 0, p99_w = 0;  // over time
  double largest_step_w = 0, largest_step_at_s = 0;  // jump between neighbouring phases, signed
  std::optional<double> step_swing_w;                // highest less lowest inside one training step; see step_power()
  std::optional<double> start_rise_w;  // all nodes from a wait to work, highest 10 ms; see limit_in_time()
  std::vector<Ramp> ramps;             // one a window
  static void describe(Outputs<PowerSwings>& d);
};

// Exact for piecewise constant power: quantiles weigh each level by its time, and window means are extreme where a
// window's edge meets a change. Windows longer than half the span are left out.
PowerSwings power_swings(const PiecewiseWatts& power, double from_s, double to_s, const std::vector<double>& windows_s);

}  // namespace tw
