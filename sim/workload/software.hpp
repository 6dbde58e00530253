// Software profiles: one a release, shared by all scenarios that run it (models/software/*.json).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "hardware/collective_library.hpp"

namespace tw {

struct Accelerator;

// How a release makes the loss of its logits: eager kernels with FP32 copies; FP32 in the place of the logits; or one
// kernel that leaves the gradients in the place of BF16 logits.
enum class Loss { eager, fp32, in_place };

// Libraries of kernels for gated delta rules.
enum class DeltaRule { fla, flash_qla };

// A part of a layer that a CUDA graph may hold.
enum class GraphPart { attention, mamba, router, feed };

// How tokens come to their experts: a copy for every expert chosen, or one for every node (inside an NVLink domain:
// every rank) that holds some of them, copied on there (DeepEP, HybridEP).
enum class Dispatcher { all_to_all, once_a_node };

// Systems that a release's settings were made for: whose NVLink ends at the node, or joins the nodes of a rack.
enum class RecipesOf { any, nodes, racks };

struct Software {
  std::string name;
  RecipesOf recipes_of = RecipesOf::any;
  // Issue of work by the host.
  struct Host {
    Time per_operation = seconds(10e-6);   // host time to issue one kernel
    Time per_kernel;                       // and each of the kernels that one module issues in a row; 0: the same
    Time per_collective = seconds(30e-6);  // and one collective
    Time per_part;                         // a part of a layer that is issued for itself, beyond its kernels
    Time per_all_reduce;                   // a tensor-parallel all-reduce of its own form; 0: as per_collective
    Time shard_forward, shard_backward;    // hooks of a sharded layer: gather, scatter, freeing
    Time per_bucket;                       // hooks of a bucket of gradients
    Time traced_gap;                       // after every kernel, while a tracer records it
    double backward = 0.5;                 // cost of issuing a backward kernel (autograd, C++) over a forward one
    bool graphs_training = false;          // CUDA graphs hide the host's issue time in training steps
    bool graphs_evaluation = false;
    std::vector<GraphPart> graph_parts;  // parts of a layer in graphs of their own, where the whole layer is in none
    static void describe(Description<Host>& d);
  } host;
  // How the release issues its exchanges, and what they cost the kernels beside them.
  struct Streams {
    Dispatcher dispatcher = Dispatcher::all_to_all;
    bool dispatch_stops_host = false;  // the host waits for the count of tokens that go to each expert
    bool dispatch_beside = false;  // all-to-alls of one micro-batch run beside kernels of another one's other direction
    bool scatter_beside_weights = false;    // the scatter of an input's gradient runs beside the weights' gradients
    bool gradients_beside_backward = true;  // buckets leave while backward runs; else after it
    // A sharded optimizer gives whole tensors to ranks: gradients are all-reduced and weights broadcast by their
    // owners, a message for each owner; else every tensor is cut, reduce-scattered and all-gathered.
    bool tensors_have_owners = false;
    bool gather_beside_forward = false;  // a sharded optimizer's weights arrive beside the next forward
    Bytes bucket = bytes(25e6);          // of gradients, or so many for each data-parallel rank where that is more
    Bytes bucket_per_rank;
    // Shortest round of a ring of context-parallel ranks. 50 us: a send and a receive in one batch, whatever their size
    // below 8 MiB (reference/gpu_lab_4/send_recv.csv).
    Time cp_round = seconds(50e-6);
    bool paired_hand_over = false;         // sends and receives of a stage are one queue, in the schedule's order
    double kernel_beside_exchange = 1.15;  // time of kernels while an exchange runs beside them, over that alone
    double exchange_beside_kernel = 1.45;  // the same of an exchange inside an NVLink domain
    bool fp8_gather = false;               // tensor-parallel gathers before FP8 layers carry FP8
    bool amax_every_micro_batch = false;   // delayed FP8 scaling meets the data-parallel ranks every micro-batch
    bool tp_pieces = false;                // products and the tensor-parallel exchanges beside them are cut
    double tp_scatter_slowdown = 1;        // of products in pieces before a scatter
    Time tp_piece_gap;                     // that each piece of a product takes beyond its kernel
    bool amax_waits = false;               // and later kernels wait for that exchange, which ends every visit
    bool sharp = false;                    // collectives may be reduced in the switches
    bool nvls = false;                     // and over NVLink multicast
    static void describe(Description<Streams>& d);
  } streams;
  // What its kernels are and how fast they go.
  struct Kernels {
    bool fused_experts = false;  // casts, activation, biases of experts are part of their products; else kernels
    bool recompute_stops_early = false;  // recomputation ends with the last tensor that backward wants
    bool fp8_attention = false;
    bool transposes_frozen = false;      // frozen FP8 weights, for every gradient of an input
    bool fp8_context_attention = false;  // also where context-parallel ranks cut the sequence
    double fp8_attention_speedup = 1.4;
    double attention_speed = 1;       // of the release's attention kernels over fused flash attention as measured
    double attention_watts = 1;       // their dynamic power over that of those
    bool balanced_context = true;     // ranks hold early and late parts of a causal sequence, and work alike
    bool fused_attention = true;      // else products, softmax and dropout of scores that go through memory
    bool fused_latent_rotary = true;  // positions of latent attention and what joins its heads are one kernel
    bool gradient_accumulation_fusion = false;  // products add to a weight's gradient, in the precision it is kept in
    double fp8_backward_slowdown = 1;           // FP8 gradients' products accumulate in split (full) precision
    double optimizer_bytes_per_parameter = 30;  // gradient, FP32 master and two moments, weight: read and written
    double optimizer_efficiency = 0;  // of the optimizer's kernel, against the copy plateau; 0: memory_efficiency
    bool current_scaling = false;     // an FP8 tensor's scale is its own, whose largest element is sought first
    double cast_traffic = 0;          // bytes moved by FP8 casts per byte of BF16 operand; 0 = fused away
    double cast_transpose = 0.35;     // and more where the operand is wanted transposed for a weight gradient
    bool bias_sums = false;           // gradients of biases that activation and residual add are sums of their own
    double memory_efficiency = 0.85;  // of fused memory-bound kernels, against the copy plateau
    double traffic_fused = 0.8;       // share of the counted traffic that is left after fusion and caching
    bool eager_elementwise = false;   // norms, activations, additions run as kernels of their own, nothing fused
    bool composite_norms = false;     // eager norms are chains of FP32 kernels
    // Rates of PyTorch's scatter-add of BF16 rows (index_add, atomics) and of its scaling of rows by their gates, on a
    // chip of rated_peak (dense BF16), others in proportion; 0: as fast as the memory.
    Bandwidth scatter_add, scale_rows;
    FlopRate rated_peak;
    // The scan of a Mamba-2 mixer takes what attention takes over so many keys for each token that a token meets: its
    // kernels, many small products over chunks, take what FlashAttention 2 takes over about 2,700 tokens before each,
    // with 64 states in chunks of 256 (Dao and Gu 2024, arXiv 2405.21060, figure 10: equal at 2 to 3 thousand, six
    // times faster at 16 thousand), and FlashAttention 2 takes 1 / 0.565 of the kernel that attention is measured with
    // (reference/gpu_lab_4/attention_long.csv). A token meets half its chunk, and its states on the way in and out.
    double scan_keys = 2700 / 2.0 / 0.565 / (256 / 2 + 2 * 64);
    DeltaRule delta_rule = DeltaRule::fla;
    bool fused_delta = false;           // what stands around a delta rule is fused, queries are not copied and repeated
    double norm_backward_speed = 0.64;  // eager: bandwidth of a norm's backward over that of its forward
    double gradient_copy_passes = 0;    // bucket copies and scaling around an all-reduce of gradients
    double gather_copy_passes = 0;      // copies out of gather buffers and into reduce-scatter buffers
    static void describe(Description<Kernels>& d);
  } kernels;
  // What stands in an accelerator's memory.
  struct Memory {
    double gradient_bytes_per_parameter = 4;
    double optimizer_state_bytes_per_parameter = 12;  // FP32 master weight and two moments
    double frozen_fp8_bytes_per_parameter = 1;
    Bytes workspace = bytes(2e9);       // context, library workspaces
    Bytes communicator;                 // of each kind of group that exchanges
    bool gathers_again = true;          // tensor-parallel gathers of kept inputs are repeated for weight gradients
    bool stores_fp8 = true;             // inputs of FP8 products are kept in FP8; else in BF16
    bool fp8_activation_input = false;  // with FP8: inputs of activation functions are kept in FP8
    Loss loss = Loss::fp32;
    bool persistent_gradients = true;  // gradient buffers live through the whole step
    double bucket_copies = 0;          // copies of the gradients that all-reduce buckets hold
    bool gradient_views = false;       // gradients are views of those buckets, which live through the whole step
    Bytes products_workspace;          // of the products' library, in the framework's allocator
    static void describe(Description<Memory>& d);
  } memory;
  // Fixed times of a run's phases.
  struct Phases {
    Time step_fixed;             // optimizer bookkeeping, logging, data hand-over of each step
    Time evaluation_fixed;       // of one evaluation call
    Time evaluation_per_batch;   // of one evaluated batch
    Time first_step_extra;       // first step inside the clock: warm-up of kernels and communicators
    Time wait_after_first_step;  // then the GPUs wait for their data
    Time loader_start;           // data loaders start with the run and are ready this long after run_start
    Time loader_start_sigma;     // standard deviation from process to process; the slowest of all counts
    Time wait_before_first_evaluation;
    Time first_evaluation_extra;
    Time init;          // outside the clock
    Time init_warm_up;  // the last part of it that already runs training kernels
    Time release;       // after the run, until the job lets go of its accelerators
    static void describe(Description<Phases>& d);
  } phases;
  std::optional<CollectiveLibrary> collectives;  // that it ships; see library_of()
  std::string source;
  // The JSON keys of all blocks stand beside one another in one object.
  static void describe(Description<Software>& d);
};

// The collective library of a release on an accelerator: the release's, where it is of the family that drives the
// accelerator; else the accelerator's; else default_library(). The reference lives as long as the two.
const CollectiveLibrary& library_of(const Software& software, const Accelerator& accelerator);

}  // namespace tw
