// Software profiles: one a release, shared by all scenarios that run it (models/software/*.json).
#pragma once

#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

// How a release makes the loss of its logits: eager kernels with FP32 copies; FP32 in the place of the logits; or one
// kernel that leaves the gradients in the place of BF16 logits.
enum class Loss { eager, fp32, in_place };
template <>
struct Choices<Loss> {
  static std::vector<std::pair<std::string, Loss>> table();
};

// A part of a layer that a CUDA graph may hold.
enum class GraphPart { attention, mamba, router, feed };
template <>
struct Choices<GraphPart> {
  static std::vector<std::pair<std::string, GraphPart>> table();
};

// How tokens come to their experts: a copy for every expert chosen, or one for every node (inside an NVLink domain: every
// rank) that holds some of them, copied on there (DeepEP, HybridEP).
enum class Dispatcher { all_to_all, once_a_node };
template <>
struct Choices<Dispatcher> {
  static std::vector<std::pair<std::string, Dispatcher>> table();
};

struct Software {
  std::string name;
  Time host_per_operation = seconds(10e-6);   // host time to issue one kernel
  Time host_per_kernel;                       // and each of the kernels that one module issues in a row; 0: the same
  Time host_per_collective = seconds(30e-6);  // and one collective
  Time host_per_all_reduce;                   // a tensor-parallel all-reduce of its own form; 0: as host_per_collective
  Time host_shard_forward, host_shard_backward;  // hooks of a sharded layer: gather, scatter, freeing
  Time host_per_bucket;                          // hooks of a bucket of gradients
  Time traced_gap;                               // after every kernel, while a tracer records it
  double host_backward = 0.5;                    // cost of issuing a backward kernel (autograd, C++) over a forward one
  bool graphs_training = false;                  // CUDA graphs hide the host's issue time in training steps
  bool graphs_evaluation = false;
  std::vector<GraphPart> graph_parts;  // parts of a layer in graphs of their own, where the whole layer is in none
  Dispatcher dispatcher = Dispatcher::all_to_all;
  bool dispatch_stops_host = false;  // the host waits for the count of tokens that go to each expert
  bool dispatch_beside = false;      // all-to-alls of one micro-batch run beside kernels of another one's other direction
  bool fused_experts = false;  // casts, activation, biases of experts are part of their products; else kernels
  // How the release issues its exchanges.
  bool scatter_beside_weights = false;    // the scatter of an input's gradient runs beside the weights' gradients
  bool gradients_beside_backward = true;  // buckets leave while backward runs; else after it
  // A sharded optimizer gives whole tensors to ranks: gradients are all-reduced and weights broadcast by their owners, a
  // message for each owner; else every tensor is cut, reduce-scattered and all-gathered.
  bool tensors_have_owners = false;
  bool gather_beside_forward = false;     // a sharded optimizer's weights arrive beside the next forward
  Bytes bucket = bytes(25e6);             // of gradients, or so many for each data-parallel rank where that is more
  Bytes bucket_per_rank;
  // Shortest round of a ring of context-parallel ranks. 50 us: a send and a receive in one batch, whatever their size
  // below 8 MiB (reference/gpu_lab_4/send_recv.csv).
  Time cp_round = seconds(50e-6);
  bool paired_hand_over = false;          // sends and receives of a stage are one queue, in the schedule's order
  bool recompute_stops_early = false;     // recomputation ends with the last tensor that backward wants
  double kernel_beside_exchange = 1.15;   // time of kernels while an exchange runs beside them, over that alone
  double exchange_beside_kernel = 1.45;   // the same of an exchange inside an NVLink domain
  bool fp8_gather = false;                // tensor-parallel gathers before FP8 layers carry FP8
  bool fp8_attention = false;
  double fp8_attention_speedup = 1.4;
  double attention_speed = 1;  // of the release's attention kernels over fused flash attention as measured
  bool fused_attention = true;                // else products, softmax and dropout of scores that go through memory
  double fp8_backward_slowdown = 1;           // FP8 gradients' products accumulate in split (full) precision
  double optimizer_bytes_per_parameter = 30;  // gradient, FP32 master and two moments, weight: read and written
  double gradient_bytes_per_parameter = 4;
  double optimizer_state_bytes_per_parameter = 12;  // FP32 master weight and two moments
  double frozen_fp8_bytes_per_parameter = 1;
  Bytes workspace = bytes(2e9);         // context, library workspaces
  Bytes communicator;                   // of each kind of group that exchanges
  bool sharp = false;                   // collectives may be reduced in the switches
  bool nvls = false;                    // and over NVLink multicast
  double cast_traffic = 0;              // bytes moved by FP8 casts per byte of BF16 operand; 0 = fused away
  double cast_transpose = 0.35;         // and more where the operand is wanted transposed for a weight gradient
  bool amax_every_micro_batch = false;  // delayed FP8 scaling meets the data-parallel ranks every micro-batch
  double memory_efficiency = 0.85;      // of fused memory-bound kernels, against the copy plateau
  double traffic_fused = 0.8;           // share of the counted traffic that is left after fusion and caching
  bool eager_elementwise = false;       // norms, activations, additions run as kernels of their own, nothing fused
  double norm_backward_speed = 0.64;    // eager: bandwidth of a norm's backward over that of its forward
  double optimizer_efficiency = 0;      // of the optimizer's kernel, against the copy plateau; 0: memory_efficiency
  double gradient_copy_passes = 0;      // bucket copies and scaling around an all-reduce of gradients
  double gather_copy_passes = 0;        // copies out of gather buffers and into reduce-scatter buffers
  bool gathers_again = true;            // tensor-parallel gathers of kept inputs are repeated for weight gradients
  bool stores_fp8 = true;               // inputs of FP8 products are kept in FP8; else in BF16
  bool fp8_activation_input = false;    // with FP8: inputs of activation functions are kept in FP8
  Loss loss = Loss::fp32;
  bool persistent_gradients = true;     // gradient buffers live through the whole step
  double bucket_copies = 0;             // copies of the gradients that all-reduce buckets hold
  Time step_fixed;                      // optimizer bookkeeping, logging, data hand-over of each step
  Time evaluation_fixed;                // of one evaluation call
  Time evaluation_per_batch;            // of one evaluated batch
  Time first_step_extra;                // first step inside the clock: warm-up of kernels and communicators
  Time wait_after_first_step;           // then the GPUs wait for their data
  Time loader_start;                    // data loaders start with the run and are ready this long after run_start
  Time loader_start_sigma;              // standard deviation from process to process; the slowest of all counts
  Time wait_before_first_evaluation;
  Time first_evaluation_extra;
  Time init;          // outside the clock
  Time init_warm_up;  // the last part of it that already runs training kernels
  Time release;       // after the run, until the job lets go of its accelerators
  std::string source;
  static void describe(Description<Software>& d);
};

}  // namespace tw
