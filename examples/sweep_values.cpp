// One value in a loop: the time to train for several speeds of the cables between leaves and spines.
#include <cstdio>

#include "study/library.hpp"

int main() {
  tw::use_installed_package();
  for (const char* speed : {"50 Gbit/s", "100 Gbit/s", "200 Gbit/s", "400 Gbit/s"}) {
    tw::Faults faults;
    const auto scenario = tw::load_scenario("scenarios/smc-llama2-70b-lora-8n.json",
                                            {std::string("/cluster/fabric/uplink_bandwidth=") + speed}, faults);
    faults.throw_if_any();
    // Every point in a process of its own, as the engine has it.
    const auto outcome = tw::simulate_all({scenario}, {}, 1, 600, {}).front();
    if (!outcome.result.error.empty()) return outcome.exit_code;
    std::printf("%-11s %8.2f s\n", speed, outcome.result.run.time_to_train_s.mean.value_or(0));
  }
}
