#include "workload/operations.hpp"

#include "workload/layer_builder.hpp"
#include "workload/parameters.hpp"
#include "workload/tower.hpp"

namespace tw {

Sizes sizes_of(const Architecture& n, const Training& t, const Plan& p) {
  Sizes s{};
  s.tp = p.tp;
  s.tokens = local_tokens(t, p);
  s.shard = p.sequence_parallel ? s.tokens / s.tp : s.tokens;
  s.hidden = static_cast<double>(n.hidden);
  s.ffn = static_cast<double>(n.ffn) / s.tp;
  s.query = static_cast<double>(n.query_width()) / s.tp;
  s.kv = static_cast<double>(n.kv_width()) / std::min<double>(s.tp, n.kv());
  s.output = static_cast<double>(n.output_width()) / s.tp;
  s.precision = t.precision;
  return s;
}

// Adapters are skinny products that cost their memory traffic (hint 4): forward reads the input and adds to the output.
// Dropout writes its input again, with a mask of one byte.
double lora_dropout_bytes(const Training& t, double elements) {
  return t.lora->dropout > 0 ? 5 * elements : 0;
}
void lora_forward(Builder& b, const char* name, const Training& t, double tokens, double in, double out) {
  b.memory(name, kBf16 * tokens * (in + 2 * out) + lora_dropout_bytes(t, tokens * in), 5);
}
// Backward reads the output's gradient twice and the input once, and adds to the input's gradient.
void lora_backward(Builder& b, const char* name, const Training& t, double tokens, double in, double out) {
  b.memory(name, kBf16 * tokens * (2 * out + 3 * in) + lora_dropout_bytes(t, tokens * in), 8);
}

double local_tokens(const Training& t, const Plan& p) {
  return static_cast<double>(t.sequence) * p.mbs / p.cp;
}

namespace {

GraphPart mixer_part(const Work& w) {
  return w.kind.mixer == Mixer::mamba ? GraphPart::mamba : GraphPart::attention;
}

// Norms of what a mixer or a feed gives, where there are any.
void output_norm(Builder& b, const Work& w, bool backward) {
  if (!w.n.output_norms) return;
  const double bytes = kBf16 * w.s.shard * w.s.hidden;
  if (backward)
    b.norm("norm of an output gradient", 3 * bytes, 2);
  else
    b.norm("norm of an output", 2 * bytes);
}

void forward(Builder& b, const Work& w) {
  b.part(mixer_part(w));
  if (w.kind.mixer == Mixer::mamba)
    mamba_forward(b, w);
  else if (w.kind.mixer == Mixer::delta)
    delta_forward(b, w);
  else if (w.kind.mixer != Mixer::none)
    attention_forward(b, w);
  if (w.kind.mixer != Mixer::none) output_norm(b, w, false);
  b.part(GraphPart::feed);
  if (w.kind.feed == Feed::experts) experts_forward(b, w);
  if (w.kind.feed == Feed::mlp) mlp_forward(b, w, w.s.ffn, "norm 2");
  if (w.kind.feed != Feed::none) output_norm(b, w, false);
}

void backward(Builder& b, const Work& w) {
  if (w.kind.feed != Feed::none) output_norm(b, w, true);
  if (w.kind.feed == Feed::experts) experts_backward(b, w);
  if (w.kind.feed == Feed::mlp) mlp_backward(b, w, w.s.ffn);
  b.part(mixer_part(w));
  if (w.kind.mixer != Mixer::none) output_norm(b, w, true);
  if (w.kind.mixer == Mixer::mamba)
    mamba_backward(b, w);
  else if (w.kind.mixer == Mixer::delta)
    delta_backward(b, w);
  else if (w.kind.mixer != Mixer::none)
    attention_backward(b, w);
  // Later micro-batches add their weight gradients to the first one's, tensor by tensor. A layer that is traced is
  // traced in a step of one micro-batch.
  if (b.eager() && w.trained() && w.p.ga() > 1 && w.software.host.traced_gap.value() <= 0)
    b.memory("gradient accumulation", 3 * kBf16 * trained_layer_parameters(w.n, w.kind, w.t, w.p),
             6 + (w.n.qkv_biases() ? 3 : 0) + (w.n.output_biases() ? 1 : 0) + (w.n.biases ? 2 : 0));
}

// What backward computes once more, before it.
void recompute(std::vector<Operation>& out, const Work& w) {
  Builder b(out, w.t, w.software, false, w.n.dropout);
  if (w.t.recompute == Recompute::full) {
    forward(b, w);
    // Backward wants nothing of what follows the input of an MLP's last product.
    if (!w.software.kernels.recompute_stops_early || w.kind.feed != Feed::mlp) return;
    while (out.back().kind != OperationKind::gemm) out.pop_back();
    return out.pop_back();
  }
  if (w.t.recompute == Recompute::alternate) {
    // Everything but attention, exchanges and every other product.
    std::vector<Operation> all;
    Builder whole(all, w.t, w.software, false, w.n.dropout);
    forward(whole, w);
    int products = 0;
    for (const Operation& o : all)
      if (o.kind == OperationKind::memory || (o.kind == OperationKind::gemm && products++ % 2 == 1)) out.push_back(o);
    return;
  }
  const bool attends = w.kind.mixer == Mixer::attention || w.kind.mixer == Mixer::window;
  const auto again = [&](Module m) { return recomputes(w.t, m); };
  if (again(Module::norms)) {
    const int norms = (w.kind.mixer != Mixer::none ? 1 : 0) + (w.kind.feed != Feed::none ? 1 : 0);
    for (int i = 0; i < norms; ++i) b.norm("norm again", kBf16 * w.s.shard * w.s.hidden * 2);
  }
  if (attends && w.n.mla && again(Module::mla_up)) latents_again(b, w);
  if (attends && again(Module::attention)) attention_core(b, w);
  const bool experts = w.kind.feed == Feed::experts;
  if (experts && again(Module::experts)) return experts_forward(b, w);
  if (w.kind.feed == Feed::mlp && again(Module::mlp)) return mlp_forward(b, w, w.s.ffn, nullptr);
  if (!again(Module::activation)) return;
  if (experts)
    expert_activation(b, w);
  else if (w.kind.feed == Feed::mlp)
    activation_forward(b, w, w.s.tokens, w.s.ffn);
}

}  // namespace

LayerOperations layer_operations(const Architecture& n, const LayerKind& kind, const Training& t, const Plan& p,
                                 const Software& software) {
  Training as_kept = t;
  as_kept.recompute = Recompute::none;
  const Work w{n, kind.kept ? as_kept : t, p, software, kind, sizes_of(n, t, p)};
  LayerOperations ops;
  Builder f(ops.forward, t, software, false, n.dropout), b(ops.backward, t, software, true, n.dropout);
  forward(f, w);
  recompute(ops.backward, w);
  backward(b, w);
  return ops;
}

LayerOperations layer_operations(const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  return layer_operations(n, layer_kinds(n).front(), t, p, software);
}

LayerOperations table_operations(const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  LayerOperations ops;
  if (n.vocabulary == 0) return ops;
  const Sizes s = sizes_of(n, t, p);
  Builder f(ops.forward, t, software, false), b(ops.backward, t, software, true);
  // Before kernels were fused: learned positions are looked up and added, dropout follows; a rank of several masks the
  // tokens that others hold.
  const bool parts = !software.kernels.fused_attention;
  const int launches = !parts ? 2 : 2 + (n.rotary ? 0 : 2) + (n.dropout > 0 ? 1 : 0) + (s.tp > 1 ? 6 : 0);
  const double passes = !parts ? 2 : 2 + (n.rotary ? 0 : 3) + (n.dropout > 0 ? 2.5 : 0);
  f.memory("embedding", kBf16 * s.tokens * s.hidden * passes, launches);
  f.tp_scatter("scatter embedding", s, p.sequence_parallel);
  b.tp_gather("gather embedding gradient", s, p.sequence_parallel, false);
  if (!t.lora) b.memory("embedding gradient", kBf16 * s.tokens * s.hidden * 3, 2);
  return ops;
}

LayerOperations embedding_operations(const Architecture& n, const Training& t, const Plan& p,
                                     const Software& software) {
  LayerOperations all = tower_operations(n, t, p, software), table = table_operations(n, t, p, software);
  all.forward.insert(all.forward.end(), table.forward.begin(), table.forward.end());
  table.backward.insert(table.backward.end(), all.backward.begin(), all.backward.end());
  all.backward = std::move(table.backward);
  return all;
}

namespace {

// Shares that follow the multiprocessors, of one kernel (reference/gpu_lab_14).
constexpr double kLoss = 0.43, kLossBackward = 0.08;

// The last norm, the head and the loss, each way.
void head_forward(Builder& f, const Work& w) {
  const Sizes& s = w.s;
  const double vocabulary = static_cast<double>(w.n.vocabulary) / s.tp;
  f.memory("final norm", kBf16 * s.shard * s.hidden * 2);
  f.tp_gather("gather head input", s, w.p.sequence_parallel, false);
  const double tokens = s.tokens / w.t.loss_chunks;
  for (int part = 0; part < w.t.loss_chunks; ++part) {
    f.gemm("head", Precision::bf16, tokens, vocabulary, s.hidden);
    // The loss works on FP32 logits: cast, maximum, exponentials and sum, all over the vocabulary.
    // Megatron's cross entropy over a cut vocabulary was so many kernels before they were fused, most of them small.
    f.memory("loss", tokens * vocabulary * (kBf16 + 3 * kFp32), w.software.kernels.fused_attention ? 6 : 18);
    f.of_instructions(kLoss);
  }
}

void head_backward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const double vocabulary = static_cast<double>(w.n.vocabulary) / s.tp;
  const double tokens = s.tokens / w.t.loss_chunks;
  for (int part = 0; part < w.t.loss_chunks; ++part) {
    b.memory("loss gradient", tokens * vocabulary * (2 * kFp32 + kBf16), w.software.kernels.fused_attention ? 3 : 8);
    b.of_instructions(kLossBackward);
    b.gemm("head input gradient", Precision::bf16, tokens, s.hidden, vocabulary);
    if (w.trained()) b.gemm("head weight gradient", Precision::bf16, vocabulary, s.hidden, tokens), b.of_weights();
  }
  b.tp_scatter("scatter head input gradient", s, w.p.sequence_parallel);
  b.memory("final norm gradient", kBf16 * s.shard * s.hidden * 3);
}

}  // namespace

