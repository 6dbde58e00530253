#include "study/each_run.hpp"

#include "network/process.hpp"
#include "study/result.hpp"

namespace tw {
namespace {

struct OneRun {
  size_t scenario = 0;
  int run = 0;
};

// A scenario of this run alone.
LoadedScenario only(const LoadedScenario& loaded, int run) {
  LoadedScenario one = loaded;
  std::vector<double>& samples = one.scenario.run.samples_by_run;
  if (!samples.empty()) samples = {samples[static_cast<size_t>(run) % samples.size()]};
  return one;
}

}  // namespace

int count_runs(const Scenario& scenario, const SimulationOptions& options) {
  return options.runs > 0 ? options.runs : planned_runs(scenario.run);
}

std::vector<std::vector<Outcome>> simulate_further_runs(const std::vector<LoadedScenario>& scenarios,
                                                        const SimulationOptions& options, int jobs, double deadline_s,
                                                        const std::function<void(size_t, size_t)>& progress) {
  std::vector<OneRun> wanted;
  for (size_t i = 0; i < scenarios.size(); ++i)
    for (int run = 1; run < count_runs(scenarios[i].scenario, options); ++run) wanted.push_back({i, run});
  const auto answers = in_children(wanted.size(),
                                   [&](size_t k) {
                                     const auto& [scenario, run] = wanted[k];
                                     SimulationOptions alone = options;
                                     alone.seed += static_cast<uint64_t>(run);
                                     alone.runs = 1;
                                     return to_bytes(simulate(only(scenarios[scenario], run), alone));
                                   },
                                   {jobs, deadline_s, {}, progress});
  std::vector<std::vector<Outcome>> outcomes(scenarios.size());
  for (size_t k = 0; k < answers.size(); ++k) outcomes[wanted[k].scenario].push_back(outcome_of(answers[k]));
  return outcomes;
}

}  // namespace tw
