// What eager kernels keep and make was read off PyTorch 2.11 (reference/gpu_lab_6/saved.csv, trace.csv); fused releases
// keep inputs of products in their precision, of norms, of attention and of the activation, and nothing between.
#include "workload/layer_tensors.hpp"

#include <algorithm>

#include "workload/memory.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

constexpr int kNone = -1;
int of(Module m) {
  return static_cast<int>(m);
}

struct Writer {
  Tape& tape;
  const Work& w;
  bool eager = w.software.kernels.eager_elementwise;
  const Sizes& s = w.s;

  bool again(Module m) const { return recomputes(w.t, m); }
  // An operation with one output; the gradient wants `saves`.
  int op(std::vector<int> in, double bytes, std::vector<int> saves = {}) {
    const int out = tape.tensor(bytes);
    tape.add({std::move(in), {out}, std::move(saves)});
    return out;
  }
  int sum(int a, int b) {
    TapeOp o{{a, b}, {tape.tensor(tape.bytes(a))}, {}};
    o.passes = true;
    const int out = o.out.front();
    tape.add(o);
    return out;
  }
  int norm(int x, double elements) {
    const int before = tape.module(of(Module::norms));
    const int h = op({x}, kBf16 * elements, {x});
    tape.module(before);
    return h;
  }
  // y = x W for each of `groups`; `target` is the adapter's place. Weight gradients want the input, in the product's
  // precision: of a frozen base only adapters do, in BF16. `from` is the input before it was gathered: fused releases
  // keep that and gather again.
  struct Product {
    double rows, in, out;
    int target;
    int from = -1;
    double groups = 1;
    bool joins = false;     // eager kernels join the gradients of its parts
    bool halves = false;    // two outputs, numbered in a row
    bool own_copy = false;  // the FP8 copy of its input stays, though the input is made again
  };
  bool keeps_input(int target) const {
    return w.trained() ? !w.t.precision.scaled || !w.software.memory.stores_fp8 : w.targets() >= target;
  }
  int product(int x, const Product& p) {
    const int kept = p.from >= 0 && w.software.memory.gathers_again ? p.from : x;
    const double bytes = kBf16 * p.rows * p.out;
    TapeOp o{{x}, {tape.tensor(p.halves ? bytes / 2 : bytes)}, {}};
    const int y = o.out.front();
    if (p.halves) o.out.push_back(tape.tensor(bytes / 2));
    o.joins = p.joins;
    if (keeps_input(p.target)) {
      o.saves = {kept};
    } else if (w.trained()) {
      const int copy = tape.tensor(tape.bytes(kept) / kBf16);
      if (tape.again(kept) && !p.own_copy) tape.drop(copy);
      o.out.push_back(copy);
      o.saves = {copy};
    }
    if (w.trained()) o.weight_gradient = kBf16 * p.groups * p.in * p.out;
    if (kept != x) o.backward_workspace = tape.bytes(x);
    // Grouped products are not among those that the rule keeps and counts.
    if (w.t.recompute == Recompute::alternate && p.groups <= 1 && tape.every_other()) tape.keep(y);
    tape.add(o);
    return w.targets() >= p.target ? sum(y, op({x}, tape.bytes(y), {kept})) : y;
  }
  int gather(int x, double width) { return s.tp > 1 && w.p.sequence_parallel ? op({x}, kBf16 * s.tokens * width) : x; }
  int scatter(int y) { return s.tp > 1 && w.p.sequence_parallel ? op({y}, kBf16 * s.shard * s.hidden) : y; }
  int dropped(int y) {
    if (w.n.output_norms) y = norm(y, s.shard * s.hidden);
    if (w.n.dropout <= 0) return y;
    const int mask = tape.tensor(s.shard * s.hidden), out = tape.tensor(tape.bytes(y));
    tape.add({{y}, {out, mask}, {mask}});
    return out;
  }