LayerOperations head_operations(const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  LayerOperations ops;
  if (n.vocabulary == 0) return ops;
  Work w{n, t, p, software, {}, sizes_of(n, t, p)};
  Builder f(ops.forward, t, software, false), b(ops.backward, t, software, true);
  head_forward(f, w);
  const Sizes& s = w.s;
  for (int depth = 0; n.next_token && depth < n.next_token->depth; ++depth) {
    f.memory("join next token", kBf16 * s.shard * s.hidden * 6, 3);
    f.tp_gather("gather next-token input", s, p.sequence_parallel, true, 2 * s.hidden);
    f.gemm("next-token projection", t.precision, s.tokens, s.hidden / s.tp, 2 * s.hidden);
    head_backward(b, w);
    const auto kinds = next_token_kinds(n);
    for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) {
      w.kind = *kind;
      recompute(ops.backward, w);
      backward(b, w);
    }
    for (const LayerKind& kind : kinds) {
      w.kind = kind;
      forward(f, w);
    }
    head_forward(f, w);
    b.gemm("next-token projection input gradient", t.precision, s.tokens, 2 * s.hidden, s.hidden / s.tp);
    if (w.trained())
      b.gemm("next-token projection weight gradient", t.precision, s.hidden / s.tp, 2 * s.hidden, s.tokens),
          b.of_weights();
    b.tp_scatter("scatter next-token input gradient", s, p.sequence_parallel, 2 * s.hidden);
    b.memory("join next token gradient", kBf16 * s.shard * s.hidden * 9, 5);
  }
  head_backward(b, w);
  return ops;
}

}  // namespace tw
