// Scenarios read and simulated for tests.
#pragma once

#include <string>
#include <vector>

#include "network/process.hpp"
#include "study/result.hpp"
#include "study/simulate.hpp"

namespace tw {

inline const std::string k1 = "scenarios/smc-llama2-70b-lora-1n.json", k8 = "scenarios/smc-llama2-70b-lora-8n.json",
                         kLlama = "scenarios/llama3.1-pretraining.json";

inline LoadedScenario loaded(const std::string& file, const std::vector<std::string>& overrides = {}) {
  Faults faults;
  LoadedScenario scenario = load_scenario(file, overrides, faults);
  faults.throw_if_any();
  return scenario;
}

// In a child, since one process may hold one engine. How long it may take is for the runner of the tests to say.
inline Result result(const LoadedScenario& scenario, const SimulationOptions& options = {}) {
  const ChildResult child = in_child([&] { return to_bytes(simulate(scenario, options)); });
  rethrow(child);
  return from_bytes(child.value);
}

inline Result result(const std::string& file, const std::vector<std::string>& overrides = {},
                     const SimulationOptions& options = {}) {
  return result(loaded(file, overrides), options);
}

}  // namespace tw
