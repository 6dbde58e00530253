// Pipeline schedules: the order in which a stage works through its micro-batches.
#pragma once

#include <vector>

#include "workload/plan.hpp"

namespace tw {

// One visit of a micro-batch to one model chunk of a stage.
struct Visit {
  bool backward = false;
  int chunk = 0;        // 0 .. vp - 1 within the stage
  int micro_batch = 0;  // 0 .. ga - 1
};

// GPipe: all forwards, then all backwards. 1F1B (Narayanan et al. 2019, PipeDream-Flush): pp - 1 - stage warm-up
// forwards, then one forward and one backward in turn. Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM) when
// vp > 1: micro-batches go through the chunks in groups of pp.
std::vector<Visit> visits_of_stage(Schedule schedule, int stage, int pp, int vp, int micro_batches);

// Most forwards of a stage whose backward has not run yet: what activations must be kept for.
int micro_batches_in_flight(Schedule schedule, int stage, int pp, int vp, int micro_batches);

}  // namespace tw
