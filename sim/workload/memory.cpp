#include "workload/memory.hpp"

#include <algorithm>

#include "workload/layer_tensors.hpp"
#include "workload/parameters.hpp"

namespace tw {

std::map<std::string, double> StageMemory::parts() const {
  return {{"weights", weights}, {"gradients", gradients}, {"optimizer", optimizer}, {"activations", activations},
          {"logits", logits},   {"gathered", gathered},   {"workspace", workspace}, {"context", context}};
}

namespace {

// A layer, or the head: one pass each way, and what a sharded step gathers and reduces for it.
struct Unit {
  Stretch forward, backward;
  double whole = 0, reduced = 0, shard = 0;  // weights as gathered, gradients as reduced, what is left of them
};

class Visits {
 public:
  Visits(const Architecture& n, const Training& t, const Plan& p, const Software& s, const std::vector<int>& layers)
      : n_(n),
        t_(t),
        p_(p),
        s_(s),
        layers_(layers),
        kinds_(layer_kinds(n)),
        groups_(parameter_groups(n, t, p, s, layers)) {
    for (const LayerKind& kind : kinds_)
      if (units_.find(kind) == units_.end()) units_[kind] = unit(layer_tape(work(kind)));
  }

  StageMemory stage(int stage, int in_flight) const;

 private:
  bool sharded() const { return p_.sharding == Sharding::zero3 && reshards(p_) && p_.sharded_over() > 1; }
  // Gradients outlive their micro-batch: buffers of the whole step, or several micro-batches that add up.
  bool lasting() const { return s_.persistent_gradients || p_.ga() > 1; }
  Tape::Weights weights() const {
    if (sharded() || !lasting()) return Tape::Weights::stay;
    return s_.persistent_gradients ? Tape::Weights::in_place : Tape::Weights::pass;
  }
  Unit unit(const Tape& tape) const { return {tape.forward(), tape.backward(weights())}; }
  Work work(const LayerKind& kind) const { return {n_, t_, p_, s_, kind, sizes_of(n_, t_, p_)}; }
  void gather(Unit& unit, int chunk, bool tables, double share) const;
  void parameters(StageMemory& m, int chunk) const;
  void pass_forward(Stretch& step, const Unit& unit, double& before, bool keeps) const;
  void pass_backward(Stretch& step, const Unit& unit, const Unit* next, double& before, bool kept) const;
  struct Visit {
    Stretch step;
    double kept = 0;     // activations between its passes
    double forward = 0;  // most of the compute stream's pool before head and loss
  };
  Visit visit(int chunk) const;