  // Up from the latents, then turned: a fused kernel turns queries in their place and writes keys and values anew;
  // eager ones take the heads apart and join them again (Megatron-Core, multi_latent_attention.py).
  std::vector<int> latents(int h) {
    const auto rq = static_cast<double>(w.n.mla->query_rank), rope = static_cast<double>(w.n.mla->rope);
    const double rkv = static_cast<double>(w.n.mla->kv_rank) + rope,
                 turned = s.query * rope / (static_cast<double>(w.n.mla->nope) + rope);
    const int narrow = product(h, {s.shard, s.hidden, rq + rkv, 9});
    const int kv_latent = norm(narrow, s.shard * rkv), q_latent = rq > 0 ? norm(narrow, s.shard * rq) : h;
    const double q_width = rq > 0 ? rq : s.hidden;
    const int before = tape.module(of(Module::mla_up));
    int query = product(gather(q_latent, q_width), {s.tokens, q_width, s.query, 1, q_latent});
    const int up = product(gather(kv_latent, rkv), {s.tokens, rkv - rope, latent_up_channels(w), 1, kv_latent});
    TapeOp turn{{up}, {tape.tensor(kBf16 * s.tokens * 2 * s.kv)}, {}};
    if (eager || !w.software.kernels.fused_latent_rotary) {
      turn.in.push_back(query), query = tape.tensor(tape.bytes(query));
      turn.out.push_back(query);
      turn.forward_workspace = turn.backward_workspace = (eager ? 2 * kFp32 : kBf16) * s.tokens * turned;
    }
    tape.add(turn);
    tape.module(before);
    return {query, turn.out.front()};
  }
  // Queries, keys and values.
  std::vector<int> projected(int h) {
    const double width = s.query + 2 * s.kv + (w.n.attention_gate ? s.output : 0);
    if (w.n.mla) return latents(h);
    const int g = gather(h, s.hidden);
    if (w.t.recompute != Recompute::alternate) return {product(g, {s.tokens, s.hidden, width, 1, h, 1, eager})};
    // Three products, of which the first and the last are kept.
    TapeOp o{{g}, {tape.tensor(kBf16 * s.tokens * width), tape.tensor(kBf16 * s.tokens * (s.query + s.kv))}, {h}};
    for (int i = 0; i < 3; ++i) tape.every_other();
    tape.keep(o.out.back());
    if (w.trained()) o.weight_gradient = kBf16 * s.hidden * width;
    tape.add(o);
    return {o.out.front()};
  }

  // Tensors go to other ranks and come as others of their size. What is computed again afterwards begins with them.
  int exchanged(int t) {
    return op({t}, tape.bytes(t), again(Module::attention) ? std::vector{t} : std::vector<int>{});
  }
  // Keys and values of other ranks, and what of theirs stands beside those of this one: every slice that came and the
  // result of every round of a ring, in backward two slices with their gradients (Transformer Engine,
  // context_parallel.py); or all of them gathered, and the gradients of all before their sum.
  void contexts(TapeOp& o) const {
    if (w.p.cp < 2 || w.p.context == ContextExchange::heads) return;
    const bool ring = w.p.context == ContextExchange::ring;
    const double slice = kBf16 * s.tokens * 2 * s.kv;
    o.forward_workspace = w.p.cp * (slice + (ring ? kBf16 * s.tokens * s.output : 0));
    o.backward_workspace += 2 * slice * (ring ? 2 : w.p.cp);
  }

