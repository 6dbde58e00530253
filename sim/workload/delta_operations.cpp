// The gated delta rule (Gated DeltaNet, arXiv 2412.06464): a projection to queries, keys, values, gates and two numbers
// of each head; a short convolution; the rule, chunk by chunk; a gated norm; a projection back.
#include <algorithm>

#include "workload/layer_builder.hpp"

namespace tw {
namespace {

// What the rule's kernels take on an H200, whose instructions are an H100's: of every head and token; of its state's
// walk through the chunks, which waits for each chunk (`chunk_us`) unless heads and sequences fill the device
// (`state_ns`); and whatever the shape. Fitted on heads of 128 (reference/delta_rule: root mean square of its rows 5 to
// 12 %).
struct RuleCost {
  double token_ns, state_ns, chunk_us, fixed_us;
};
struct RuleKernels {
  RuleCost forward, backward;
  int launches, backward_launches;
};
const RuleKernels& kernels_of(DeltaRule library) {
  static const RuleKernels fla{{1.22, 0.47, 1.11, 20}, {4.49, 0.80, 2.66, 141}, 6, 8};
  static const RuleKernels flash_qla{{0.55, 0.02, 0.48, 37}, {1.18, 1.26, 0.60, 225}, 3, 4};
  return library == DeltaRule::fla ? fla : flash_qla;
}

// Heads of other sizes: as their states, which was not measured.
double rule_s(const Work& w, const DeltaSizes& d, const RuleCost& c) {
  constexpr double kMeasured = 128;
  const double size = static_cast<double>(w.n.delta->key_dim * w.n.delta->value_dim) / (kMeasured * kMeasured);
  const double visits = d.sequences * d.length * d.heads / w.p.cp;
  const double walk_s = std::max(c.state_ns * 1e-9 * visits * size, d.length / delta_chunk * c.chunk_us * 1e-6);
  return c.fixed_us * 1e-6 + c.token_ns * 1e-9 * visits * size + walk_s;
}

void rule(Builder& b, const Work& w, const DeltaSizes& d, bool backward) {
  const RuleKernels& kernels = kernels_of(w.software.kernels.delta_rule);
  const double bytes = kBf16 * w.s.tokens * (2 * d.heads * static_cast<double>(w.n.delta->key_dim) + 2 * d.values);
  const double flops = 2 * delta_rule_work(*w.n.delta) / w.s.tp * w.s.tokens;
  b.instructions(backward ? "delta rule gradient" : "delta rule", "delta_rule",
                 rule_s(w, d, backward ? kernels.backward : kernels.forward), (backward ? 3 : 1) * bytes,
                 (backward ? 2 : 1) * flops, backward ? kernels.backward_launches : kernels.launches);
}

}  // namespace

DeltaSizes delta_sizes(const Work& w) {
  const DeltaNet& d = *w.n.delta;
  const double tp = w.s.tp;
  return {static_cast<double>(d.keys()) / tp,
          static_cast<double>(d.values()) / tp,
          static_cast<double>(d.convolved()) / tp,
          static_cast<double>(d.projected()) / tp,
          d.value_heads / tp,
          d.value_heads > d.key_heads ? 2 * static_cast<double>(d.keys() + d.value_heads * d.key_dim) / tp : 0,
          static_cast<double>(w.p.mbs),
          static_cast<double>(w.t.sequence)};
}

// Between the products stand kernels of the module's own, as Megatron-Core issues them (gated_delta_net.py): channels
// turned to rows for the convolution, queries and keys copied, normed over a head and repeated for the heads of values,
// values and gates copied, the decays and strengths of each head and token in FP32. A release that fuses them says so.
void delta_forward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const DeltaSizes d = delta_sizes(w);
  const bool sp = w.p.sequence_parallel, fused = w.software.kernels.fused_delta;
  b.norm("norm 1", kBf16 * s.shard * s.hidden * 2);
  b.cast("cast delta input", s.precision, s.shard * s.hidden);
  b.tp_gather("gather delta input", s, sp);
  b.gemm("delta in", s.precision, s.tokens, d.projected, s.hidden);
  exchange_heads(b, w, d.projected);
  b.bare("convolution", kBf16 * s.tokens * d.convolved * (fused ? 2 : 4), fused ? 1 : 2);
  if (!fused)
    b.bare("queries, keys and values",
           kBf16 * s.tokens * (8 * d.keys + d.repeated + 4 * d.values) + kFp32 * s.tokens * 14 * d.heads, 16);
  rule(b, w, d, false);
  b.bare("gated norm", kBf16 * s.tokens * d.values * (fused ? 3 : 5), fused ? 1 : 2);
  exchange_heads(b, w, d.values);
  b.cast("cast delta out input", s.precision, s.tokens * d.values);
  b.gemm("delta out", s.precision, s.tokens, s.hidden, d.values);
  b.tp_scatter("scatter delta", s, sp);
  b.memory("residual 1", kBf16 * s.shard * s.hidden * (w.n.dropout > 0 ? 3.5 : 3));
}

void delta_backward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const DeltaSizes d = delta_sizes(w);
  const bool sp = w.p.sequence_parallel, fused = w.software.kernels.fused_delta;
  if (w.n.dropout > 0) b.memory("dropout 1 gradient", kBf16 * s.shard * s.hidden * 2.5);
  b.tp_gather("gather delta gradient", s, sp);
  b.cast("cast delta gradient", s.precision, s.tokens * s.hidden);
  b.gemm("delta out input gradient", s.precision, s.tokens, d.values, s.hidden);
  if (w.trained()) b.gemm("delta out weight gradient", s.precision, s.hidden, d.values, s.tokens), b.of_weights();
  exchange_heads(b, w, d.values);
  b.bare("gated norm gradient", kBf16 * s.tokens * d.values * (fused ? 5 : 8), fused ? 2 : 3);
  rule(b, w, d, true);
  if (!fused)
    b.bare("queries, keys and values gradient",
           kBf16 * s.tokens * (10 * d.keys + d.repeated + 4 * d.values + 2 * d.projected) +
               kFp32 * s.tokens * 20 * d.heads,
           24);
  b.bare("convolution gradient", kBf16 * s.tokens * d.convolved * (fused ? 3 : 5), fused ? 2 : 3);
  exchange_heads(b, w, d.projected);
  b.cast("cast delta in gradient", s.precision, s.tokens * d.projected);
  b.gemm("delta in input gradient", s.precision, s.tokens, s.hidden, d.projected);
  if (w.trained()) b.gemm("delta in weight gradient", s.precision, d.projected, s.hidden, s.tokens), b.of_weights();
  b.tp_scatter("scatter delta input gradient", s, sp);
  b.norm_gradient("norm 1 gradient and residual", kBf16 * s.shard * s.hidden);
}

}  // namespace tw
