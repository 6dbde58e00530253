#include "workload/tower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workload/layer_tensors.hpp"
#include "workload/parameters.hpp"

namespace tw {

Architecture tower_network(const Tower& w) {
  Architecture n;
  n.name = w.name, n.layers = w.layers, n.hidden = w.hidden, n.ffn = w.ffn, n.heads = w.heads, n.head_dim = w.head_dim;
  n.mlp = w.mlp, n.norm = w.norm, n.biases = w.biases, n.rotary = w.rotary, n.pattern = w.pattern;
  n.causal = false, n.window = w.window, n.window_chunks = true;
  if (n.pattern.empty()) n.pattern = fmt::format("{}*attention+mlp", w.layers);
  return n;
}

bool trains_projector(const Training& t) {
  return !t.lora;
}

bool trains_tower(const Tower& w, const Training& t) {
  return trains_projector(t) &&
         std::find(t.frozen_towers.begin(), t.frozen_towers.end(), w.name) == t.frozen_towers.end();
}

std::vector<double> projector_widths(const Tower& w, const Architecture& n) {
  std::vector<double> widths = {static_cast<double>(w.merge) * static_cast<double>(w.hidden)};
  for (const long width : w.projector) widths.push_back(static_cast<double>(width));
  widths.push_back(static_cast<double>(n.hidden));
  return widths;
}

namespace {

// A tower as a network of its own with samples of its own, on the ranks of one tensor-parallel group.
struct OwnWork {
  const Architecture& main;
  const Tower& tower;
  const Software& software;
  Architecture n;
  Training t, projector;  // of the tower and of its projector
  Plan p;
  double items;  // of a micro-batch

