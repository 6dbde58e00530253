// What N seeds of a hall say together.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "study/hall_study.hpp"

namespace tw {

std::map<std::string, Spread> hall_spreads(const std::vector<hall::HallOutcome>& runs) {
  std::map<std::string, Spread> all;
  const auto put = [&](const char* name, const auto& value) {
    std::vector<double> v;
    for (const hall::HallOutcome& run : runs) v.push_back(value(run));
    std::sort(v.begin(), v.end());
    const auto quantile = [&](double q) {
      const double place = q * static_cast<double>(v.size() - 1);
      const auto low = static_cast<size_t>(place);
      return low + 1 < v.size() ? v[low] + (place - static_cast<double>(low)) * (v[low + 1] - v[low]) : v.back();
    };
    Spread s;
    const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    double square = 0;
    for (const double x : v) square += (x - mean) * (x - mean);
    s.mean = mean, s.p5 = quantile(0.05), s.p50 = quantile(0.5), s.p95 = quantile(0.95);
    if (v.size() > 1) s.sd = std::sqrt(square / static_cast<double>(v.size() - 1));
    all[name] = s;
  };
  using Out = hall::HallOutcome;
  put("end_s", [](const Out& o) { return o.end_s; });
  put("feed_j", [](const Out& o) { return o.feed_j; });
  put("peak_w", [](const Out& o) { return o.peak_w; });
  put("finished", [](const Out& o) { return o.finished; });
  put("utilisation", [](const Out& o) { return o.utilisation; });
  put("goodput", [](const Out& o) { return o.goodput; });
  put("wait_mean_s", [](const Out& o) { return o.wait_mean_s; });
  put("above_limit_s", [](const Out& o) { return o.above_limit_s; });
  put("above_limit_j", [](const Out& o) { return o.above_limit_j; });
  put("kg_co2e", [](const Out& o) { return o.kg_co2e; });
  put("node_failures", [](const Out& o) { return o.node_failures; });
  if (runs.front().cost_energy) put("cost_energy", [](const Out& o) { return o.cost_energy.value_or(0); });
  return all;
}

}  // namespace tw
