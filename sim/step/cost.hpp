// Time of the operations of one micro-batch on one rank: kernels, exposed exchanges, and the host that issues them.
#pragma once

#include <functional>
#include <vector>

#include "hardware/activity.hpp"
#include "step/inputs.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"

namespace tw {

// Seconds of one exchange inside the layer when nothing hides it.
using ExchangeTime = std::function<double(Exchange what, double bytes)>;

// Device and host time of one piece of work, all in seconds.
struct TaskCost {
  ActivityTimes busy;                   // kernels
  double tp_s = 0, cp_s = 0, ep_s = 0;  // exchanges that nothing hides
  double dp_s = 0;                      // weight gathers (ZeRO-3) that nothing hides
  double gap_s = 0;                     // the device waits inside its own work (input, launches), without noise
  double host_s = 0;                    // the host's time to issue it all
  double flops = 0;                     // of its kernels
  double device_s() const { return busy.total() + tp_s + cp_s + ep_s + dp_s + gap_s; }
  TaskCost& operator+=(const TaskCost& o);
  TaskCost scaled(double factor) const;
};

struct PassCost {
  TaskCost forward, backward;
  PassCost& operator+=(const PassCost& o);
};

// Time of the clock-bound kernels over that at full clock, for each direction.
struct Slowdown {
  double forward = 1, backward = 1;
};

enum class Pass { training, evaluation };

// `slowdown` lengthens the kernels that draw more than the board limit allows (gpu_power.hpp); 1 = full clock.
TaskCost cost_of(const std::vector<Operation>& operations, const StepInputs& in, const ExchangeTime& exchange,
                 double slowdown, Pass pass);

// Cost of each chunk for one micro-batch, embedding and head included in the first and last. ZeRO-3 gathers the chunk's
// weights before each pass; plain data parallelism copies gradients into buckets and out again.
std::vector<PassCost> chunk_costs(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown,
                                  Pass pass);

// Adam and gradient scaling after the last micro-batch, on the rank with most parameters: bytes per trained parameter
// moved at the copy plateau.
TaskCost optimizer_cost(const StepInputs& in);

// The groups of the step's network under its plan (not for profiled workloads).
std::vector<ParameterGroup> groups_of(const StepInputs& in);

// Gradient bytes of one model chunk that ranks exchange: among all data and context parallel ranks, and among the
// holders of the same experts.
SharedSum exchanged_gradients(const StepInputs& in, const std::vector<ParameterGroup>& groups, int chunk);

}  // namespace tw
