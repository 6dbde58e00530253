// The boards' limiters in time inside the steps of a job: what draws above the limit, and for how long.
#pragma once

#include "power/step_power.hpp"

namespace tw {

// A node from the moment that work begins after a wait.
struct LimitedStep {
  StepPower steady;   // one step once the limiters have settled; its mean is that of the step it was made from
  double peak_w = 0;  // highest mean of 10 ms, from the first moment on
};

// `wanted`: a step without any limit; `held`: the same step as the mean of a second holds it (step_power). Boards
// decide at moments of their own, spread evenly over a period; fans keep the flow of the step's mean heat. Needs a
// limiter in the profile. Steps of more than 4,000 pieces are taken in as many equal parts.
LimitedStep limit_in_time(const NodeType& node, const StepPower& wanted, const StepPower& held, Power gpu_limit);

}  // namespace tw
