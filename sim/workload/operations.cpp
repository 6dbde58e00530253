#include "workload/operations.hpp"

#include "workload/parameters.hpp"

namespace tw {
namespace {

constexpr double kBf16 = 2;  // bytes
constexpr double kFp32 = 4;

// Sizes of one layer on one rank, in elements.
struct Sizes {
  double tokens;                  // of a micro-batch on this rank's context slice
  double shard;                   // tokens where norms and residuals are sharded over TP
  double hidden, ffn, query, kv;  // ffn, query, kv: this rank's part
  double tp;
  Precision precision;
};

Sizes sizes_of(const Architecture& n, const Training& t, const Plan& p) {
  Sizes s{};
  s.tp = p.tp;
  s.tokens = local_tokens(t, p);
  s.shard = p.sequence_parallel ? s.tokens / s.tp : s.tokens;
  s.hidden = static_cast<double>(n.hidden);
  s.ffn = static_cast<double>(n.ffn) / s.tp;
  s.query = static_cast<double>(n.query_width()) / s.tp;
  s.kv = static_cast<double>(n.kv_width()) / std::min<double>(s.tp, n.kv());
  s.precision = t.precision;
  return s;
}

// Collects the operations of one direction.
class Builder {
 public:
  Builder(std::vector<Operation>& out, const Training& training, const Software& software, bool backward)
      : out_(out), trained_(!training.lora), software_(software), backward_(backward) {}

