// Attention: grouped queries, windows, latents; contexts cut over ranks.
#include "workload/layer_builder.hpp"

namespace tw {
namespace {

AttentionShape attention_shape(const Work& w, bool backward = false) {
  const Architecture& n = w.n;
  const auto sequence = static_cast<double>(w.t.sequence);
  AttentionShape shape;
  shape.batch = w.p.mbs;
  shape.heads = static_cast<double>(n.heads) / w.p.tp;
  shape.query_tokens = sequence / w.p.cp;
  shape.key_tokens = sequence;
  if (w.p.context == ContextExchange::heads) shape.heads /= w.p.cp, shape.query_tokens = sequence;
  // Scores run over the query's size, their use over the value's.
  shape.head_dim = (static_cast<double>(n.query_width()) + static_cast<double>(n.output_width())) / (2.0 * n.heads);
  shape.uneven = n.query_width() != n.output_width();
  shape.causal = n.causal;
  if (w.p.cp > 1 && shape.causal && w.p.context != ContextExchange::heads && !w.software.kernels.balanced_context) {
    // The last rank sees all keys before its part, and its own under the mask.
    shape.key_tokens = sequence * (1 - 0.5 / w.p.cp);
    shape.causal = false;
  }
  shape.dropout = n.dropout > 0;
  // FP8 kernels go backward over all keys, windows or not (cuDNN 9.19 to 9.26 on GB200 and GB300:
  // NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results/gpt_oss; forward they keep to the window).
  const bool windows = !(backward && fp8_attention(w));
  if (windows && w.kind.mixer == Mixer::window && static_cast<double>(n.window) < sequence) {
    // A tile of 128 queries reads the keys of all its windows (reference/gpu_lab_8/attention_windows.csv).
    constexpr double kTile = 128;
    const double keys = mean_keys(n, w.kind.mixer, sequence, true) + kTile;
    if (keys < mean_keys(n, Mixer::attention, sequence, true))
      shape.key_tokens = keys, shape.causal = false;  // the mask is counted in the mean
  }
  return shape;
}

// Transformer Engine's FP8 attention takes and gives BF16 (fp8_dpa, pull request 768): operands and
// results are cast by kernels of their own, issued by the one call of attention.
void cast_heads(Builder& b, const Work& w) {
  if (fp8_attention(w)) b.cast("cast heads", w.s.precision, w.s.tokens * (w.s.query + 2 * w.s.kv), 0);
}

void cast_output(Builder& b, const Work& w) {
  if (fp8_attention(w)) b.cast("cast attention output", w.s.precision, w.s.tokens * w.s.output, 0);
}

// Keys and values of the whole sequence, one slice a round, gathered, or as a share of the heads for all tokens.
void context_before(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const double slice = kBf16 * s.tokens * 2 * s.kv;
  if (w.p.cp < 2) return;
  if (w.p.context == ContextExchange::ring)
    for (int round = 1; round < w.p.cp; ++round) b.exchange("CP exchange", Exchange::cp_exchange, slice);
  if (w.p.context == ContextExchange::all_gather) b.exchange("CP gather", Exchange::cp_all_gather, slice * w.p.cp);
  if (w.p.context == ContextExchange::heads)
    b.exchange("CP heads", Exchange::cp_all_to_all, kBf16 * s.tokens * s.query + slice);
}

void attention_gradient(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const int cp = w.p.cp;
  const double slice = kBf16 * s.tokens * 2 * s.kv;
  if (cp > 1 && w.p.context == ContextExchange::heads)
    b.exchange("CP heads", Exchange::cp_all_to_all, kBf16 * s.tokens * s.output);
  if (cp > 1 && w.p.context == ContextExchange::all_gather)
    b.exchange("CP gather", Exchange::cp_all_gather, slice * cp);
  // Keys and values go round again, and from the second round on what is there of their gradients with them; the last
  // round brings gradients home (Transformer Engine, context_parallel.py, AttnFuncWithCPAndKVP2P.backward).
  if (cp > 1 && w.p.context == ContextExchange::ring)
    for (int round = 0; round < cp; ++round)
      b.exchange("CP exchange", Exchange::cp_exchange, (round == 0 || round + 1 == cp ? 1 : 2) * slice);
  cast_output(b, w);
  b.attention("attention gradient", attention_shape(w, true), fp8_attention(w));
  cast_heads(b, w);
  if (cp < 2) return;
  if (w.p.context == ContextExchange::ring) {
    // In BF16 the first round's gradient of queries is copied, later ones are added; keys and values are copied to the
    // buffers they travel in, and each round joins their gradients, which are added to those that came (Transformer
    // Engine, context_parallel.py, AttnFuncWithCPAndKVP2P; the rank that works on all its queries in every round).
    b.memory("merge CP gradients", kBf16 * s.tokens * ((3 * cp - 1) * s.query + (5 * cp + 0.5) * 2 * s.kv), 8 * cp);
  }
  if (w.p.context == ContextExchange::all_gather) b.exchange("CP scatter", Exchange::cp_reduce_scatter, slice * cp);
  if (w.p.context == ContextExchange::heads)
    b.exchange("CP heads", Exchange::cp_all_to_all, kBf16 * s.tokens * s.query + slice);
}

// Rotary positions. Eager PyTorch casts to FP32, multiplies as complex numbers and casts back, and then copies keys and
// values for every query head (torchtitan, apply_rotary_emb and repeat_kv); in backward it sums these. Bytes an element
// at the rate of copies: reference/gpu_lab_10/eager_kernels.csv.
// Transformer Engine's fused kernel knows no factor of sines and cosines, so that Megatron-Core runs positions that
// have one as eager kernels in BF16 (rope_utils.py: mscale); bytes an element from
// reference/gpu_lab_9/rotary_scaled.csv.
// Around the positions of latent attention heads are taken apart and joined, and a key's positions copied for all of
// them: eager kernels where a release has no kernel for it. Bytes an element of queries, keys and values at that rate,
// beside what kernels take whatever their size and what the H200 spends on instructions:
// reference/gpu_lab_13/latent_rotary.csv.
void rotate(Builder& b, const Work& w, bool backward) {
  constexpr double kScaledBytes = 31, kScaledBackwardBytes = 33, kComplexBytes = 27.4, kComplexBackwardBytes = 28;
  constexpr double kLatentBytes = 15.3, kLatentBackwardBytes = 16;
  constexpr double kInstructions = 0.7, kBackwardInstructions = 0.67;  // reference/gpu_lab_14/rotary_scaled.csv
  const Sizes& s = w.s;
  if (!w.n.rotary) return;
  const char* name = backward ? "rotary gradient" : "rotary";
  const char* repeats = backward ? "sums over heads of keys and values" : "heads of keys and values";
  if (w.n.mla && !b.eager() && !w.software.kernels.fused_latent_rotary)
    return b.bare(name, (backward ? kLatentBackwardBytes : kLatentBytes) * s.tokens * (s.query + latent_up_channels(w)),
                  backward ? 23 : 27),
           b.of_instructions(backward ? kBackwardInstructions : kInstructions);
  if (!b.eager() && w.n.rotary_scaled)
    return b.bare(name, (backward ? kScaledBackwardBytes : kScaledBytes) * s.tokens * (s.query + s.kv),
                  backward ? 14 : 24),
           b.of_instructions(backward ? kBackwardInstructions : kInstructions);
  if (!b.eager()) return b.memory(name, 2 * kBf16 * s.tokens * (s.query + s.kv), 2);
  b.memory(name, (backward ? kComplexBackwardBytes : kComplexBytes) * s.tokens * (s.query + s.kv), 6);
  if (s.kv < s.query) b.memory(repeats, kBf16 * s.tokens * 2 * (s.kv + s.query), 2);
}

double latent_width(const Work& w) {
  return static_cast<double>(w.n.mla->query_rank + w.n.mla->kv_rank + w.n.mla->rope);
}

// Elements that the norms of queries and keys read, on this rank.
double normed(const Work& w) {
  return w.n.qk_norm == QkNorm::none || w.n.mla ? 0 : w.s.tokens * (w.s.query + w.s.kv);
}

void latent_up_forward(Builder& b, const Work& w) {
  const auto rq = static_cast<double>(w.n.mla->query_rank), rkv = static_cast<double>(w.n.mla->kv_rank);
  if (rq > 0) b.gemm("Q up", w.s.precision, w.s.tokens, w.s.query, rq);
  b.gemm("KV up", w.s.precision, w.s.tokens, latent_up_channels(w), rkv);
}

// Channels of the first product: queries, keys, values, and gates where attention has them.
double projected_width(const Work& w) {
  return w.s.query + 2 * w.s.kv + (w.n.attention_gate ? w.s.output : 0);
}

// Gates are copied out of the projection, and what attention gives is multiplied by their sigmoids in one kernel
// (Megatron-Core, attention.py, _apply_output_gate).
void gate(Builder& b, const Work& w, bool backward) {
  if (!w.n.attention_gate) return;
  const double elements = w.s.tokens * w.s.output;
  if (backward) return b.bare("attention gate gradient", kBf16 * elements * 7, 2);
  b.bare("attention gate", kBf16 * elements * 5, 2);
}

// From the normed input to queries, keys and values.
void project_forward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  const double qkv = projected_width(w);
  b.cast("cast QKV input", s.precision, s.shard * s.hidden);
  if (w.n.mla) {
    // Each rank brings its own tokens to the latents; these are gathered.
    if (w.n.mla->query_rank == 0) {
      b.tp_gather("gather Q input", s, sp);
      b.gemm("Q", s.precision, s.tokens, s.query, s.hidden);
    }
    b.gemm("latents", s.precision, s.shard, latent_width(w), s.hidden);
    b.norm("norm latents", kBf16 * s.shard * latent_width(w) * 2, 2);
    b.tp_gather("gather latents", s, sp, false, latent_width(w));
    latent_up_forward(b, w);
  } else {
    b.tp_gather("gather QKV input", s, sp, w.targets() < 1);  // adapters want their input in BF16
    b.gemm("QKV", s.precision, s.tokens, qkv, s.hidden);
  }
  if (w.targets() >= 1) lora_forward(b, "LoRA QKV", w.t, s.tokens, s.hidden, qkv);
  if (normed(w) > 0) b.norm("norm queries and keys", kBf16 * normed(w) * 2, 2);
}

void project_backward(Builder& b, const Work& w) {
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel, trained = w.trained();
  const double qkv = projected_width(w);
  if (normed(w) > 0) b.norm("norm queries and keys gradient", kBf16 * normed(w) * 3, 4);
  if (b.eager()) b.memory("join QKV gradients", kBf16 * s.tokens * qkv * 2);
  const double out = w.n.output_biases() ? s.hidden : 0;
  if (w.n.qkv_biases())
    b.bias_gradients("attention biases' gradients", kBf16 * s.tokens * (qkv + out), kBf16 * s.shard * out,
                     out > 0 ? 1 : 0);
  b.cast("cast QKV gradient", s.precision, s.tokens * qkv);
  const auto products = [&](const char* input, const char* weight, double rows, double out, double in) {
    b.gemm(input, s.precision, rows, in, out);
    if (trained) b.gemm(weight, s.precision, out, in, rows), b.of_weights();
  };
  if (!w.n.mla) {
    products("QKV input gradient", "QKV weight gradient", s.tokens, qkv, s.hidden);
    if (w.targets() >= 1) lora_backward(b, "LoRA QKV", w.t, s.tokens, s.hidden, qkv);
    return b.tp_scatter("scatter QKV input gradient", s, sp);
  }
  const auto rq = static_cast<double>(w.n.mla->query_rank), rkv = static_cast<double>(w.n.mla->kv_rank);
  if (rq > 0) products("Q up input gradient", "Q up weight gradient", s.tokens, s.query, rq);
  products("KV up input gradient", "KV up weight gradient", s.tokens, latent_up_channels(w), rkv);
  if (w.targets() >= 1) lora_backward(b, "LoRA QKV", w.t, s.tokens, s.hidden, qkv);
  b.tp_scatter("scatter latent gradient", s, sp, latent_width(w));
  b.norm("norm latents gradient", kBf16 * s.shard * latent_width(w) * 3, 4);
  products("latents input gradient", "latents weight gradient", s.shard, latent_width(w), s.hidden);
  if (rq > 0) return;
  products("Q input gradient", "Q weight gradient", s.tokens, s.query, s.hidden);
  b.tp_scatter("scatter Q input gradient", s, sp);
}

}  // namespace

