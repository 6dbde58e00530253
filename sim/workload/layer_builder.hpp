// What the operations of all kinds of layers are built with.
#pragma once

#include <algorithm>
#include <vector>

#include "workload/operations.hpp"
#include "workload/pattern.hpp"

namespace tw {

constexpr double kBf16 = 2;  // bytes
constexpr double kFp32 = 4;

// Sizes of one layer on one rank, in elements.
struct Sizes {
  double tokens;                          // of a micro-batch on this rank's context slice
  double shard;                           // tokens where norms and residuals are sharded over TP
  double hidden, ffn, query, kv, output;  // but for hidden this rank's part; kv: mean of keys and values
  double tp;
  Precision precision;
};
Sizes sizes_of(const Architecture& network, const Training& training, const Plan& plan);

// Of one token in one layer forward, counted as model FLOPs are.
double layer_flops(const Architecture& network, const LayerKind& kind, double sequence);

// One layer's work, for the functions below.
struct Work {
  const Architecture& n;
  const Training& t;
  const Plan& p;
  const Software& software;
  LayerKind kind;
  Sizes s;
  bool trained() const { return !t.lora; }
  int targets() const { return t.lora ? t.lora->targets : 0; }
  double mlp_up() const { return gated(n.mlp) ? 2 : 1; }
};

// Whether attention runs in FP8: the release can, and no context is cut, or it can that, too.
bool fp8_attention(const Work& w);
// Channels of keys, without their positions, and values of latent attention on this rank.
double latent_up_channels(const Work& w);
// Whether the rows of experts are copied to where they are multiples of what a scaled product wants, and what comes out
// back.
bool pads_rows(const Work& w);

class Builder;
// Attention in separate kernels (unfused_attention.cpp).
void unfused_attention(Builder& b, const AttentionShape& shape, double dropout, bool backward);

// Collects the operations of one direction.
class Builder {
 public:
  Builder(std::vector<Operation>& out, const Training& training, const Software& software, bool backward,
          double dropout = 0)
      : out_(out), trained_(!training.lora), software_(software), dropout_(dropout), backward_(backward) {}