  void gemm(const char* name, Precision precision, double m, double n, double k) {
    Operation o;
    o.name = name;
    o.kind = OperationKind::gemm;
    o.activity = type_of(precision).activity;
    o.precision = precision;
    o.m = m, o.n = n, o.k = k;
    o.flops = 2 * m * n * k;
    push(o);
  }
  // A forward kernel may stand in the backward pass (recomputation), never the other way round.
  void attention(const char* name, const AttentionShape& shape, bool fp8) {
    const bool backward = backward_;
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
    o.bytes = bytes * software_.traffic_fused;
    o.launches = launches;
    push(o);
  }
  // A norm. Eager kernels reach the measured bandwidth of norms only, backward less (reference/gpu_lab/memory_ops.csv).
  void norm(const char* name, double bytes, int launches = 1) {
    memory(name, bytes, launches);
    if (!software_.eager_elementwise) return;
    out_.back().norm = true;
    if (backward_) out_.back().bytes /= software_.norm_backward_speed;
  }
  // A norm's gradient and its sum with that of the residual branch: one kernel when fused.
  void norm_gradient(const char* name, double bf16_bytes) {
    if (!software_.eager_elementwise) return memory(name, 4.5 * bf16_bytes, 2);
    norm(name, 3 * bf16_bytes, 2);
    memory("residual gradient", 3 * bf16_bytes);
  }
  bool eager() const { return software_.eager_elementwise; }
  // Casting a BF16 operand to FP8 and collecting its amax.
  void cast(const char* name, Precision precision, double elements) {
    if (!is_scaled(precision)) return;
    Operation o;
    o.name = name;
    o.bytes = elements * kBf16 * (software_.cast_traffic + (trained_ ? software_.cast_transpose : 0));
    if (o.bytes > 0) push(o);
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
  void tp_gather(const char* name, const Sizes& s, bool sequence_parallel, bool before_fp8 = true) {
    const double element = before_fp8 && software_.fp8_gather && is_scaled(s.precision) ? 1 : kBf16;
    if (s.tp > 1 && sequence_parallel) exchange(name, Exchange::tp_all_gather, s.tokens * s.hidden * element);
  }
  void tp_scatter(const char* name, const Sizes& s, bool sequence_parallel) {
    if (s.tp > 1)
      exchange(name, sequence_parallel ? Exchange::tp_reduce_scatter : Exchange::tp_all_reduce,
               s.tokens * s.hidden * kBf16);
  }

 private:
  void push(Operation o) {
    o.backward = backward_;
    out_.push_back(std::move(o));
  }
  std::vector<Operation>& out_;
  bool trained_;
  const Software& software_;
  bool backward_;
};

AttentionShape attention_shape(const Architecture& n, const Training& t, const Plan& p) {
  AttentionShape shape;
  shape.batch = p.mbs;
  shape.heads = static_cast<double>(n.heads) / p.tp;
  shape.query_tokens = static_cast<double>(t.sequence) / p.cp;
  shape.key_tokens = static_cast<double>(t.sequence);
  shape.head_dim = static_cast<double>(n.head_size());
  shape.causal = n.causal;
  return shape;
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

double mlp_up_factor(const Architecture& n) {
  return n.mlp == Mlp::swiglu ? 2 : 1;
}

struct MlpSizes {
  double tokens;  // routed to this rank
  int groups;     // expert matrices on this rank
};

MlpSizes mlp_sizes(const Architecture& n, const Plan& p, const Sizes& s) {
  if (n.experts == 0) return {s.tokens, 1};
  return {s.tokens * n.experts_per_token, std::max(1, n.experts / p.ep)};
}

void mlp_gemms(Builder& b, const char* name, Precision precision, const MlpSizes& m, double n, double k) {
  for (int g = 0; g < m.groups; ++g) b.gemm(name, precision, m.tokens / m.groups, n, k);
}

void forward(Builder& b, const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  const Sizes s = sizes_of(n, t, p);
  const bool sp = p.sequence_parallel;
  const int targets = t.lora ? t.lora->targets : 0;
  const double qkv = s.query + 2 * s.kv;
  b.norm("norm 1", kBf16 * s.shard * s.hidden * 2);
  b.cast("cast QKV input", s.precision, s.shard * s.hidden);
  b.tp_gather("gather QKV input", s, sp, targets < 1);  // adapters want their input in BF16
  b.gemm("QKV", s.precision, s.tokens, qkv, s.hidden);
  if (targets >= 1) lora_forward(b, "LoRA QKV", t, s.tokens, s.hidden, qkv);
  if (n.rotary) b.memory("rotary", kBf16 * s.tokens * (s.query + s.kv) * 2, 2);
  // Keys and values go round the ring, one slice a round.
  for (int round = 1; round < p.cp; ++round)
    b.exchange("CP exchange", Exchange::cp_exchange, kBf16 * s.tokens * 2 * s.kv);
  b.attention("attention", attention_shape(n, t, p), software.fp8_attention && is_scaled(s.precision));
  if (p.cp > 1) b.memory("merge CP parts", p.cp * s.tokens * s.query * (kBf16 + 2 * kFp32), 4 * p.cp);
  b.cast("cast projection input", s.precision, s.tokens * s.query);
  b.gemm("projection", s.precision, s.tokens, s.hidden, s.query);
  if (targets >= 2) lora_forward(b, "LoRA projection", t, s.tokens, s.query, s.hidden);
  b.tp_scatter("scatter projection", s, sp);
  b.memory("residual 1", kBf16 * s.shard * s.hidden * (n.dropout > 0 ? 3.5 : 3));
  b.norm("norm 2", kBf16 * s.shard * s.hidden * 2);
  b.cast("cast MLP input", s.precision, s.shard * s.hidden);
  const MlpSizes m = mlp_sizes(n, p, s);
  if (n.experts > 0) {
    b.memory("router and permutation", kBf16 * m.tokens * s.hidden * 2, 6);
    if (p.ep > 1) b.exchange("dispatch", Exchange::ep_all_to_all, kBf16 * m.tokens * s.hidden / (sp ? s.tp : 1));
  }
  b.tp_gather("gather MLP input", s, sp, targets < 3);
  mlp_gemms(b, "MLP up", s.precision, m, mlp_up_factor(n) * s.ffn, s.hidden);
  if (targets >= 3) lora_forward(b, "LoRA MLP up", t, s.tokens, s.hidden, mlp_up_factor(n) * s.ffn);
  // Eager SwiGLU: silu (read, write), then the product (two reads, one write).
  const bool two_kernels = n.mlp == Mlp::swiglu && b.eager();
  b.memory(n.mlp == Mlp::swiglu ? "SwiGLU" : "GELU",
           kBf16 * m.tokens * s.ffn * (two_kernels ? 5 : mlp_up_factor(n) + 1), two_kernels ? 2 : 1);
  b.cast("cast MLP down input", s.precision, m.tokens * s.ffn);
  mlp_gemms(b, "MLP down", s.precision, m, s.hidden, s.ffn);
  if (targets >= 4) lora_forward(b, "LoRA MLP down", t, s.tokens, s.ffn, s.hidden);
  b.tp_scatter("scatter MLP", s, sp);
  if (n.experts > 0) {
    if (p.ep > 1) b.exchange("combine", Exchange::ep_all_to_all, kBf16 * m.tokens * s.hidden / (sp ? s.tp : 1));
    b.memory("unpermutation", kBf16 * m.tokens * s.hidden * 2, 2);
  }
  b.memory("residual 2", kBf16 * s.shard * s.hidden * (n.dropout > 0 ? 3.5 : 3));
}

void backward(Builder& b, const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  const Sizes s = sizes_of(n, t, p);
  const bool sp = p.sequence_parallel, trained = !t.lora;
  const int targets = t.lora ? t.lora->targets : 0;
  const double qkv = s.query + 2 * s.kv, up = mlp_up_factor(n) * s.ffn;
  const MlpSizes m = mlp_sizes(n, p, s);
  if (n.dropout > 0) b.memory("dropout 2 gradient", kBf16 * s.shard * s.hidden * 2.5);
  if (n.experts > 0) {
    b.memory("unpermutation gradient", kBf16 * m.tokens * s.hidden * 2, 3);
    if (p.ep > 1)
      b.exchange("combine gradient", Exchange::ep_all_to_all, kBf16 * m.tokens * s.hidden / (sp ? s.tp : 1));
  }
  b.tp_gather("gather MLP gradient", s, sp, targets < 4);
  b.cast("cast MLP down gradient", s.precision, m.tokens * s.hidden);
  mlp_gemms(b, "MLP down input gradient", s.precision, m, s.ffn, s.hidden);
  if (trained)
    mlp_gemms(b, "MLP down weight gradient", s.precision, {s.hidden * m.groups, m.groups}, s.ffn, m.tokens / m.groups);
  if (targets >= 4) lora_backward(b, "LoRA MLP down", t, s.tokens, s.ffn, s.hidden);
  // Eager SwiGLU: two products, silu's gradient (two reads, one write each), and joining the halves of one tensor.
  const bool four_kernels = n.mlp == Mlp::swiglu && b.eager();
  b.memory("MLP activation gradient", kBf16 * m.tokens * s.ffn * (four_kernels ? 13 : 2 * mlp_up_factor(n) + 1),
           four_kernels ? 4 : 1);
  b.cast("cast MLP up gradient", s.precision, m.tokens * up);
  mlp_gemms(b, "MLP up input gradient", s.precision, m, s.hidden, up);
  if (trained)
    mlp_gemms(b, "MLP up weight gradient", s.precision, {up * m.groups, m.groups}, s.hidden, m.tokens / m.groups);
  if (targets >= 3) lora_backward(b, "LoRA MLP up", t, s.tokens, s.hidden, up);
  b.tp_scatter("scatter MLP input gradient", s, sp);
  if (n.experts > 0) {
    if (p.ep > 1)
      b.exchange("dispatch gradient", Exchange::ep_all_to_all, kBf16 * m.tokens * s.hidden / (sp ? s.tp : 1));
    b.memory("permutation gradient", kBf16 * m.tokens * s.hidden * 2, 4);
  }
  b.norm_gradient("norm 2 gradient and residual", kBf16 * s.shard * s.hidden);
  if (n.dropout > 0) b.memory("dropout 1 gradient", kBf16 * s.shard * s.hidden * 2.5);
  b.tp_gather("gather projection gradient", s, sp, targets < 2);
  b.cast("cast projection gradient", s.precision, s.tokens * s.hidden);
  b.gemm("projection input gradient", s.precision, s.tokens, s.query, s.hidden);
  if (trained) b.gemm("projection weight gradient", s.precision, s.hidden, s.query, s.tokens);
  if (targets >= 2) lora_backward(b, "LoRA projection", t, s.tokens, s.query, s.hidden);
  b.attention("attention gradient", attention_shape(n, t, p), software.fp8_attention && is_scaled(s.precision));
  // Keys and values go round again, and their gradients too.
  for (int round = 1; round < 2 * p.cp - 1; ++round)
    b.exchange("CP exchange", Exchange::cp_exchange, kBf16 * s.tokens * 2 * s.kv);
  if (p.cp > 1) b.memory("merge CP gradients", p.cp * s.tokens * (s.query + 2 * s.kv) * (kBf16 + 2 * kFp32), 8 * p.cp);
  if (n.rotary) b.memory("rotary gradient", kBf16 * s.tokens * (s.query + s.kv) * 2, 2);
  if (b.eager()) b.memory("join QKV gradients", kBf16 * s.tokens * qkv * 2);
  b.cast("cast QKV gradient", s.precision, s.tokens * qkv);
  b.gemm("QKV input gradient", s.precision, s.tokens, s.hidden, qkv);
  if (trained) b.gemm("QKV weight gradient", s.precision, qkv, s.hidden, s.tokens);
  if (targets >= 1) lora_backward(b, "LoRA QKV", t, s.tokens, s.hidden, qkv);
  b.tp_scatter("scatter QKV input gradient", s, sp);
  b.norm_gradient("norm 1 gradient and residual", kBf16 * s.shard * s.hidden);
  // Later micro-batches add their weight gradients to the first one's.
  if (b.eager() && trained && p.ga() > 1)
    b.memory("gradient accumulation", 3 * kBf16 * trained_layer_parameters(n, t, p), 6);
}

}  // namespace

double local_tokens(const Training& t, const Plan& p) {
  return static_cast<double>(t.sequence) * p.mbs / p.cp;
}

LayerOperations layer_operations(const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  LayerOperations ops;
  Builder f(ops.forward, t, software, false), b(ops.backward, t, software, true);
  forward(f, n, t, p, software);
  Builder again(ops.backward, t, software, false);
  if (t.recompute == Recompute::full) forward(again, n, t, p, software);
  if (t.recompute == Recompute::selective) again.attention("attention again", attention_shape(n, t, p), false);
  backward(b, n, t, p, software);
  return ops;
}

LayerOperations embedding_operations(const Architecture& n, const Training& t, const Plan& p,
                                     const Software& software) {
  LayerOperations ops;
  if (n.vocabulary == 0) return ops;
  const Sizes s = sizes_of(n, t, p);
  Builder f(ops.forward, t, software, false), b(ops.backward, t, software, true);
  f.memory("embedding", kBf16 * s.tokens * s.hidden * 2, 2);
  f.tp_scatter("scatter embedding", s, p.sequence_parallel);
  b.tp_gather("gather embedding gradient", s, p.sequence_parallel, false);
  if (!t.lora) b.memory("embedding gradient", kBf16 * s.tokens * s.hidden * 3, 2);
  return ops;
}

LayerOperations head_operations(const Architecture& n, const Training& t, const Plan& p, const Software& software) {
  LayerOperations ops;
  if (n.vocabulary == 0) return ops;
  const Sizes s = sizes_of(n, t, p);
  const double vocabulary = static_cast<double>(n.vocabulary) / s.tp;
  Builder f(ops.forward, t, software, false), b(ops.backward, t, software, true);
  f.memory("final norm", kBf16 * s.shard * s.hidden * 2);
  f.tp_gather("gather head input", s, p.sequence_parallel, false);
  f.gemm("head", Precision::bf16, s.tokens, vocabulary, s.hidden);
  // The loss works on FP32 logits: cast, maximum, exponentials and sum, all over the vocabulary.
  f.memory("loss", s.tokens * vocabulary * (kBf16 + 3 * kFp32), 6);
  b.memory("loss gradient", s.tokens * vocabulary * (2 * kFp32 + kBf16), 3);
  b.gemm("head input gradient", Precision::bf16, s.tokens, s.hidden, vocabulary);
  if (!t.lora) b.gemm("head weight gradient", Precision::bf16, vocabulary, s.hidden, s.tokens);
  b.tp_scatter("scatter head input gradient", s, p.sequence_parallel);
  b.memory("final norm gradient", kBf16 * s.shard * s.hidden * 3);
  return ops;
}

double model_flops_per_sample(const Architecture& n, const Training& t) {
  const auto s = static_cast<double>(t.sequence), h = static_cast<double>(n.hidden);
  const double mlp = n.mlp_matrices() * h * static_cast<double>(n.ffn) * (n.experts > 0 ? n.experts_per_token : 1);
  const double linear = h * static_cast<double>(2 * n.query_width() + 2 * n.kv_width()) + mlp;
  const double head = h * static_cast<double>(n.vocabulary);
  const double scores = 2 * s * static_cast<double>(n.query_width());
  const double forward = 2 * s * (n.layers * (linear + scores) + head);
  // Backward: input gradients as much as forward, weight gradients as much again; scores have no weights but two
  // gradients each.
  const double weights = t.lora ? 0 : 2 * s * (n.layers * linear + head);
  const double score_gradients = 2 * s * n.layers * scores;
  return 2 * forward + weights + score_gradients;
}

}  // namespace tw