  OwnWork(const Architecture& network, const Tower& w, const Training& training, const Plan& plan, const Software& s)
      : main(network), tower(w), software(s), n(tower_network(w)), t(training), p() {
    t.sequence = w.tokens, t.recompute_layers = 0;
    if (!training.recompute_towers) t.recompute = Recompute::none;
    projector = t;
    // What is frozen is what lies beneath adapters, without any.
    if (!trains_tower(w, training)) t.lora.emplace().targets = 0;
    if (!trains_projector(training)) projector.lora = t.lora;
    constexpr long kMost = 1000000000;
    p.tp = plan.tp, p.dp = 1, p.sequence_parallel = false;
    p.mbs = static_cast<int>(std::min(kMost, static_cast<long>(plan.mbs) * w.items));
    p.gbs = p.mbs * (plan.ga() > 1 ? 2 : 1);  // whether gradients add up over micro-batches
    items = p.mbs;
  }
  bool trained() const { return !t.lora; }
  Work work(const LayerKind& kind) const { return {n, t, p, software, kind, sizes_of(n, t, p)}; }
  double hidden() const { return static_cast<double>(tower.hidden); }
  double rows() const { return items * static_cast<double>(tower.tokens); }
  double patches() const { return rows() - items * tower.class_tokens; }
  double made() const { return items * static_cast<double>(tower.made()); }
};

void begin_forward(Builder& b, const OwnWork& w) {
  const double states = kBf16 * w.rows() * w.hidden();
  if (w.tower.patch > 0)
    b.gemm("patch embedding", Precision::bf16, w.patches(), w.hidden(), static_cast<double>(w.tower.patch));
  else
    b.memory("tower embedding", 2 * states);
  if (w.tower.positions > 0) b.memory("tower positions", 2 * states);
  if (w.tower.end_norms > 1) b.norm("tower norm", 2 * states);
}

void begin_backward(Builder& b, const OwnWork& w) {
  const double states = kBf16 * w.rows() * w.hidden();
  if (w.tower.end_norms > 1) b.norm("tower norm gradient", 3 * states, 2);
  if (w.tower.positions > 0) b.memory("tower positions gradient", states);
  if (w.tower.patch > 0)
    b.gemm("patch embedding weight gradient", Precision::bf16, w.hidden(), static_cast<double>(w.tower.patch),
           w.patches()),
        b.of_weights();
  else
    b.memory("tower embedding gradient", 3 * states, 2);
}

// A product of the projector on one rank: weights are cut by their outputs and by their inputs in turn, and the last
// one's outputs brought together.
struct Projection {
  double in, out;
  bool by_outputs, last;
};
std::vector<Projection> projections(const OwnWork& w) {
  const std::vector<double> widths = projector_widths(w.tower, w.main);
  std::vector<Projection> list;
  for (size_t i = 1; i < widths.size(); ++i) {
    const bool by_outputs = i % 2 == 1;
    list.push_back({widths[i - 1] / (by_outputs ? 1 : w.p.tp), widths[i] / (by_outputs ? w.p.tp : 1), by_outputs,
                    i + 1 == widths.size()});
  }
  return list;
}

void projector_forward(Builder& b, const OwnWork& w) {
  const double rows = w.made(), tp = w.p.tp;
  if (w.tower.end_norms > 0) b.norm("tower norm", kBf16 * w.rows() * w.hidden() * 2);
  for (int one = 0; one < w.tower.projectors; ++one) {
    if (w.tower.merge > 1) b.memory("merge patches", 2 * kBf16 * rows * w.tower.merge * w.hidden());
    for (const Projection& p : projections(w)) {
      b.gemm("projector", Precision::bf16, rows, p.out, p.in);
      if (tp > 1 && !p.by_outputs) b.exchange("reduce projector", Exchange::tp_all_reduce, kBf16 * rows * p.out);
      if (tp > 1 && p.by_outputs && p.last)
        b.exchange("gather projector", Exchange::tp_all_gather, kBf16 * rows * p.out * tp);
      if (!p.last) b.memory("projector activation", kBf16 * rows * p.out * 2);
    }
    b.memory("place among tokens", kBf16 * rows * static_cast<double>(w.main.hidden) * 3);
  }
}

void projector_backward(Builder& b, const OwnWork& w) {
  const double rows = w.made(), tp = w.p.tp;
  const std::vector<Projection> list = projections(w);
  for (int one = 0; one < w.tower.projectors; ++one) {
    b.memory("gradient from among tokens", kBf16 * rows * static_cast<double>(w.main.hidden) * 2);
    for (auto p = list.rbegin(); p != list.rend(); ++p) {
      const bool first = p + 1 == list.rend();
      if (!p->last) b.memory("projector activation gradient", kBf16 * rows * p->out * 3);
      if (!first || w.trained()) b.gemm("projector input gradient", Precision::bf16, rows, p->in, p->out);
      b.gemm("projector weight gradient", Precision::bf16, p->out, p->in, rows), b.of_weights();
      if (tp > 1 && p->by_outputs && (!first || w.trained()))
        b.exchange("reduce projector gradient", Exchange::tp_all_reduce, kBf16 * rows * p->in);
    }
    if (w.tower.merge > 1 && w.trained())
      b.memory("merge patches gradient", 2 * kBf16 * rows * w.tower.merge * w.hidden());
  }
  if (w.tower.end_norms > 0 && w.trained()) b.norm("tower norm gradient", kBf16 * w.rows() * w.hidden() * 3, 2);
}

}  // namespace

std::vector<TowerStretch> tower_stretches(const Architecture& n, const Training& training, const Plan& plan,
                                          const Software& s) {
  std::vector<TowerStretch> all;
  for (const Tower& tower : n.towers) {
    const OwnWork w(n, tower, training, plan, s);
    const auto builder = [&](std::vector<Operation>& out, const Training& t, bool backward) {
      return Builder(out, t, s, backward);
    };
    TowerStretch begin, end;
    Builder first = builder(begin.operations.forward, w.t, false), last = builder(end.operations.forward, w.t, false);
    begin_forward(first, w), projector_forward(last, w);
    if (w.trained()) {
      Builder b = builder(begin.operations.backward, w.t, true);
      begin_backward(b, w);
    }
    if (trains_projector(training)) {
      Builder b = builder(end.operations.backward, w.projector, true);
      projector_backward(b, w);
    }
    all.push_back(begin);
    LayerKind before{Mixer::none, Feed::none};
    for (const LayerKind& kind : layer_kinds(w.n)) {
      if (kind == before) {
        ++all.back().times;
        continue;
      }
      before = kind;
      all.push_back({layer_operations(w.n, kind, w.t, w.p, s)});
      if (!w.trained()) all.back().operations.backward.clear();
    }
    all.push_back(end);
  }
  return all;
}

LayerOperations tower_operations(const Architecture& n, const Training& training, const Plan& plan, const Software& s) {
  LayerOperations all;
  const std::vector<TowerStretch> stretches = tower_stretches(n, training, plan, s);
  const auto append = [](std::vector<Operation>& to, const std::vector<Operation>& from, int times) {
    for (int i = 0; i < times; ++i) to.insert(to.end(), from.begin(), from.end());
  };
  for (const TowerStretch& one : stretches) append(all.forward, one.operations.forward, one.times);
  for (auto one = stretches.rbegin(); one != stretches.rend(); ++one)
    append(all.backward, one->operations.backward, one->times);
  return all;
}

namespace {

const Training kNeverAgain{};  // recomputation is for layers

// What the first layer takes; patches come from the host, and none of what makes them wants a gradient.
Tape begin_tape(const OwnWork& w) {
  Tape tape(kNeverAgain, w.software.kernels.eager_elementwise);
  const double states = kBf16 * w.rows() * w.hidden(), inputs = static_cast<double>(w.tower.patch + w.tower.vocabulary);
  int x = tape.tensor(states);
  const int patches = tape.tensor(kBf16 * w.patches() * static_cast<double>(w.tower.patch));
  TapeOp embedding{{}, {x, patches}, {}};
  if (w.trained()) embedding.saves = {patches}, embedding.weight_gradient = kBf16 * inputs * w.hidden();
  tape.add(embedding);
  const auto next = [&](bool saves) {
    const int y = tape.tensor(states);
    tape.add({{x}, {y}, saves ? std::vector{x} : std::vector<int>{}});
    x = y;
  };
  if (w.tower.positions > 0) next(false);
  if (w.tower.end_norms > 1) next(true);
  tape.output(x);
  if (!w.trained()) tape.freeze();
  return tape;
}

// From the last layer's states to what projectors take of them, and of those of layers on the way.
Tape end_tape(const OwnWork& w) {
  Tape tape(kNeverAgain, w.software.kernels.eager_elementwise);
  int x = tape.tensor(kBf16 * w.rows() * w.hidden());
  tape.input(x);
  if (w.tower.end_norms > 0) {
    const int h = tape.tensor(tape.bytes(x));
    tape.add({{x}, {h}, {x}});
    x = h;
  }
  const int merged = tape.tensor(w.tower.projectors * kBf16 * w.made() * w.tower.merge * w.hidden());
  tape.add({{x}, {merged}, {}});
  tape.output(merged);
  if (!w.trained()) tape.freeze();
  return tape;
}

Tape projector_tape(const OwnWork& w) {
  Tape tape(kNeverAgain, w.software.kernels.eager_elementwise);
  const double rows = w.made();
  const int x = tape.tensor(w.tower.projectors * kBf16 * rows * w.tower.merge * w.hidden());
  tape.input(x);
  const auto op = [&](int from, double bytes, double weights) {
    const int to = tape.tensor(bytes);
    TapeOp o{{from}, {to}, {from}};
    o.weight_gradient = weights;
    tape.add(o);
    return to;
  };
  std::vector<int> made;
  for (int one = 0; one < w.tower.projectors; ++one) {
    int y = x;
    for (const Projection& p : projections(w)) {
      y = op(y, kBf16 * rows * p.out, kBf16 * p.in * p.out);
      if (!p.last) y = op(y, kBf16 * rows * p.out, 0);
    }
    made.push_back(y);
  }
  const int placed = tape.tensor(0);  // among the tokens, which are there
  tape.add({made, {placed}, {}});
  tape.output(placed);
  if (!trains_projector(w.projector)) tape.freeze();
  return tape;
}

}  // namespace

std::vector<TowerPiece> tower_pieces(const Architecture& n, size_t k, const Training& t, const Plan& plan,
                                     const Software& s) {
  const Tower& tower = n.towers[k];
  const OwnWork w(n, tower, t, plan, s);
  const int number = static_cast<int>(k) + 1;
  const auto sequence = static_cast<double>(t.sequence), per_token = static_cast<double>(tower.tokens) / sequence;
  const double all = tower_parameters(tower);
  std::vector<TowerPiece> pieces;
  const double begins = w.patches() / w.items * static_cast<double>(tower.patch * tower.hidden);
  pieces.push_back({begin_tape(w), tower.items * 2 * begins / sequence, number, 1, w.trained()});
  LayerKind before{Mixer::none, Feed::none};
  for (const LayerKind& kind : layer_kinds(w.n)) {
    const double share = layer_parameters(w.n, kind) / all;
    pieces.front().share -= share;
    if (kind == before) {
      ++pieces.back().times;
      continue;
    }
    before = kind;
    Tape tape = layer_tape(w.work(kind));
    if (!w.trained()) tape.freeze();
    const double flops = layer_flops(w.n, kind, static_cast<double>(tower.tokens));
    pieces.push_back({std::move(tape), tower.items * per_token * flops, number, share, w.trained()});
  }
  pieces.push_back({end_tape(w), 0, number, 0, w.trained()});
  pieces.push_back(
      {projector_tape(w), 2 * tower_flops(n, tower).projector / sequence, -number, 1, trains_projector(t)});
  return pieces;
}

}  // namespace tw