bool fp8_attention(const Work& w) {
  const Software::Kernels& k = w.software.kernels;
  return k.fp8_attention && w.s.precision.scaled && (w.p.cp < 2 || k.fp8_context_attention);
}

double latent_up_channels(const Work& w) {
  return static_cast<double>(w.n.heads) / w.s.tp * static_cast<double>(w.n.mla->nope + w.n.mla->value);
}

void latents_again(Builder& b, const Work& w) {
  latent_up_forward(b, w);
  rotate(b, w, false);
}

void attention_core(Builder& b, const Work& w) {
  b.attention("attention again", attention_shape(w), false);
}

void attention_forward(Builder& b, const Work& w) {
  const Architecture& n = w.n;
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  b.norm("norm 1", kBf16 * s.shard * s.hidden * 2);
  project_forward(b, w);
  rotate(b, w, false);
  context_before(b, w);
  cast_heads(b, w);
  b.attention("attention", attention_shape(w), fp8_attention(w));
  cast_output(b, w);
  // Keys and values are joined to travel; the first part is scaled and the others are added to it, in BF16, each by one
  // fused kernel (Transformer Engine, flash_attn_fwd_out_correction).
  if (w.p.cp > 1 && w.p.context == ContextExchange::ring)
    b.memory("merge CP parts", kBf16 * s.tokens * ((3 * w.p.cp - 1) * s.query + 2 * 2 * s.kv), 4 * w.p.cp);
  if (w.p.cp > 1 && w.p.context == ContextExchange::heads)
    b.exchange("CP heads", Exchange::cp_all_to_all, kBf16 * s.tokens * s.output);
  gate(b, w, false);
  b.cast("cast projection input", s.precision, s.tokens * s.output);
  b.gemm("projection", s.precision, s.tokens, s.hidden, s.output);
  if (w.targets() >= 2) lora_forward(b, "LoRA projection", w.t, s.tokens, s.output, s.hidden);
  b.tp_scatter("scatter projection", s, sp);
  b.memory("residual 1", kBf16 * s.shard * s.hidden * (n.dropout > 0 ? 3.5 : 3));
}

void attention_backward(Builder& b, const Work& w) {
  const Architecture& n = w.n;
  const Sizes& s = w.s;
  const bool sp = w.p.sequence_parallel;
  if (n.dropout > 0) b.memory("dropout 1 gradient", kBf16 * s.shard * s.hidden * 2.5);
  b.tp_gather("gather projection gradient", s, sp, w.targets() < 2);
  b.cast_gathered("cast projection gradient", s, sp, w.targets() >= 2);
  b.gemm("projection input gradient", s.precision, s.tokens, s.output, s.hidden);
  if (w.trained()) b.gemm("projection weight gradient", s.precision, s.hidden, s.output, s.tokens), b.of_weights();
  if (w.targets() >= 2) lora_backward(b, "LoRA projection", w.t, s.tokens, s.output, s.hidden);
  gate(b, w, true);
  attention_gradient(b, w);
  rotate(b, w, true);
  project_backward(b, w);
  b.norm_gradient("norm 1 gradient and residual", kBf16 * s.shard * s.hidden);
}

}  // namespace tw