  int attention(int x) {
    std::vector<int> inputs = projected(norm(x, s.shard * s.hidden));
    const int gates = inputs.front();  // beside the queries, where there are any
    if (w.n.qk_norm != QkNorm::none && !w.n.mla) inputs.push_back(norm(inputs.front(), s.tokens * (s.query + s.kv)));
    const bool repeats = eager && w.n.rotary && !w.n.mla, heads = w.p.cp > 1 && w.p.context == ContextExchange::heads;
    if (repeats) {
      // Rotation in FP32, and keys and values once for every query head.
      TapeOp turn{inputs, {tape.tensor(kBf16 * s.tokens * 3 * s.query)}, {}};
      turn.forward_workspace = turn.backward_workspace = 2 * kFp32 * s.tokens * s.query;
      inputs = turn.out;
      tape.add(turn);
    }
    const int before = tape.module(of(Module::attention));
    if (heads)
      for (int& t : inputs) t = exchanged(t);
    int a = tape.tensor(kBf16 * s.tokens * s.output);
    const double rows = s.tokens * static_cast<double>(w.n.heads) / s.tp;  // of scores
    // Unfused: softmax, and what dropout leaves of it with a mask of one byte, for each score.
    const double kept = w.n.dropout > 0 ? 2 * kBf16 + 1 : kBf16;
    const int statistics =
        tape.tensor(rows * (w.software.kernels.fused_attention ? kFp32 : kept * static_cast<double>(w.t.sequence)));
    TapeOp o{inputs, {a, statistics}, inputs};
    if (fp8_attention(w)) {
      // It keeps FP8 copies of what it reads and writes.
      double bytes = tape.bytes(a);
      for (const int t : inputs) bytes += tape.bytes(t);
      o.out.push_back(tape.tensor(bytes / kBf16));
      o.saves = {o.out.back(), statistics};
    } else {
      o.saves.push_back(a), o.saves.push_back(statistics);
    }
    // FP32 gradients of queries; with shared keys and values those of every query head, before their sum.
    o.backward_workspace = kFp32 * s.tokens * s.query * (w.n.kv() < w.n.heads && !repeats ? 2 : 1);
    contexts(o);
    tape.add(o);
    const int own = a;
    if (heads) a = op({own}, tape.bytes(own));
    tape.module(before);
    if (w.n.attention_gate) a = op({a, gates}, tape.bytes(a), {a, gates});
    // What a product wants of recomputed attention stays; attention is among what every other operation's rule keeps.
    if (w.t.recompute == Recompute::selective && keeps_input(2)) tape.keep(a);
    if (w.t.recompute == Recompute::alternate) tape.keep(own), tape.keep(statistics);
    return sum(x, dropped(scatter(product(a, {s.tokens, s.output, s.hidden, 2, -1, 1, false, false, true}))));
  }

  int mamba(int x) {
    const double inner = static_cast<double>(w.n.mamba->inner()) / s.tp;
    const double maps = static_cast<double>(w.n.mamba->maps()) / s.tp;
    const int h = norm(x, s.shard * s.hidden), g = gather(h, s.hidden);
    const double steps = static_cast<double>(w.n.mamba->heads) / s.tp;
    const int in = product(g, {s.tokens, s.hidden, 2 * inner + maps + steps, 9, h});
    // Convolution and scan are one function, which keeps their input alone and makes the rest again; states of every
    // chunk in FP32 (state-spaces/mamba, ssd_combined.py).
    const int convolved = op({in}, kBf16 * s.tokens * (inner + maps), {in});
    const int scanned = tape.tensor(kBf16 * s.tokens * inner);
    TapeOp scan{{convolved}, {scanned}, {in}};
    const double states =
        kFp32 * s.tokens * inner * static_cast<double>(w.n.mamba->state) / static_cast<double>(w.n.mamba->chunk);
    scan.forward_workspace = states, scan.backward_workspace = 2 * states + tape.bytes(convolved);
    tape.add(scan);
    const int gated = op({scanned}, kBf16 * s.tokens * inner, {scanned});
    return sum(x, dropped(scatter(product(gated, {s.tokens, inner, s.hidden, 9}))));
  }

