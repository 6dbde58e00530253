// The seeded runs of scenarios one by one, each with its own timeline; simulate() shows the first of them in full.
#pragma once

#include <functional>
#include <vector>

#include "study/simulate.hpp"

namespace tw {

// How many seeded runs `options` or, where they leave it open, the scenario asks for.
int count_runs(const Scenario& scenario, const SimulationOptions& options);

// For every scenario its runs 1, 2 ... (run 0 is what simulate() returns); run i has seed + i and, where the scenario
// lists samples by run, its own. Forked and reported as simulate_all() does.
std::vector<std::vector<Outcome>> simulate_further_runs(const std::vector<LoadedScenario>& scenarios,
                                                        const SimulationOptions& options, int jobs, double deadline_s,
                                                        const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
