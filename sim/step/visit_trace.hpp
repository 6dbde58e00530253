// What happens inside the visits of a step, for timelines: every kernel and exchange on its stream.
#pragma once

#include <vector>

#include "step/cost.hpp"
#include "step/step_model.hpp"

namespace tw {

struct VisitTask {
  Task task;
  double begin_s = 0, end_s = 0;  // from the beginning of the visit
};

// Tasks of a visit alone, its host far ahead, in time; what takes no time is left out.
struct VisitTrace {
  std::vector<VisitTask> tasks;
  double end_s = 0;  // of the kernels
};

// Forward and backward of a micro-batch over each chunk: [slot * stages + stage], as StepPlan::cost. Of a step's first
// forward and last backward these are all but the updated weights and gradients that travel beside. Empty for profiled
// workloads.
struct VisitTraces {
  std::vector<VisitTrace> forward, backward;
};
VisitTraces visit_traces(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown);

}  // namespace tw