  // Megatron-Core's module (gated_delta_net.py): the convolution keeps its input in rows, norms over a head what they
  // read, the rule what it reads, a product of keys for every chunk and decays in FP32, the gated norm what it reads.
  int delta(int x) {
    const DeltaSizes d = delta_sizes(w);
    const bool fused = w.software.kernels.fused_delta;
    const int h = norm(x, s.shard * s.hidden), g = gather(h, s.hidden);
    const int in = product(g, {s.tokens, s.hidden, d.projected, 9, h});
    const int rows = fused ? in : op({in}, kBf16 * s.tokens * d.convolved);
    const int mixed = op({rows}, kBf16 * s.tokens * d.convolved, {rows});
    int inputs = mixed;
    if (!fused) {
      const int copied = op({mixed}, kBf16 * s.tokens * 2 * d.keys);
      const int normed = op({copied}, kBf16 * s.tokens * 2 * d.keys, {copied});
      const double repeated = 2 * d.heads * static_cast<double>(w.n.delta->key_dim) + d.values;
      inputs = op({normed, mixed}, kBf16 * s.tokens * repeated);
    }
    const int gates = fused ? in : op({in}, kBf16 * s.tokens * d.values + 2 * kFp32 * s.tokens * d.heads);
    const int products = tape.tensor(kBf16 * s.tokens * d.heads * delta_chunk + kFp32 * s.tokens * d.heads);
    const int made = tape.tensor(kBf16 * s.tokens * d.values);
    TapeOp rule{{inputs, gates}, {made, products}, {inputs, products}};
    // The states of all chunks, and with their gradients.
    const double states =
        kBf16 * s.tokens / delta_chunk * d.heads * static_cast<double>(w.n.delta->key_dim * w.n.delta->value_dim);
    rule.forward_workspace = states + 2 * tape.bytes(made), rule.backward_workspace = 2 * states + 4 * tape.bytes(made);
    tape.add(rule);
    const int normed = fused ? made : op({made}, tape.bytes(made), {made});
    const int gated = op({normed, gates}, tape.bytes(made), {normed, gates});
    return sum(x, dropped(scatter(product(gated, {s.tokens, d.values, s.hidden, 9}))));
  }

  // The way up, the activation, the way down; of each of `groups` experts.
  int inner(int x, int from, double rows, double width, double inner, double groups) {
    const bool parts = eager && gated(w.n.mlp);
    Product up{rows, width, w.mlp_up() * inner, 3, from, groups, parts, parts};
    int gate = kNone, value = kNone;
    if (w.t.recompute == Recompute::alternate && gated(w.n.mlp)) {
      up.joins = up.halves = false, up.out = inner;
      gate = product(x, up), value = product(x, up);
    } else {
      gate = product(x, up), value = parts ? gate + 1 : kNone;
    }
    const int before = tape.module(kNone);
    tape.module(again(Module::activation) ? of(Module::activation) : before);
    int m = kNone;
    if (value == kNone && w.software.memory.fp8_activation_input && w.t.precision.scaled) {
      TapeOp o{{gate}, {tape.tensor(kBf16 * rows * inner), tape.tensor(tape.bytes(gate) / kBf16)}, {}};
      m = o.out.front();
      o.saves = {o.out.back()};
      tape.add(o);
    } else if (value == kNone) {
      m = op({gate}, kBf16 * rows * inner, {gate});
    } else if (eager) {
      const int silu = op({gate}, kBf16 * rows * inner, {gate});
      m = op({silu, value}, kBf16 * rows * inner, {silu, value});
    } else {
      m = op({gate, value}, kBf16 * rows * inner, {gate, value});
    }
    tape.module(before);
    return product(m, {rows, inner, width, 4, -1, groups});
  }

  int dense(int h, double size) { return scatter(inner(gather(h, s.hidden), h, s.tokens, s.hidden, size, 1)); }

  int routed(int h) {
    const Routed r = routed_tokens(w.n, w.t, w.p);
    const auto width = static_cast<double>(w.n.expert_width());
    const double sent = kBf16 * r.sent * width, rows = kBf16 * r.rows * width;
    const int scores = tape.tensor(3 * kFp32 * s.shard * w.n.experts);  // logits, probabilities, choice
    TapeOp router{{h}, {scores}, {scores}};
    if (w.trained()) router.saves.push_back(h), router.weight_gradient = kBf16 * w.n.experts * s.hidden;
    tape.add(router);
    int x = op({w.n.expert_latent > 0 ? product(h, {s.shard, s.hidden, width, 9}) : h}, sent);
    if (w.p.ep > 1 || w.p.expert_tp() > 1) x = op({x}, rows);
    if (w.p.ep > 1) x = op({x}, rows);  // sorted by expert
    const bool pads = pads_rows(w);
    if (pads) x = op({x}, rows);
    int y = inner(x, -1, r.rows, width, static_cast<double>(w.n.expert_size()) / w.p.expert_tp(), r.experts);
    if (pads) y = op({y}, rows);
    if (w.p.ep > 1) y = op({y}, rows);
    if (w.p.ep > 1 || w.p.expert_tp() > 1) y = op({y}, sent);
    if (eager) y = op({y}, sent, {y});  // times their gates
    // PyTorch's index_add keeps what it adds (IndexAddBackward0 in reference/gpu_lab_6/saved.csv).
    y = op({y, scores}, kBf16 * s.shard * width, eager ? std::vector{y} : std::vector<int>{});
    if (w.n.expert_latent > 0) y = product(y, {s.shard, width, s.hidden, 9});
    if (w.n.shared_ffn == 0) return y;
    const int shared = dense(h, static_cast<double>(w.n.shared_ffn) / s.tp);
    return sum(y, w.n.shared_gate ? op({shared}, tape.bytes(shared), {shared}) : shared);
  }

