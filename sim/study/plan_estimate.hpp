// The time of a step and the power of a node in closed form: what a search for plans sorts thousands of them by.
#pragma once

#include <vector>

#include "step/inputs.hpp"
#include "topology/fabric.hpp"

namespace tw {

struct StepEstimate {
  double step_s = 0;
  double node_w = 0;  // mean of a training step, on the DC bus
};

// The same kernels, exchanges and board limit as the simulation. In place of its events: the slowest stage works
// through all micro-batches, fill and drain of the pipeline are one visit of each other stage (Narayanan et al. 2021,
// section 2.2), gradients hide behind the last backward as far as the software overlaps them; no noise, and no
// transfers that meet. `nodes` are those the job gets, in order.
StepEstimate estimate_step(const StepInputs& in, const Fabric& fabric, const std::vector<int>& nodes);

}  // namespace tw
