// Memory through one training step, by part: what the tensors of each visit do to it, in the order of the schedule.
#pragma once

#include <vector>

#include "step/step_model.hpp"
#include "workload/memory.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// Chunks and visits of every stage of a plan.
std::vector<StageWork> memory_work(const Plan& plan);

// Bytes of a GPU of one stage; straight lines between the moments. The greatest total is the stage's peak
// (StageMemory::total).
struct StepMemory {
  int stage = 0;
  std::vector<double> at_s;
  std::vector<MemoryParts> bytes;  // at each
  double total(size_t i) const;
  size_t peak() const;  // the moment that needs most; there has to be one
  static void describe(Outputs<StepMemory>& d);
};

// `spans` of simulate_step, `step_s` its time. Steps of very many visits are drawn by visits, not by layers.
StepMemory step_memory(const StageCurves& curves, const std::vector<Span>& spans, int stage, double step_s);

}  // namespace tw