  void gemm(const char* name, const Precision& precision, double m, double n, double k, double groups = 1) {
    if (backward_ && !trained_ && precision == Precision::fp8 && software_.kernels.transposes_frozen)
      transpose(groups * n * k);
    Operation o;
    o.name = name;
    o.kind = OperationKind::gemm;
    o.activity = precision.activity;
    o.precision = precision;
    o.m = m, o.n = n, o.k = k;
    o.flops = 2 * m * n * k;
    push(o);
  }
  // One kernel for the same product of each of `groups` experts; m rows each.
  void grouped(const char* name, const Precision& precision, double groups, double m, double n, double k) {
    gemm(name, precision, m, n, k, groups);
    Operation& o = out_.back();
    o.groups = groups;
    o.flops *= groups;
  }
  // The last product gives the gradient of a weight.
  void of_weights() { out_.back().weight_gradient = true; }
  // A forward kernel may stand in the backward pass (recomputation), never the other way round.
  void attention(const char* name, const AttentionShape& shape, bool fp8) {
    const bool backward = backward_;
    if (!software_.kernels.fused_attention) return unfused_attention(*this, shape, dropout_, backward);
    Operation o;
    o.name = name;
    o.kind = OperationKind::attention;
    o.activity = backward ? Activity::attention_backward : Activity::attention_forward;
    o.attention = shape;
    o.precision = fp8 ? Precision::fp8 : Precision::bf16;
    o.flops = attention_flops(shape) * (backward ? attention_backward_work : 1);
    o.launches = backward ? 3 : 1;
    push(o);
  }
  void memory(const char* name, double bytes, int launches = 1) {
    if (bytes <= 0) return;
    Operation o;
    o.name = name;
    o.bytes = bytes * software_.kernels.traffic_fused;
    o.launches = launches;
    push(o);
  }
  // Kernels that one module issues in a row, nothing fused: all their traffic counts.
  void bare(const char* name, double bytes, int kernels) {
    Operation o;
    o.name = name;
    o.bytes = bytes;
    o.launches = kernels;
    o.bare = true;
    push(o);
  }
  // Kernels bound by their instructions: `h100_s` on an H100; `kernels` is what a profile's efficiencies call them.
  void instructions(const char* name, const char* kernels, double h100_s, double bytes, double flops, int launches) {
    bare(name, bytes, launches);
    out_.back().kernels = kernels, out_.back().on_h100_s = h100_s, out_.back().flops = flops;
  }
  // The last operation reads and writes parts of rows, at the rate of norms.
  void of_halves() { out_.back().norm = true; }
  // The last memory operation is bound by its instructions for this share of its time on an H100 (multiprocessors.hpp).
  void of_instructions(double share) {
    if (!out_.empty() && out_.back().kind == OperationKind::memory) out_.back().sm_share = share;
  }
  // The last memory operation goes at a rate of its own (Operation::rate).
  void at_rate(Bandwidth rate) { out_.back().rate = rate.value(); }
  // A norm. Eager kernels reach the measured bandwidth of norms only, backward less (reference/gpu_lab/memory_ops.csv).
  void norm(const char* name, double bytes, int launches = 1) {
    if (eager() && software_.kernels.composite_norms) {
      // Bytes an element at the rate of copies, for the 4 and 6 of one kernel (reference/gpu_lab_10/eager_kernels.csv).
      return backward_ ? bare(name, bytes / 6 * 118, 17) : bare(name, bytes / 4 * 57, 8);
    }
    memory(name, bytes, launches);
    if (!eager()) return of_instructions(backward_ ? kNormBackward : kNorm);
    out_.back().norm = true;
    if (backward_) out_.back().bytes /= software_.kernels.norm_backward_speed;
  }
  // A norm's gradient and its sum with that of the residual branch: one kernel when fused.
  void norm_gradient(const char* name, double bf16_bytes) {
    if (!software_.kernels.eager_elementwise) return memory(name, 4.5 * bf16_bytes, 2), of_instructions(kNormBackward);
    norm(name, 3 * bf16_bytes, 2);
    memory("residual gradient", 3 * bf16_bytes);
  }
  // Gradients of the biases of two linear layers: each sums the gradient of its output over the tokens, in a kernel of
  // its own where nothing is fused. `apart`: bytes of those that other kernels than the product add (Megatron-Core,
  // fusions/fused_bias_gelu.py and fused_bias_dropout.py, whose backward leaves the sums to autograd).
  void bias_gradients(const char* name, double bytes, double apart, int sums) {
    if (!trained_) return;
    if (eager())
      memory(name, bytes, 2);
    else if (software_.kernels.bias_sums && sums > 0)
      bare(name, apart, sums);
  }
  // What follows belongs to this part of the layer.
  void part(GraphPart p) { part_ = p; }
  // The host waits for the last operation.
  void stop_host() { out_.back().stops_host = software_.streams.dispatch_stops_host && !backward_; }
  void wait_for_it() { out_.back().stops_host = true; }
  bool eager() const { return software_.kernels.eager_elementwise; }
  // Casting a BF16 operand to FP8 and collecting its amax.
  void cast(const char* name, const Precision& precision, double elements) {
    cast(name, precision, elements, elements);
  }
  // What is gathered in FP8 was cast before, by the rank that had it, and is transposed afterwards.
  void cast(const char* name, const Precision& precision, double elements, double transposed) {
    if (!precision.scaled) return;
    // With current scaling FP8 seeks its largest element, too.
    const bool seeks = precision.seeks_largest || (precision == Precision::fp8 && software_.kernels.current_scaling);
    const double sought = seeks ? elements : 0;
    Operation o;
    o.name = name;
    o.launches = precision.seeks_largest ? 2 : 1;  // FP8's are one call of the host
    o.bytes = kBf16 * (sought + elements * software_.kernels.cast_traffic +
                       (trained_ ? transposed * software_.kernels.cast_transpose : 0));
    if (o.bytes > 0) push(o);
  }
  void cast_gathered(const char* name, const Sizes& s, bool sequence_parallel, bool adapted) {
    const bool before = software_.streams.fp8_gather && sequence_parallel && !adapted;
    cast(name, s.precision, s.tokens * s.hidden / (before ? s.tp : 1), s.tokens * s.hidden);
  }
  void exchange(const char* name, Exchange what, double bytes) {
    if (bytes <= 0) return;
    Operation o;
    o.name = name;
    o.kind = OperationKind::exchange;
    o.activity = Activity::collective;
    o.exchange = what;
    o.bytes = bytes;
    push(o);
  }
  // Tensor parallelism: gather before and scatter after a pair of linear layers; without sequence parallelism one
  // all-reduce does both.
  void tp_gather(const char* name, const Sizes& s, bool sequence_parallel, bool before_fp8 = true, double width = 0) {
    const double element = before_fp8 && software_.streams.fp8_gather && s.precision.scaled ? 1 : kBf16;
    if (s.tp > 1 && sequence_parallel)
      exchange(name, Exchange::tp_all_gather, s.tokens * (width > 0 ? width : s.hidden) * element);
  }
  void tp_scatter(const char* name, const Sizes& s, bool sequence_parallel, double width = 0) {
    if (s.tp > 1)
      exchange(name, sequence_parallel ? Exchange::tp_reduce_scatter : Exchange::tp_all_reduce,
               s.tokens * (width > 0 ? width : s.hidden) * kBf16);
  }

