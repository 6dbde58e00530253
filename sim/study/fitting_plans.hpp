// Memory of a scenario's plan, and the nearest plans that fit when it does not.
#pragma once

#include <string>
#include <vector>

#include "study/scenario.hpp"
#include "workload/memory.hpp"

namespace tw {

struct PlanMemory {
  int stage = 0;  // the pipeline stage that needs most
  StageMemory memory;
  double host_bytes = 0;  // for each GPU of the stage that needs most there
};

// Bytes of one GPU of the stage that needs most. The plan has to be complete (dp known) and valid.
PlanMemory plan_memory(const Architecture& network, const Training& training, const Plan& plan,
                       const Software& software);
// The same where memory_work(plan) is known.
PlanMemory plan_memory(const Architecture& network, const Training& training, const Plan& plan,
                       const Software& software, const std::vector<StageWork>& work);

// Plans on the same GPUs and with the same global batch that fit, at most `most`, nearest first: fewest changes of
// tensor and pipeline parallelism, sharding, recomputation and micro-batch size (a doubling or one kind counts 1), then
// those that leave more room. Where none of these does, also of context and expert parallelism, and then with states in
// the host's memory. Each as "--set" arguments with its memory.
std::vector<std::string> nearest_fitting_plans(const Scenario& scenario, size_t most = 3);

}  // namespace tw
