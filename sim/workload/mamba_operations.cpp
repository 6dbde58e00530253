// The Mamba-2 mixer: a projection, a short convolution, a scan by chunks, a gated norm, a projection back.
#include "workload/layer_builder.hpp"

namespace tw {
namespace {

struct MambaSizes {
  double inner, maps, heads, in;  // this rank's part
};

MambaSizes mamba_sizes(const Work& w) {
  MambaSizes m{};
  m.inner = static_cast<double>(w.n.mamba->inner()) / w.s.tp;
  m.maps = static_cast<double>(w.n.mamba->maps()) / w.s.tp;
  m.heads = static_cast<double>(w.n.mamba->heads) / w.s.tp;
  m.in = 2 * m.inner + m.maps + m.heads;
  return m;
}

void scan(Builder& b, const Work& w, const MambaSizes& m) {
  AttentionShape shape;
  shape.head_dim = m.inner / m.heads;
  shape.heads = m.heads;
  shape.query_tokens = w.s.tokens;
  shape.key_tokens =
      w.software.kernels.scan_keys * (0.5 * w.n.mamba->chunk + 2 * static_cast<double>(w.n.mamba->state));
  shape.causal = false;
  b.attention("scan", shape, false);
}

}  // namespace

void exchange_heads(Builder& b, const Work& w, double channels) {
  if (w.p.cp > 1) b.exchange("CP heads", Exchange::cp_all_to_all, kBf16 * w.s.tokens * channels);
}

void mamba_forward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  const MambaSizes m = mamba_sizes(w);
  b.norm("norm 1", kBf16 * s.shard * s.hidden * 2);
  b.cast("cast Mamba input", s.precision, s.shard * s.hidden);
  b.tp_gather("gather Mamba input", s, sp);
  b.gemm("Mamba in", s.precision, s.tokens, m.in, s.hidden);
  exchange_heads(b, w, m.in);
  b.memory("convolution", kBf16 * s.tokens * (m.inner + m.maps) * 2);
  scan(b, w, m);
  exchange_heads(b, w, m.inner);
  b.norm("gated norm", kBf16 * s.tokens * m.inner * 3);
  b.cast("cast Mamba out input", s.precision, s.tokens * m.inner);
  b.gemm("Mamba out", s.precision, s.tokens, s.hidden, m.inner);
  b.tp_scatter("scatter Mamba", s, sp);
  b.memory("residual 1", kBf16 * s.shard * s.hidden * (w.n.dropout > 0 ? 3.5 : 3));
}

void mamba_backward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  const MambaSizes m = mamba_sizes(w);
  if (w.n.dropout > 0) b.memory("dropout 1 gradient", kBf16 * s.shard * s.hidden * 2.5);
  b.tp_gather("gather Mamba gradient", s, sp);
  b.cast("cast Mamba gradient", s.precision, s.tokens * s.hidden);
  b.gemm("Mamba out input gradient", s.precision, s.tokens, m.inner, s.hidden);
  if (w.trained()) b.gemm("Mamba out weight gradient", s.precision, s.hidden, m.inner, s.tokens), b.of_weights();
  b.norm("gated norm gradient", kBf16 * s.tokens * m.inner * 6, 2);
  exchange_heads(b, w, m.inner);
  scan(b, w, m);
  b.memory("convolution gradient", kBf16 * s.tokens * (m.inner + m.maps) * 4, 2);
  exchange_heads(b, w, m.in);
  b.cast("cast Mamba in gradient", s.precision, s.tokens * m.in);
  b.gemm("Mamba in input gradient", s.precision, s.tokens, s.hidden, m.in);
  if (w.trained()) b.gemm("Mamba in weight gradient", s.precision, m.in, s.hidden, s.tokens), b.of_weights();
  b.tp_scatter("scatter Mamba input gradient", s, sp);
  b.norm_gradient("norm 1 gradient and residual", kBf16 * s.shard * s.hidden);
}

}  // namespace tw