 private:
  static constexpr double kNorm = 0.11, kNormBackward = 0.43;  // RMSNorm in one kernel, reference/gpu_lab_14
  // Of an FP8 weight: a byte read and one written.
  void transpose(double elements) {
    Operation o;
    o.name = "transpose frozen weight";
    o.bytes = 2 * elements;
    push(o);
  }
  void push(Operation o) {
    o.backward = backward_;
    o.part = part_;
    out_.push_back(std::move(o));
  }
  std::vector<Operation>& out_;
  bool trained_;
  const Software& software_;
  double dropout_;  // of attention's scores
  GraphPart part_ = GraphPart::feed;
  bool backward_;
};

// Adapters beside a linear layer.
void lora_forward(Builder& b, const char* name, const Training& t, double tokens, double in, double out);
void lora_backward(Builder& b, const char* name, const Training& t, double tokens, double in, double out);

void attention_forward(Builder& b, const Work& w);
void attention_backward(Builder& b, const Work& w);
void attention_core(Builder& b, const Work& w);  // scores and their use, alone
void latents_again(Builder& b, const Work& w);   // queries, keys and values from their latents, with their positions
void mamba_forward(Builder& b, const Work& w);
void mamba_backward(Builder& b, const Work& w);
// Of a mixer whose state walks through the whole sequence: each rank brings all channels of its tokens and takes its
// heads of all tokens, or back (Megatron-Core, mamba_context_parallel.py).
void exchange_heads(Builder& b, const Work& w, double channels);
// A gated delta rule on this rank, in channels.
struct DeltaSizes {
  double keys, values, convolved, projected, heads;
  double repeated;           // read and written when queries and keys are repeated for the heads of values
  double sequences, length;  // of the rule's walk: whole sequences
};
DeltaSizes delta_sizes(const Work& w);
constexpr double delta_chunk = 64;  // tokens that the rule takes together, in every library
void delta_forward(Builder& b, const Work& w);
void delta_backward(Builder& b, const Work& w);
void mlp_forward(Builder& b, const Work& w, double inner, const char* norm_first);
void mlp_backward(Builder& b, const Work& w, double inner);
void experts_forward(Builder& b, const Work& w);
void experts_backward(Builder& b, const Work& w);
// Activation alone: `rows` tokens of `inner` channels each; and that of experts, with its clamps.
void activation_forward(Builder& b, const Work& w, double rows, double inner);
void expert_activation(Builder& b, const Work& w);

// Rows that the experts of a rank see in one micro-batch, and of a layer's tokens those that it sends to experts.
struct Routed {
  double sent = 0;     // token copies that leave this rank
  double rows = 0;     // of all its experts, the busiest rank's
  double experts = 0;  // on this rank
};
Routed routed_tokens(const Architecture& network, const Training& training, const Plan& plan);

}  // namespace tw
