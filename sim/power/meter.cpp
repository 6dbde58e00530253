#include "power/meter.hpp"

#include <algorithm>
#include <cmath>

#include "core/sum.hpp"

namespace tw {
namespace {

double rounded(double watts, double step_w) {
  return step_w > 0 ? std::round(watts / step_w) * step_w : watts;
}

size_t polls(const Meter& meter, double from_s, double to_s) {
  if (!(to_s >= from_s) || !(meter.interval_s > 0)) return 0;
  return static_cast<size_t>(std::floor((to_s - from_s) / meter.interval_s * (1 + 1e-12))) + 1;
}

}  // namespace

Readings sample(const Meter& meter, const PiecewiseWatts& power, double from_s, double to_s) {
  Readings r;
  const size_t count = polls(meter, from_s, to_s);
  r.time_s.reserve(count);
  r.watts.reserve(count);
  for (size_t k = 0; k < count; ++k) {
    const double t = from_s + static_cast<double>(k) * meter.interval_s;
    r.time_s.push_back(t);
    r.watts.push_back(rounded(power.at(t - meter.lag_s), meter.rounding_w));
  }
  return r;
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

NodeSeries node_series(const PowerRun& run, const Meter& meter, double from_s, double to_s) {
  NodeSeries series;
  std::vector<Readings> groups;
  for (const PiecewiseWatts& dc : run.group_dc) groups.push_back(sample(meter, dc, from_s, to_s));
  if (groups.empty()) return series;
  series.time_s = groups.front().time_s;
  std::vector<double> watts(run.nodes.size());
  for (size_t k = 0; k < series.time_s.size(); ++k) {
    Sum sum;
    for (size_t i = 0; i < run.nodes.size(); ++i) {
      watts[i] =
          rounded(run.nodes[i].factor * groups[static_cast<size_t>(run.nodes[i].group)].watts[k], meter.rounding_w);
      sum.add(watts[i]);
    }
    std::sort(watts.begin(), watts.end());
    series.mean_w.push_back(sum.value() / static_cast<double>(watts.size()));
    series.p5_w.push_back(quantile(watts, 0.05));
    series.p50_w.push_back(quantile(watts, 0.5));
    series.p95_w.push_back(quantile(watts, 0.95));
  }
  return series;
}

}  // namespace tw
