// Simulates a scenario from end to end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "network/process.hpp"
#include "run/run_model.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

struct SimulationOptions {
  uint64_t seed = 1;
  int runs = 0;     // seeded repetitions; distributions are taken over them; 0: as many as the scenario asks for
  int level = 1;    // 1: one representative a class; 2: every node; 3: message rounds
  int workers = 1;  // processes that share the runs; results do not depend on them
};

// The parts of a scenario that step/ and run/ need, by reference: the scenario has to outlive them.
RunInputs run_inputs(const Scenario& scenario);

// One scenario in this process. Throws DoesNotFit, SimulationError.
Result simulate(const LoadedScenario& scenario, const SimulationOptions& options);

// Each in a forked child (one SimGrid engine a process), at most `jobs` at once; results in argument order, whatever
// order they end in. A child that throws, aborts or passes the deadline gives a Result with `error` set and the exit
// code it stands for. `progress(done, all)` is called in the parent.
struct Outcome {
  Result result;
  int exit_code = 0;
};
Outcome outcome_of(const ChildResult& answer);  // of a child that gave to_bytes() of a result
std::vector<Outcome> simulate_all(const std::vector<LoadedScenario>& scenarios, const SimulationOptions& options,
                                  int jobs, double deadline_s,
                                  const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
