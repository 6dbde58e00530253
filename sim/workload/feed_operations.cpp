// MLPs, and experts: router, permutation, dispatch, grouped products, activation, combine, shared expert.
#include <cmath>

#include "workload/layer_builder.hpp"

namespace tw {
namespace {

// Softmax and top-k, a stable sort of the choices and a count of them are so many small kernels, whatever the size.
constexpr int kChooseKernels = 31;

// Bytes that eager kernels move for one element (reference/gpu_lab_8/expert_biases.csv holds their times). The halves
// of an activation's input are clamped one by one and joined; backward masks each, and joins them. An expert's bias is
// scaled by the gates, which are FP32, and so is all until the experts are joined and rounded; backward makes both
// products again.
constexpr double kClampBytes = 8, kClampBackwardBytes = 15, kBiasBytes = 28, kBiasBackwardBytes = 40;

// Shares of kernels' time that follow the multiprocessors (Builder::of_instructions): H100 against H200, which differ
// in their memory alone (reference/gpu_lab_14). Fused SwiGLU, additions and casts follow the memory.
constexpr double kGelu = 0.41, kGeluBackward = 0.13, kClamp = 0.57, kClampBackward = 0.64, kBias = 0.5,
                 kBiasBackward = 0.44, kRows = 0.15;

double halves(const Work& w) {
  return w.mlp_up();
}

void activation_gradient(Builder& b, const Work& w, double rows, double inner) {
  // Eager SwiGLU: two products, silu's gradient (two reads, one write each), and joining the halves of one tensor.
  const bool four_kernels = gated(w.n.mlp) && b.eager();
  b.memory("MLP activation gradient", kBf16 * rows * inner * (four_kernels ? 13 : 2 * halves(w) + 1),
           four_kernels ? 4 : 1);
  if (w.n.mlp == Mlp::gelu || w.n.mlp == Mlp::geglu) b.of_instructions(kGeluBackward);
}

// Dense products of `inner` channels on this rank, with their exchanges.
void dense_forward(Builder& b, const Work& w, double inner) {
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  b.tp_gather("gather MLP input", s, sp, w.targets() < 3);
  b.gemm("MLP up", s.precision, s.tokens, halves(w) * inner, s.hidden);
  if (w.targets() >= 3) lora_forward(b, "LoRA MLP up", w.t, s.tokens, s.hidden, halves(w) * inner);
  activation_forward(b, w, s.tokens, inner);
  b.cast("cast MLP down input", s.precision, s.tokens * inner);
  b.gemm("MLP down", s.precision, s.tokens, s.hidden, inner);
  if (w.targets() >= 4) lora_forward(b, "LoRA MLP down", w.t, s.tokens, inner, s.hidden);
  b.tp_scatter("scatter MLP", s, sp);
}

void dense_backward(Builder& b, const Work& w, double inner) {
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  const double up = halves(w) * inner;
  b.tp_gather("gather MLP gradient", s, sp, w.targets() < 4);
  b.cast_gathered("cast MLP down gradient", s, sp, w.targets() >= 4);
  b.gemm("MLP down input gradient", s.precision, s.tokens, inner, s.hidden);
  if (w.trained()) b.gemm("MLP down weight gradient", s.precision, s.hidden, inner, s.tokens), b.of_weights();
  if (w.targets() >= 4) lora_backward(b, "LoRA MLP down", w.t, s.tokens, inner, s.hidden);
  activation_gradient(b, w, s.tokens, inner);
  b.cast("cast MLP up gradient", s.precision, s.tokens * up);
  if (w.n.biases)
    b.bias_gradients("MLP biases' gradients", kBf16 * s.tokens * (up + s.hidden),
                     kBf16 * (s.tokens * up + s.shard * s.hidden), 2);
  b.gemm("MLP up input gradient", s.precision, s.tokens, s.hidden, up);
  if (w.trained()) b.gemm("MLP up weight gradient", s.precision, up, s.hidden, s.tokens), b.of_weights();
  if (w.targets() >= 3) lora_backward(b, "LoRA MLP up", w.t, s.tokens, s.hidden, up);
  b.tp_scatter("scatter MLP input gradient", s, sp);
}

struct ExpertSizes {
  Routed routed;
  double each, inner, width;  // rows of one expert; this rank's inner size; channels it works on
};

ExpertSizes expert_sizes(const Work& w) {
  // Rows are no contiguous side of any product of an expert, so that a count of them which is no multiple of 8 elements
  // slows none; that of a rank's only expert, whose product is a plain one, is told by the nearest multiple.
  constexpr double kAlignment = 8;
  const Routed routed = routed_tokens(w.n, w.t, w.p);
  const double each = routed.experts > 1 ? routed.rows / routed.experts
                                         : std::max(1.0, std::round(routed.rows / kAlignment)) * kAlignment;
  return {routed, each, static_cast<double>(w.n.expert_size()) / w.p.expert_tp(),
          static_cast<double>(w.n.expert_width())};
}

bool loose_biases(const Work& w) {
  return w.n.biases && !w.software.kernels.fused_experts;
}

int bias_kernels(const ExpertSizes& e, int all, int each) {
  return all + static_cast<int>(each * e.routed.experts);
}

void expert_activation_gradient(Builder& b, const Work& w, const ExpertSizes& e) {
  if (w.software.kernels.fused_experts) return;
  const double up = halves(w) * e.inner;
  activation_gradient(b, w, e.routed.rows, e.inner);
  if (w.n.clamped) {
    b.bare("clamp gradient", kClampBackwardBytes * e.routed.rows * up, 9);
    b.of_halves(), b.of_instructions(kClampBackward);
  }
  b.cast("cast expert up gradient", w.s.precision, e.routed.rows * up);
}

void pad(Builder& b, const Work& w, const ExpertSizes& e, const char* name) {
  if (pads_rows(w)) b.bare(name, 2 * kBf16 * e.routed.rows * e.width, 1);
}

// To the ranks that hold the chosen experts, and to all ranks that share one.
void dispatch(Builder& b, const Work& w, const ExpertSizes& e, const char* name) {
  if (w.p.ep > 1) b.exchange(name, Exchange::ep_all_to_all, kBf16 * e.routed.sent * e.width * w.t.expert_imbalance);
  if (w.p.expert_tp() > 1 && w.p.sequence_parallel)
    b.exchange("gather expert rows", Exchange::expert_tp_gather, kBf16 * e.routed.rows * e.width);
  if (w.p.ep > 1)
    b.memory("sort rows by expert", kBf16 * e.routed.rows * e.width * 2, b.eager() ? 12 : 2), b.of_instructions(kRows);
}

void combine(Builder& b, const Work& w, const ExpertSizes& e, const char* name) {
  if (w.p.ep > 1) b.memory("sort rows back", kBf16 * e.routed.rows * e.width * 2, 2), b.of_instructions(kRows);
  if (w.p.expert_tp() > 1)
    b.exchange("scatter expert rows", w.p.sequence_parallel ? Exchange::expert_tp_scatter : Exchange::expert_tp_reduce,
               kBf16 * e.routed.rows * e.width);
  if (w.p.ep > 1) b.exchange(name, Exchange::ep_all_to_all, kBf16 * e.routed.sent * e.width * w.t.expert_imbalance);
}

// The experts that every token visits, and the number by which what they give is multiplied.
void shared_forward(Builder& b, const Work& w) {
  if (w.n.shared_ffn == 0) return;
  dense_forward(b, w, static_cast<double>(w.n.shared_ffn) / w.s.tp);
  if (w.n.shared_gate) b.bare("shared experts' gate", kBf16 * w.s.shard * w.s.hidden * 3, 3);
}

void shared_backward(Builder& b, const Work& w) {
  if (w.n.shared_ffn == 0) return;
  if (w.n.shared_gate) b.bare("shared experts' gate's gradient", kBf16 * w.s.shard * w.s.hidden * 7, 6);
  dense_backward(b, w, static_cast<double>(w.n.shared_ffn) / w.s.tp);
}

}  // namespace

bool pads_rows(const Work& w) {
  return w.s.precision.scaled && !w.software.kernels.fused_experts;
}

Routed routed_tokens(const Architecture& n, const Training& t, const Plan& p) {
  const double tokens = local_tokens(t, p);
  Routed r;
  // Without sequence parallelism the ranks of a tensor-parallel group hold the same tokens and share each expert.
  r.sent = n.experts_per_token * (p.sequence_parallel ? tokens / p.tp : tokens);
  r.rows = r.sent * (p.sequence_parallel ? p.expert_tp() : 1) * t.expert_imbalance;
  r.experts = std::max(1.0, static_cast<double>(n.experts) / p.ep);
  return r;
}

void activation_forward(Builder& b, const Work& w, double rows, double inner) {
  // Eager SwiGLU: silu (read, write), then the product (two reads, one write).
  const bool two_kernels = gated(w.n.mlp) && b.eager();
  const char* name = w.n.mlp == Mlp::swiglu  ? "SwiGLU"
                     : w.n.mlp == Mlp::geglu ? "GEGLU"
                     : w.n.mlp == Mlp::gelu  ? "GELU"
                                             : "squared ReLU";
  b.memory(name, kBf16 * rows * inner * (two_kernels ? 5 : halves(w) + 1), two_kernels ? 2 : 1);
  if (w.n.mlp == Mlp::gelu || w.n.mlp == Mlp::geglu) b.of_instructions(kGelu);
}

void expert_activation(Builder& b, const Work& w) {
  if (w.software.kernels.fused_experts) return;
  const ExpertSizes e = expert_sizes(w);
  if (w.n.clamped) {
    // Two halves clamped and joined; an offset comes from the host, which waits until it is there.
    b.bare("clamp activation input", kClampBytes * e.routed.rows * halves(w) * e.inner, 3);
    b.of_halves(), b.of_instructions(kClamp);
    b.wait_for_it();
  }
  activation_forward(b, w, e.routed.rows, e.inner);
  b.cast("cast expert down input", w.s.precision, e.routed.rows * e.inner);
}

void mlp_forward(Builder& b, const Work& w, double inner, const char* norm) {
  const Sizes& s = w.s;
  if (norm != nullptr) b.norm(norm, kBf16 * s.shard * s.hidden * 2);
  b.cast("cast MLP input", s.precision, s.shard * s.hidden);
  dense_forward(b, w, inner);
  b.memory("residual 2", kBf16 * s.shard * s.hidden * (w.n.dropout > 0 ? 3.5 : 3));
}

void mlp_backward(Builder& b, const Work& w, double inner) {
  const Sizes& s = w.s;
  if (w.n.dropout > 0) b.memory("dropout 2 gradient", kBf16 * s.shard * s.hidden * 2.5);
  dense_backward(b, w, inner);
  b.norm_gradient("norm 2 gradient and residual", kBf16 * s.shard * s.hidden);
}

void experts_forward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const ExpertSizes e = expert_sizes(w);
  const double experts = w.n.experts, moved = kBf16 * e.routed.sent * e.width;
  b.part(GraphPart::router);
  b.norm("norm 2", kBf16 * s.shard * s.hidden * 2);
  b.gemm("router", Precision::bf16, s.shard, experts, s.hidden);
  b.memory("choose experts", 4 * kFp32 * s.shard * experts, b.eager() ? kChooseKernels : 4);
  b.stop_host();
  b.part(GraphPart::feed);
  if (w.n.expert_latent > 0) b.gemm("latent in", s.precision, s.shard, e.width, s.hidden);
  b.memory("permutation", 2 * moved, b.eager() ? 1 : 2), b.of_instructions(kRows);
  dispatch(b, w, e, "dispatch");
  pad(b, w, e, "pad expert rows");
  b.cast("cast expert input", s.precision, e.routed.rows * e.width);
  b.grouped("experts up", s.precision, e.routed.experts, e.each, halves(w) * e.inner, e.width);
  if (w.targets() >= 3) lora_forward(b, "LoRA MLP up", w.t, s.tokens, s.hidden, halves(w) * e.inner);
  expert_activation(b, w);
  b.grouped("experts down", s.precision, e.routed.experts, e.each, e.width, e.inner);
  if (loose_biases(w))
    b.bare("experts' biases", kBiasBytes * e.routed.rows * e.width, bias_kernels(e, 2, 2)), b.of_instructions(kBias);
  if (w.targets() >= 4) lora_forward(b, "LoRA MLP down", w.t, s.tokens, e.inner, s.hidden);
  pad(b, w, e, "unpad expert rows");
  combine(b, w, e, "combine");
  if (b.eager()) {
    b.memory("scale by gates", 2 * moved), b.at_rate(w.software.kernels.scale_rows);
    b.memory("unpermutation", 3 * moved, 2), b.at_rate(w.software.kernels.scatter_add);
  } else {
    b.memory("unpermutation", moved + kBf16 * s.shard * e.width, 2), b.of_instructions(kRows);
  }
  if (w.n.expert_latent > 0) b.gemm("latent out", s.precision, s.shard, s.hidden, e.width);
  shared_forward(b, w);
  b.memory("residual 2", kBf16 * s.shard * s.hidden * (w.n.dropout > 0 ? 3.5 : 3));
}

