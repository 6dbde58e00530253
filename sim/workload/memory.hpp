// Memory of one accelerator: tensors with their lifetimes over one step, by part, at the moment that needs most.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workload/architecture.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

struct StageMemory {
  // Bytes at the step's peak. activations: kept for backward passes; workspace: gradients of activations, recomputed
  // tensors and kernels' workspaces; gathered: whole weights of sharded layers with the buffers of their exchange;
  // context: of the process, its libraries and communicators, beside the framework's allocator.
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, logits = 0, gathered = 0, workspace = 0,
         context = 0;
  double reserved = 0;  // by a caching allocator that keeps the most of each stream
  double allocated() const { return weights + gradients + optimizer + activations + logits + gathered + workspace; }
  double total() const { return allocated() + context; }
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

// Activation bytes that one layer keeps for one micro-batch on one rank. Without a kind the network's first layer.
double layer_activation_bytes(const Architecture& network, const LayerKind& kind, const Training& training,
                              const Plan& plan, bool eager = false);
double layer_activation_bytes(const Architecture& network, const Training& training, const Plan& plan,
                              bool eager = false);

}  // namespace tw
