// One value in a loop: time and energy for several power limits of the GPUs.
#include <cstdio>

#include "study/library.hpp"

int main() {
  tw::use_installed_package();
  for (const char* limit : {"400 W", "500 W", "600 W", "700 W"}) {
    tw::Faults faults;
    const auto scenario = tw::load_scenario("scenarios/smc-llama2-70b-lora-8n.json",
                                            {std::string("/cluster/node/accelerator/board_limit=") + limit}, faults);
    faults.throw_if_any();
    // Every point in a process of its own, as the engine has it.
    const auto outcome = tw::simulate_all({scenario}, {}, 1, 600, {}).front();
    if (!outcome.result.error.empty()) return outcome.exit_code;
    std::printf("%s %8.2f s %8.2f MJ\n", limit, outcome.result.run.time_to_train_s.mean.value_or(0),
                outcome.result.energy.total_dc_j.value_or(0) * 1e-6);
  }
}
