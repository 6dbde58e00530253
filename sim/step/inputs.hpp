// What a step needs to know, by reference: the parts of a scenario below run/.
#pragma once

#include "topology/cluster.hpp"
#include "workload/architecture.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

struct StepInputs {
  const Architecture* network = nullptr;  // either a transformer ...
  const Training* training = nullptr;
  const ProfiledWorkload* workload = nullptr;  // ... or a profiled workload
  const Cluster* cluster = nullptr;
  const Software* software = nullptr;
  const Plan* plan = nullptr;
};

}  // namespace tw
