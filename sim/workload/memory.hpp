// Memory of one accelerator, by part: what has to fit before anything is simulated.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workload/architecture.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

struct StageMemory {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0;  // bytes
  double buckets = 0;  // of the gradients: copies that travel
  double total() const { return weights + gradients + optimizer + activations + workspace; }
  std::map<std::string, double> parts() const;
};

// Per pipeline stage. `in_flight` is the greatest number of chunk visits whose activations a stage keeps (see
// step/schedule.hpp); `layers` counts the layers of each chunk, in the order data visits them.
std::vector<StageMemory> memory_of_stages(const Architecture& network, const Training& training, const Plan& plan,
                                          const Software& software, const std::vector<int>& layers,
                                          const std::vector<int>& in_flight);

// Whether whole weights are freed after each pass, and gradients reduced in each: ZeRO-3 in a pipeline would gather and
// reduce for every micro-batch, and keeps both whole through the step instead (PyTorch FSDP2, torchtitan).
bool reshards(const Plan& plan);

// Activation bytes that one layer keeps for one micro-batch on one rank. Eager kernels also keep what fusion would not
// write: the activation before the gate's product, keys and values repeated for every query head, experts' outputs
// before their gates. Without a kind the network's first layer.
double layer_activation_bytes(const Architecture& network, const LayerKind& kind, const Training& training,
                              const Plan& plan, bool eager = false);
double layer_activation_bytes(const Architecture& network, const Training& training, const Plan& plan,
                              bool eager = false);

}  // namespace tw
