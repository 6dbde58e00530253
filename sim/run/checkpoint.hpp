// Checkpoints: how large they are, how long they take over the storage network, and how often a run writes them.
#pragma once

#include <string>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "step/inputs.hpp"

namespace tw {

struct CheckpointPlan {
  Time interval;                                          // from one to the next; 0: by steps
  double every_steps = 0;                                 // 0: by time
  bool asynchronous = false;                              // copied to host memory, then written beside training
  Bytes size;                                             // 0: from the memory model
  int keep = 2;                                           // on storage at a time
  Bandwidth snapshot_bandwidth = bytes_per_second(10e9);  // of one accelerator to host memory
  static void describe(Description<CheckpointPlan>& d);
};

// One checkpoint, spread evenly over the nodes that train.
struct CheckpointCost {
  double bytes = 0;
  double write_s = 0, read_s = 0;  // over the storage network
  double snapshot_s = 0;           // to host memory
  std::string bottleneck;          // of the write: "storage", "storage adapters of the nodes"
};

// Weights (BF16) and optimizer states of all trained parameters, in bytes: 14 a parameter with FP32 master weights and
// two moments (105 GiB, 920 GiB, 5.2 TiB for Llama 3.1 8B, 70B, 405B, as NVIDIA's DGX Cloud benchmarks state). With
// LoRA only the adapters are saved. 0 for a profiled workload.
double checkpoint_bytes(const StepInputs& in);

CheckpointCost checkpoint_cost(const StepInputs& in, const CheckpointPlan& plan);

// Throws DoesNotFit when what is kept is more than the storage holds.
void check_capacity(const StepInputs& in, const CheckpointPlan& plan, const std::string& scenario);

}  // namespace tw