  int feed(int x) {
    const bool experts = w.kind.feed == Feed::experts, whole = again(experts ? Module::experts : Module::mlp);
    // A recomputed MLP begins with its norm (one fused operation); recomputed experts keep theirs' result.
    int before = tape.module(kNone);
    if (whole && !experts) tape.module(of(Module::mlp));
    const int h = experts || !whole ? norm(x, s.shard * s.hidden) : op({x}, kBf16 * s.shard * s.hidden, {x});
    if (whole && experts && !again(Module::norms)) tape.keep(h);
    if (whole) tape.module(of(experts ? Module::experts : Module::mlp));
    const int y = experts ? routed(h) : dense(h, s.ffn);
    tape.module(before);
    return sum(x, dropped(y));
  }
};

}  // namespace

Tape join_tape(const Work& w) {
  Tape tape(w.t, w.software.kernels.eager_elementwise);
  Writer writer{tape, w};
  const double elements = w.s.shard * w.s.hidden;
  const int x = tape.tensor(kBf16 * elements), next = tape.tensor(kBf16 * elements);
  tape.input(x);
  tape.add({{}, {next}, {}});
  const int both = writer.op({writer.norm(next, elements), writer.norm(x, elements)}, kBf16 * 2 * elements);
  const int y =
      writer.product(writer.gather(both, 2 * w.s.hidden), {w.s.tokens, 2 * w.s.hidden, w.s.hidden / w.s.tp, 9, both});
  tape.output(writer.op({y}, kBf16 * elements));
  return tape;
}

Tape layer_tape(const Work& given) {
  static const Training plain{};
  Training as_kept = given.t;
  as_kept.recompute = Recompute::none;
  const bool kept = given.kind.kept;
  const Work w{given.n, kept ? as_kept : given.t, given.p, given.software, given.kind, given.s};
  Tape tape(kept ? plain : given.t, w.software.kernels.eager_elementwise);
  Writer writer{tape, w};
  const int x = tape.tensor(kBf16 * w.s.shard * w.s.hidden);
  tape.input(x);
  int y = x;
  if (w.kind.mixer == Mixer::mamba)
    y = writer.mamba(y);
  else if (w.kind.mixer == Mixer::delta)
    y = writer.delta(y);
  else if (w.kind.mixer != Mixer::none)
    y = writer.attention(y);
  if (w.kind.feed != Feed::none) y = writer.feed(y);
  tape.output(y);
  return tape;
}

std::vector<int> offload_due(int offloaded, int layers) {
  const int away = std::min(offloaded, layers - 1);
  std::vector<int> due;
  for (int k = 0; k < away; ++k) due.push_back(layers / away * (k + 1) - 1 + std::min(k + 1, layers % away));
  return due;
}

double kept_activation_bytes(const Architecture& n, const LayerKind& kind, const Training& t, const Plan& p,
                             const Software& s) {
  return layer_tape({n, t, p, s, kind, sizes_of(n, t, p)}).forward().end[static_cast<size_t>(Held::activations)];
}

double layer_activation_bytes(const Architecture& n, const LayerKind& kind, const Training& t, const Plan& p,
                              bool eager) {
  Software s;
  s.kernels.eager_elementwise = eager;
  return layer_tape({n, t, p, s, kind, sizes_of(n, t, p)}).forward().now;
}

double layer_activation_bytes(const Architecture& n, const Training& t, const Plan& p, bool eager) {
  return layer_activation_bytes(n, layer_kinds(n).front(), t, p, eager);
}

}  // namespace tw