void experts_backward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const ExpertSizes e = expert_sizes(w);
  const double experts = w.n.experts, moved = kBf16 * e.routed.sent * e.width, up = halves(w) * e.inner;
  const auto dense = [&](const char* input, const char* weight, double out, double in) {
    b.gemm(input, s.precision, s.shard, in, out);
    if (w.trained()) b.gemm(weight, s.precision, out, in, s.shard), b.of_weights();
  };
  if (w.n.dropout > 0) b.memory("dropout 2 gradient", kBf16 * s.shard * s.hidden * 2.5);
  shared_backward(b, w);
  if (w.n.expert_latent > 0) dense("latent out input gradient", "latent out weight gradient", s.hidden, e.width);
  b.memory("unpermutation gradient", 2 * moved, b.eager() ? 1 : 3), b.of_instructions(kRows);
  if (b.eager()) b.memory("gates' gradient", 2 * 2 * moved, 3), b.at_rate(w.software.kernels.scale_rows);
  dispatch(b, w, e, "combine gradient");
  if (loose_biases(w))
    b.bare("experts' biases' gradient", kBiasBackwardBytes * e.routed.rows * e.width, bias_kernels(e, 3, 7)),
        b.of_instructions(kBiasBackward);
  pad(b, w, e, "pad expert gradient");
  b.cast("cast expert gradient", s.precision, e.routed.rows * e.width);
  b.grouped("experts down input gradient", s.precision, e.routed.experts, e.each, e.inner, e.width);
  if (w.trained())
    b.grouped("experts down weight gradient", s.precision, e.routed.experts, e.width, e.inner, e.each), b.of_weights();
  if (w.targets() >= 4) lora_backward(b, "LoRA MLP down", w.t, s.tokens, e.inner, s.hidden);
  expert_activation_gradient(b, w, e);
  b.grouped("experts up input gradient", s.precision, e.routed.experts, e.each, e.width, up);
  if (w.trained())
    b.grouped("experts up weight gradient", s.precision, e.routed.experts, up, e.width, e.each), b.of_weights();
  if (w.targets() >= 3) lora_backward(b, "LoRA MLP up", w.t, s.tokens, s.hidden, up);
  pad(b, w, e, "unpad expert gradient");
  combine(b, w, e, "dispatch gradient");
  b.memory("permutation gradient", (b.eager() ? 3 : 2) * moved, 2), b.of_instructions(kRows);
  if (b.eager()) b.at_rate(w.software.kernels.scatter_add);
  if (w.n.expert_latent > 0) dense("latent in input gradient", "latent in weight gradient", e.width, s.hidden);
  b.part(GraphPart::router);
  b.gemm("router input gradient", Precision::bf16, s.shard, s.hidden, experts);
  if (w.trained()) b.gemm("router weight gradient", Precision::bf16, experts, s.hidden, s.shard), b.of_weights();
  b.memory("choice gradient", 4 * kFp32 * s.shard * experts, 4);
  b.norm_gradient("norm 2 gradient and residual", kBf16 * s.shard * s.hidden);
}

}  // namespace tw
