#include "power/ramps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/sum.hpp"

namespace tw {

namespace {
constexpr double kRounding = 1e-9;  // of the peak: what differences of long integrals lose
}

PowerSwings power_swings(const PiecewiseWatts& power, double from_s, double to_s,
                         const std::vector<double>& windows_s) {
  PowerSwings s;
  const double length_s = to_s - from_s;
  if (!(length_s > 0)) return s;
  std::vector<double> edges{from_s};
  for (size_t i = 0; i < power.pieces(); ++i)
    for (const double t : {power.piece_begin_s(i), power.piece_end_s(i)})
      if (t > from_s && t < to_s && t > edges.back()) edges.push_back(t);
  edges.push_back(to_s);

  std::vector<std::pair<double, double>> levels;  // watts, seconds
  Sum square;
  s.mean_w = power.integral(from_s, to_s) / length_s;
  for (size_t k = 0; k + 1 < edges.size(); ++k) {
    const double watts = power.at(edges[k]);
    levels.emplace_back(watts, edges[k + 1] - edges[k]);
    square.add((watts - s.mean_w) * (watts - s.mean_w) * (edges[k + 1] - edges[k]));
    if (k > 0) {
      const double step_w = watts - levels[k - 1].first;
      if (std::abs(step_w) > std::abs(s.largest_step_w)) {
        s.largest_step_w = step_w;
        s.largest_step_at_s = edges[k];
      }
    }
  }
  s.sd_w = std::sqrt(square.value() / length_s);
  std::sort(levels.begin(), levels.end());
  s.least_w = levels.front().first;
  s.peak_w = levels.back().first;
  const auto at_share = [&](double q) {
    double left_s = q * length_s;
    for (const auto& [watts, seconds] : levels) {
      if (left_s <= seconds) return watts;
      left_s -= seconds;
    }
    return levels.back().first;
  };
  s.p5_w = at_share(0.05);
  s.p50_w = at_share(0.5);
  s.p95_w = at_share(0.95);
  s.p99_w = at_share(0.99);

  for (const double window_s : windows_s) {
    if (!(window_s > 0) || 2 * window_s > length_s) continue;
    Ramp ramp;
    ramp.window_s = window_s;
    // The difference of two neighbouring window means is piecewise linear in time; its kinks lie where one of the three
    // window edges meets a change.
    for (const double edge : edges)
      for (const double shift : {-window_s, 0.0, window_s}) {
        const double t = edge + shift;
        if (t - window_s < from_s || t + window_s > to_s) continue;
        const double change_w = (power.integral(t, t + window_s) - power.integral(t - window_s, t)) / window_s;
        if (std::abs(change_w) <= kRounding * s.peak_w) continue;
        const double rate = change_w / window_s;
        if (rate > ramp.up_w_per_s) {
          ramp.up_w_per_s = rate;
          ramp.up_at_s = t;
        }
        if (-rate > ramp.down_w_per_s) {
          ramp.down_w_per_s = -rate;
          ramp.down_at_s = t;
        }
      }
    s.ramps.push_back(ramp);
  }
  return s;
}

}  // namespace tw
