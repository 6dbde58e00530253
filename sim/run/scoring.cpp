#include "run/scoring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/sum.hpp"

namespace tw {

double olympic_mean(std::vector<double> values, int drop) {
  const auto cut = static_cast<size_t>(std::max(0, drop));
  if (values.size() <= 2 * cut)
    throw InputError({{"runs", "", fmt::format("{} runs are too few", values.size()),
                       fmt::format("the mean drops {} at each end, so at least {} are needed", cut, 2 * cut + 1)}});
  std::sort(values.begin(), values.end());
  Sum sum;
  for (size_t i = cut; i < values.size() - cut; ++i) sum.add(values[i]);
  return sum.value() / static_cast<double>(values.size() - 2 * cut);
}

double rcp_factor(double reference_samples, double submitted_samples) {
  return submitted_samples > 0 ? std::max(1.0, reference_samples / submitted_samples) : 1;
}

OfficialScore official_score(const std::vector<ScoredRun>& runs, int drop, double factor) {
  std::vector<double> times;
  for (const ScoredRun& run : runs) times.push_back(run.run_s);
  OfficialScore score;
  score.time_s = olympic_mean(times, drop) * factor;
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  const auto cut = static_cast<std::ptrdiff_t>(std::max(0, drop));
  score.in_score.assign(order.begin() + cut, order.end() - cut);
  Sum energy;
  for (const size_t i : score.in_score) {
    if (!runs[i].node_energy_j) return score;
    energy.add(*runs[i].node_energy_j + runs[i].network_w * runs[i].run_s);
  }
  score.energy_j = energy.value() / static_cast<double>(score.in_score.size()) * factor;
  return score;
}

}  // namespace tw
