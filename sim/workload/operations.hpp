// From architecture, training and plan to the operations one rank does for one micro-batch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hardware/activity.hpp"
#include "hardware/kernels.hpp"
#include "workload/architecture.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

enum class OperationKind { gemm, attention, memory, exchange };

// What ranks exchange inside a layer.
enum class Exchange {
  none,
  tp_all_gather,
  tp_reduce_scatter,
  tp_all_reduce,
  cp_exchange,  // one slice of keys and values, round the ring
  cp_all_gather,
  cp_reduce_scatter,
  cp_all_to_all,  // of heads
  ep_all_to_all,
  expert_tp_gather,  // among the ranks that share an expert
  expert_tp_scatter,
  expert_tp_reduce,
  weight_gather,    // ZeRO-3: weights, before each pass
  gradient_reduce,  // data-parallel gradients, all-reduced or, with sharding, reduce-scattered
  expert_gather,    // the same among the ranks that hold the same experts
  expert_reduce,
  amax_reduce,   // largest elements of FP8 tensors, among all ranks of a stage
  outer_reduce,  // hybrid sharding: gradients of a shard, over the groups
};

// One operation of one rank. Times come later, from the accelerator profile.
struct Operation {
  std::string_view name;  // a literal
  OperationKind kind = OperationKind::memory;
  Activity activity = Activity::memory_bound;
  double m = 0, n = 0, k = 0;    // gemm: m x k by k x n
  double groups = 1;             // gemm: so many of them in one kernel, one an expert
  bool weight_gradient = false;  // gemm: what only the optimizer waits for
  Precision precision = Precision::bf16;
  AttentionShape attention;  // attention
  bool backward = false;     // part of the backward pass
  double bytes = 0;          // memory: read plus written; exchange: full buffer of a rank
  double flops = 0;
  Exchange exchange = Exchange::none;
  int launches = 1;                  // kernels the host issues for it
  GraphPart part = GraphPart::feed;  // of the layer
  bool stops_host = false;           // the host waits for it
  bool bare = false;     // memory: kernels of one module, issued one after the other (Software::Host::per_kernel)
  bool norm = false;     // memory: runs at the bandwidth of norms, not of copies
  double sm_share = 0;   // memory: share of its time on an H100 that follows multiprocessors and clock, not the memory
  double on_h100_s = 0;  // memory: time of kernels that instructions bind, on an H100 (instruction_time_s)
  const char* kernels = "";  // and what a profile's efficiencies call these
  double rate =
      0;  // memory: bytes a second whatever the memory gives (Software::Kernels::rated_peak); 0: its bandwidth
};

struct LayerOperations {
  std::vector<Operation> forward, backward;
};

// Tokens of one micro-batch that a rank of one context-parallel slice works on.
double local_tokens(const Training& training, const Plan& plan);

// One transformer layer, forward and backward (input gradients; weight gradients unless the base is frozen).
// Without a kind the network's first layer.
LayerOperations layer_operations(const Architecture& network, const LayerKind& kind, const Training& training,
                                 const Plan& plan, const Software& software);
LayerOperations layer_operations(const Architecture& network, const Training& training, const Plan& plan,
                                 const Software& software);
// Embedding look-up, and towers before it (first stage); final norm, head, loss and next-token layers (last stage).
LayerOperations table_operations(const Architecture& network, const Training& training, const Plan& plan,
                                 const Software& software);
LayerOperations embedding_operations(const Architecture& network, const Training& training, const Plan& plan,
                                     const Software& software);
LayerOperations head_operations(const Architecture& network, const Training& training, const Plan& plan,
                                const Software& software);

// Model FLOPs of one sample, forward and backward, by the published convention: full (not halved) attention scores, no
// recomputation; no weight gradient where weights are frozen. `causal_half` counts the scores that a causal mask
// leaves, as Megatron's tables do.
double model_flops_per_sample(const Architecture& network, const Training& training, bool causal_half = false);

// A Mamba-2 scan: FLOPs for each channel, state and token, forward (Megatron-LM, mamba_layer_flops).
inline constexpr double mamba_scan_flops = 7;
// Multiply-adds of a gated delta rule for each token, forward: keys against keys, the state's correction and decay, and
// what queries read of it (Megatron-LM, gdn_layer_flops).
inline double delta_rule_work(const DeltaNet& d) {
  return 4.0 * static_cast<double>(d.value_heads * d.key_dim * d.value_dim);
}

}  // namespace tw