  const Architecture& n_;
  const Training& t_;
  const Plan& p_;
  const Software& s_;
  const std::vector<int>& layers_;
  std::vector<LayerKind> kinds_;
  std::vector<ParameterGroup> groups_;
  std::map<LayerKind, Unit> units_;  // before anything is sharded
};

// Weights, gradients and states that a rank of a chunk holds through the step.
void Visits::parameters(StageMemory& m, int chunk) const {
  const bool through =
      p_.sharding == Sharding::zero3 && !reshards(p_);  // whole from the first gather to the last scatter
  for (const ParameterGroup& g : groups_) {
    if (g.chunk != chunk) continue;
    const double held = g.held * g.weight_bytes, shards = g.shards;
    m.weights += p_.sharding == Sharding::zero3 ? held / shards + (through && shards > 1 ? held : 0) : held;
    if (!g.trained) continue;
    const double gradients = g.held * s_.gradient_bytes_per_parameter;
    if (lasting() || through || p_.sharding == Sharding::zero2)
      m.gradients +=
          p_.sharding < Sharding::zero2 ? gradients : gradients / shards + (through && shards > 1 ? gradients : 0);
    if (p_.sharding == Sharding::none && g.exchanged > 1) m.gradients += s_.bucket_copies * gradients;
    m.optimizer += g.held * state_bytes(g, t_, s_) / (p_.sharding == Sharding::none ? 1 : shards);
  }
}

// What the exchange of `share` of a chunk's layers moves, or of its tables.
void Visits::gather(Unit& unit, int chunk, bool tables, double share) const {
  if (!sharded()) return;
  for (const ParameterGroup& g : groups_) {
    if (g.chunk != chunk || g.shards < 2 || (g.kind == ParameterKind::embedding) != tables) continue;
    unit.whole += share * g.held * g.gather_bytes;
    if (!g.trained) continue;
    unit.reduced += share * g.held * s_.gradient_bytes_per_parameter;
    if (!lasting()) unit.shard += share * g.held * s_.gradient_bytes_per_parameter / g.shards;
  }
}

// The buffer of a gather lives until the next one has come (PyTorch FSDP2; reference/gpu_lab_6/trace.csv).
void Visits::pass_forward(Stretch& step, const Unit& u, double& before, bool keeps) const {
  step.add(Held::gather_buffer, u.whole);
  step.add(Held::gathered, u.whole);
  step.add(Held::gather_buffer, -before);
  step.then(u.forward);
  if (!keeps) step.add(Held::gathered, -u.whole);
  before = u.whole;
}

// Weights came with the layer after; those of the one before (`next` in this direction) come meanwhile. Gradients are
// whole until the layer is done, and then leave in a buffer that lives until the next layer is done.
void Visits::pass_backward(Stretch& step, const Unit& u, const Unit* next, double& before, bool kept) const {
  if (!kept) {
    step.add(Held::gathered, u.whole);
    step.add(Held::gather_buffer, -u.whole);
    if (next != nullptr) step.add(Held::gather_buffer, next->whole);
  }
  step.then(u.backward);
  if (u.whole <= 0) return;
  step.add(Held::reduce_buffer, -before);
  step.add(Held::gathered, -u.whole);
  step.add(Held::reduce_buffer, u.reduced);
  step.add(Held::gradients, -u.backward.end[static_cast<size_t>(Held::gradients)]);
  step.add(Held::shard_gradients, u.shard);
  before = u.reduced;
}

// One micro-batch through a chunk and back.
Visits::Visit Visits::visit(int chunk) const {
  const int count = layers_[static_cast<size_t>(chunk)], last = static_cast<int>(layers_.size()) - 1;
  int first = 0;
  for (int c = 0; c < chunk; ++c) first += layers_[static_cast<size_t>(c)];
  std::map<LayerKind, Unit> units;
  std::vector<const Unit*> order;
  for (int l = first; l < first + count; ++l) {
    const LayerKind& kind = kinds_[static_cast<size_t>(l)];
    const auto [at, fresh] = units.try_emplace(kind, units_.at(kind));
    if (fresh) gather(at->second, chunk, false, 1.0 / count);
    order.push_back(&at->second);
  }
  const bool ends = chunk == last && n_.vocabulary > 0, begins = chunk == 0 && n_.vocabulary > 0;
  std::vector<Unit> heads;
  if (ends) {
    const Unit head = unit(head_tape(work({})));
    for (int depth = 0; n_.next_token && depth < n_.next_token->depth; ++depth) {
      for (const LayerKind& kind : next_token_kinds(n_)) heads.push_back(unit(layer_tape(work(kind))));
      heads.push_back(head);
    }
    heads.push_back(head);
    gather(heads.back(), chunk, true, chunk == 0 && !n_.tied_embeddings ? 0.5 : 1);
  }
  Unit table;
  const double x = kBf16 * sizes_of(n_, t_, p_).shard * static_cast<double>(n_.hidden);
  table.forward.add(Held::activations, x);
  if (begins) {
    const double bytes = kBf16 * static_cast<double>(n_.vocabulary) / p_.tp * static_cast<double>(n_.hidden);
    if (!t_.lora && weights() == Tape::Weights::stay) table.backward.add(Held::gradients, bytes);
    if (!t_.lora && weights() == Tape::Weights::pass) table.backward.touch(Held::temporaries, bytes);
    gather(table, chunk, true, chunk == last && !n_.tied_embeddings ? 0.5 : 1);
  }
  Visit made;
  Stretch& step = made.step;
  double came = 0, left = 0;
  pass_forward(step, table, came, false);
  // Layers that wait in the host's memory leave while the next one computes, and come back so.
  const auto waits = [&](size_t layer) {
    return layer + 1 < order.size() && layer < static_cast<size_t>(t_.offload_layers)
               ? order[layer]->forward.end[static_cast<size_t>(Held::activations)]
               : 0.0;
  };
  for (size_t l = 0; l < order.size(); ++l) {
    pass_forward(step, *order[l], came, !p_.reshard);
    if (l > 0) step.add(Held::activations, -waits(l - 1));
  }
  made.kept = step.end[static_cast<size_t>(Held::activations)];
  made.forward = step.pool_peak[0];
  for (const Unit& u : heads) pass_forward(step, u, came, true);
  step.add(Held::gather_buffer, -came);
  if (p_.reshard && !order.empty()) step.add(Held::gather_buffer, order.back()->whole);
  for (auto u = heads.rbegin(); u != heads.rend(); ++u) pass_backward(step, *u, nullptr, left, true);
  if (!ends) step.add(Held::temporaries, x);  // the gradient comes from the next stage
  for (size_t l = order.size(); l-- > 0;) {
    if (l > 0) step.add(Held::activations, waits(l - 1));
    pass_backward(step, *order[l], p_.reshard && l > 0 ? order[l - 1] : nullptr, left, !p_.reshard);
  }
  step.add(Held::gather_buffer, table.whole);
  pass_backward(step, table, nullptr, left, false);
  return made;
}

// Visits in flight are those that began first: as many micro-batches as there are stages through one chunk, then
// through the next (interleaved schedules). The chunk at work is one of them.
StageMemory Visits::stage(int stage, int in_flight) const {
  StageMemory m;
  std::vector<Visit> visits;
  for (int v = 0; v < p_.vp; ++v) {
    parameters(m, v * p_.pp + stage);
    visits.push_back(visit(v * p_.pp + stage));
  }
  double waiting = 0;
  for (int i = 0; i < in_flight; ++i) waiting += visits[static_cast<size_t>(i / p_.pp % p_.vp)].kept;
  Stretch most;
  double cached = 0;
  for (int v = 0; v < std::min(p_.vp, in_flight); ++v) {
    const Visit& visit = visits[static_cast<size_t>(v)];
    const double others = std::max(0.0, waiting - visit.kept);
    Stretch step;
    step.add(Held::activations, others);
    step.then(visit.step);
    if (v == 0 || step.peak > most.peak) most = step;
    // Blocks of logits serve the smaller requests of the passes after them.
    const auto& pool = step.pool_peak;
    cached = std::max(cached, pool[1] + pool[2] + std::max(pool[0], others + visit.forward + pool[3] + pool[4]));
  }
  m.reserved = m.allocated() + cached;
  const auto part = [&](Held what) { return most.at_peak[static_cast<size_t>(what)]; };
  m.activations = part(Held::activations);
  m.logits = part(Held::narrow_logits) + part(Held::logits);
  m.gradients += part(Held::shard_gradients) + (sharded() ? 0 : part(Held::gradients));
  m.gathered = part(Held::gathered) + part(Held::gather_buffer) + part(Held::reduce_buffer);
  m.workspace = part(Held::temporaries) + (sharded() ? part(Held::gradients) : 0);  // whole ones, of a layer
  int communicators = 0;
  for (const int ranks : {p_.tp, p_.cp, p_.pp, p_.ep, p_.dp}) communicators += ranks > 1;
  m.context = s_.workspace.value() + communicators * s_.communicator.value();
  return m;
}

}  // namespace

bool reshards(const Plan& p) {
  return p.sharding != Sharding::zero3 || p.pp == 1;
}

std::vector<StageMemory> memory_of_stages(const Architecture& n, const Training& t, const Plan& p, const Software& s,
                                          const std::vector<int>& layers, const std::vector<int>& in_flight) {
  const Visits visits(n, t, p, s, layers);
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < p.pp; ++stage)
    stages.push_back(visits.stage(stage, in_flight[static_cast<size_t>(stage)]));
  return stages;
}

double layer_activation_bytes(const Architecture& n, const LayerKind& kind, const Training& t, const Plan& p,
                              bool eager) {
  Software s;
  s.eager_elementwise = eager;
  return layer_tape({n, t, p, s, kind, sizes_of(n, t, p)}).forward().now;
}

double layer_activation_bytes(const Architecture& n, const Training& t, const Plan& p, bool eager) {
  return layer_activation_bytes(n, layer_kinds(n).front(), t, p, eager);
}

}  // namespace tw
