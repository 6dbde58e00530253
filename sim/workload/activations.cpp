// What a layer keeps for its backward pass.
#include <algorithm>

#include "workload/layer_builder.hpp"
#include "workload/memory.hpp"

namespace tw {
namespace {

struct Kept {
  const Work& w;
  bool eager;
  // Linear inputs are kept for the weight gradients: in FP8 where the layer runs in FP8, not at all where the base is
  // frozen (adapters keep the inputs of the layers they adapt, in BF16).
  double input() const { return is_scaled(w.t.precision) ? 1 : 2; }
  double linear(int target) const { return w.trained() ? input() : w.targets() >= target ? 2.0 : 0.0; }
  bool again(Module m) const { return recomputes(w.t, m); }
};

double attention_bytes(const Kept& k) {
  const Work& w = k.w;
  const Sizes& s = w.s;
  double bytes = 2 * s.shard * s.hidden;  // the norm's input
  if (!k.again(Module::norms)) bytes += k.linear(1) * s.shard * s.hidden;
  if (w.n.mla) bytes += 2 * s.tokens * static_cast<double>(w.n.mla->query_rank + w.n.mla->kv_rank + w.n.mla->rope);
  if (!w.n.mla || !k.again(Module::mla_up)) bytes += 2 * s.tokens * (s.query + 2 * s.kv);
  if (w.n.qk_norm != QkNorm::none && !w.n.mla && !k.again(Module::norms)) bytes += 2 * s.tokens * (s.query + s.kv);
  // Recomputed attention keeps its inputs; its output stays where the projection's weight gradient wants it in BF16.
  const bool again = k.again(Module::attention);
  if (!again || k.linear(2) == 2) bytes += 2 * s.tokens * s.output;
  if (!again) bytes += 4 * s.tokens * static_cast<double>(w.n.heads) / s.tp;   // statistics
  if (w.trained() && k.input() < 2) bytes += k.input() * s.tokens * s.output;  // FP8 input of the projection
  if (k.eager && !again && !w.n.mla) bytes += 2 * 2 * s.tokens * (s.query - s.kv);
  if (w.n.dropout > 0) bytes += s.shard * s.hidden;  // mask
  return bytes;
}

double mamba_bytes(const Kept& k) {
  const Sizes& s = k.w.s;
  const double inner = static_cast<double>(k.w.n.mamba->inner()) / s.tp;
  const double maps = static_cast<double>(k.w.n.mamba->maps()) / s.tp;
  double bytes = 2 * s.shard * s.hidden;
  if (!k.again(Module::norms)) bytes += k.linear(1) * s.shard * s.hidden;
  bytes += 2 * s.tokens * (2 * inner + maps);  // the projection's outputs
  bytes += 2 * s.tokens * (inner + maps);      // after the convolution
  bytes += 2 * s.tokens * inner;               // the scan's output
  return bytes + k.linear(2) * s.tokens * inner;
}

// Between the two products of an MLP or of experts: `rows` of `inner` channels.
double inner_bytes(const Kept& k, double rows, double inner) {
  double bytes = 2 * rows * inner * k.w.mlp_up();
  if (!k.again(Module::activation)) bytes += k.linear(4) * rows * inner;
  if (k.eager && k.w.n.mlp == Mlp::swiglu && !k.again(Module::activation)) bytes += 2 * rows * inner;
  return bytes;
}

double feed_bytes(const Kept& k) {
  const Work& w = k.w;
  const Sizes& s = w.s;
  double bytes = 2 * s.shard * s.hidden;  // the norm's input
  if (w.n.dropout > 0) bytes += s.shard * s.hidden;
  const bool experts = w.kind.feed == Feed::experts;
  const bool again = k.again(experts ? Module::experts : Module::mlp);
  if (!k.again(Module::norms)) bytes += k.linear(3) * s.shard * s.hidden;
  if (again) return bytes;
  if (!experts) return bytes + inner_bytes(k, s.tokens, s.ffn);
  const Routed routed = routed_tokens(w.n, w.t, w.p);
  const auto width = static_cast<double>(w.n.expert_width());
  bytes += k.linear(3) * routed.rows * width;  // rows as they came
  bytes += inner_bytes(k, routed.rows, static_cast<double>(w.n.expert_size()) / w.p.expert_tp());
  bytes += 3 * kFp32 * s.shard * w.n.experts;  // scores and probabilities
  if (k.eager) bytes += 2 * routed.sent * width;
  if (w.n.shared_ffn > 0) bytes += inner_bytes(k, s.tokens, static_cast<double>(w.n.shared_ffn) / s.tp);
  return bytes;
}

}  // namespace

double layer_activation_bytes(const Architecture& n, const LayerKind& kind, const Training& t, const Plan& p,
                              bool eager) {
  static const Software none{};
  const Work w{n, t, p, none, kind, sizes_of(n, t, p)};
  const Sizes& s = w.s;
  if (t.recompute == Recompute::full) return 2 * s.shard * s.hidden;  // the layer's input alone
  if (t.recompute == Recompute::alternate) {
    // The layer's input, and outputs of attention, exchanges and every other product: queries, values, half of the
    // MLP's way up, and the way down.
    double bytes = 2 * s.shard * s.hidden * 2;
    if (kind.mixer != Mixer::none && kind.mixer != Mixer::mamba) bytes += 2 * s.tokens * (s.query + s.kv + s.output);
    if (kind.feed == Feed::mlp) bytes += 2 * s.tokens * s.ffn;
    if (kind.feed == Feed::experts)
      bytes += 2 * routed_tokens(n, t, p).rows * static_cast<double>(n.expert_size()) / p.expert_tp();
    return bytes;
  }
  const Kept k{w, eager};
  double bytes = 0;
  if (kind.mixer == Mixer::mamba)
    bytes += mamba_bytes(k);
  else if (kind.mixer != Mixer::none)
    bytes += attention_bytes(k);
  return kind.feed == Feed::none ? bytes : bytes + feed_bytes(k);
}

double layer_activation_bytes(const Architecture& n, const Training& t, const Plan& p, bool eager) {
  return layer_activation_bytes(n, layer_kinds(n).front(), t, p, eager);
}

}  // namespace tw
