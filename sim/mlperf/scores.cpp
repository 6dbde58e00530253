#include "mlperf/scores.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/sum.hpp"
#include "run/benchmark.hpp"
#include "run/scoring.hpp"

namespace tw {

std::optional<double> MeasuredRun::network_j() const {
  if (!network_w || !log.run_s) return std::nullopt;
  return *network_w * *log.run_s;
}

std::optional<double> MeasuredRun::total_run_j() const {
  return nodes_run_j ? std::optional(*nodes_run_j + network_j().value_or(0)) : std::nullopt;
}

std::optional<double> MeasuredRun::total_mlperf_j() const {
  return nodes_mlperf_j ? std::optional(*nodes_mlperf_j + network_j().value_or(0)) : std::nullopt;
}

ImportedScore score_runs(const std::string& benchmark, std::vector<MeasuredRun>& runs, double factor) {
  ImportedScore score;
  const Benchmark* known = find_benchmark(benchmark);
  score.required_runs = known != nullptr ? known->required_runs : 0;
  score.drop = known != nullptr ? known->dropped_each_side : 1;
  score.factor = factor;
  std::vector<ScoredRun> scored;
  for (MeasuredRun& run : runs) {
    run.in_score = false;
    if (run.log.succeeded()) {
      scored.push_back({*run.log.run_s, run.nodes_mlperf_j, run.network_w.value_or(0)});
    } else {
      ++score.failed;
      scored.push_back({std::numeric_limits<double>::infinity(), std::nullopt, 0});
    }
  }
  if (score.failed > score.drop) {
    score.none_because = fmt::format("{} runs did not succeed, {} may", score.failed, score.drop);
    return score;
  }
  if (runs.size() <= 2 * static_cast<size_t>(score.drop)) {
    score.none_because =
        fmt::format("{} run{}, {} needed to drop {} at each end", runs.size(),
                    runs.size() == 1 ? " is too few" : "s are too few", 2 * score.drop + 1, score.drop);
    return score;
  }
  const OfficialScore official = official_score(scored, score.drop, factor);
  score.time_s = official.time_s;
  score.energy_mlperf_j = official.energy_j;
  Sum window_j;
  bool complete = true;
  for (const size_t i : official.in_score) {
    runs[i].in_score = true;
    const auto j = runs[i].total_run_j();
    complete = complete && j.has_value();
    window_j.add(j.value_or(0));
  }
  if (complete) score.energy_run_j = window_j.value() / static_cast<double>(official.in_score.size());
  if (score.required_runs > 0 && static_cast<int>(runs.size()) < score.required_runs)
    score.remark = fmt::format("{} runs, the rules ask for {}", runs.size(), score.required_runs);
  return score;
}

}  // namespace tw
