// Simulates a scenario: examples/simulate [SCENARIO]
#include <cstdio>

#include "study/library.hpp"

int main(int argc, char** argv) {
  tw::use_installed_package();
  tw::Faults faults;
  const auto scenario = tw::load_scenario(argc > 1 ? argv[1] : "scenarios/smc-llama2-70b-lora-8n.json", {}, faults);
  for (const tw::Fault& fault : faults.list()) std::fprintf(stderr, "%s\n", fault.text().c_str());
  if (!faults.empty()) return 2;
  const tw::Result result = tw::simulate(scenario, {});
  std::printf("%s: %.1f s, %.0f W a node, %.1f MJ\n", result.scenario.c_str(),
              result.run.time_to_train_s.mean.value_or(0), result.power.mean.value_or(0),
              result.energy.total_dc_j.value_or(0) * 1e-6);
}
