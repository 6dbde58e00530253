#include "workload/memory.hpp"

#include <algorithm>
#include <optional>

#include "workload/layer_tensors.hpp"
#include "workload/memory_pass.hpp"
#include "workload/parameters.hpp"
#include "workload/tower.hpp"

namespace tw {

std::map<std::string, double> StageMemory::parts() const {
  std::map<std::string, double> named;
  for (size_t i = 0; i < kMemoryParts.size(); ++i) named[std::string(kMemoryParts[i])] = bytes()[i];
  return named;
}

namespace {

// A piece of a tower, of whose parameters (ParameterGroup::tower) it has a share.
struct TowerUnit {
  MemoryUnit unit;
  int tower = 0, times = 1;
  double share = 0;
  bool trained = true;
};

class Visits {
 public:
  // `first`: of the backward passes that a step's gradients begin with.
  Visits(const Architecture& n, const Training& t, const Plan& p, const Software& s, const std::vector<int>& layers,
         const std::vector<StageWork>& work, bool first = false)
      : n_(n),
        t_(t),
        p_(p),
        s_(s),
        layers_(layers),
        first_(first),
        kinds_(layers_as_trained(n, t, layers)),
        groups_(parameter_groups(n, t, p, s, layers)) {
    for (const StageWork& w : work)
      for (const MemoryVisit& v : w.visits) splits_ = splits_ || v.pass == MemoryPass::input;
    for (const LayerKind& kind : kinds_)
      if (units_.find(kind) == units_.end())
        units_[kind] = unit(layer_tape(this->work(kind)), layer_flops(n, kind, static_cast<double>(t.sequence)));
    for (size_t k = 0; k < n.towers.size(); ++k)
      for (const TowerPiece& piece : tower_pieces(n, k, t, p, s))
        towers_.push_back({unit(piece.tape, piece.flops), piece.tower, piece.times, piece.share, piece.trained});
  }

  // Gradients of several micro-batches that are made by the first one's backward pass (zero_grad frees them).
  bool begins() const {
    return lasting() && !s_.memory.persistent_gradients && !views() && p_.sharding < Sharding::zero2;
  }
  StageMemory stage(const StageWork& work, const Visits& first) const;
  StageCurves curves(const StageWork& work, const Visits& first) const;

 private:
  bool sharded() const { return p_.sharding == Sharding::zero3 && reshards(p_) && p_.sharded_over() > 1; }
  // Gradients outlive their micro-batch: buffers of the whole step, or several micro-batches that add up.
  bool lasting() const { return s_.memory.persistent_gradients || views() || p_.ga() > 1; }
  // Gradients live in the buckets of their exchange; those of micro-batches without one are made beside them.
  bool views() const { return s_.memory.gradient_views && p_.sharding == Sharding::none && p_.dp > 1 && p_.ga() == 1; }
  Tape::Weights weights() const {
    if (sharded() || !lasting() || first_) return Tape::Weights::stay;
    return s_.memory.persistent_gradients ? Tape::Weights::in_place : Tape::Weights::pass;
  }
  MemoryUnit unit(const Tape& tape, double flops) const {
    MemoryUnit u;
    u.forward = tape.forward();
    u.backward = tape.backward(weights(), splits_ ? &u.weight : nullptr);
    u.flops = flops;
    return u;
  }
  Work work(const LayerKind& kind) const { return {n_, t_, p_, s_, kind, sizes_of(n_, t_, p_)}; }
  void gather(MemoryUnit& unit, int chunk, bool tables, double share, int tower = 0) const;
  std::vector<TowerUnit> towers() const;
  MemoryUnit table_unit(int chunk, double x) const;
  void parameters(StageMemory& m, int chunk) const;
  double hand_over_buffers(int chunk) const;
  struct Visit {
    std::array<HeldPass, 4> passes;  // [MemoryPass]
    double before_head = 0;      // most of the compute stream's pool before head and loss
    double away = 0;             // activations in the host's memory between forward and backward
    const HeldPass& of(MemoryPass pass) const { return passes[static_cast<size_t>(pass)]; }
  };
  Visit visit(int chunk) const;
  void settle(Visit& visit) const;
  MemoryParts parts_of(const HeldBytes& held) const;
  MemoryPasses moments(const Visit& made) const;

  const Architecture& n_;
  const Training& t_;
  const Plan& p_;
  const Software& s_;
  const std::vector<int>& layers_;
  const bool first_;
  std::vector<LayerKind> kinds_;
  std::vector<ParameterGroup> groups_;
  std::map<LayerKind, MemoryUnit> units_;  // before anything is sharded
  std::vector<TowerUnit> towers_;
  bool splits_ = false;  // backward passes, into gradients of inputs and of weights
};

// Weights, gradients and states that a rank of a chunk holds through the step.
void Visits::parameters(StageMemory& m, int chunk) const {
  const bool through =
      p_.sharding == Sharding::zero3 && !reshards(p_);  // whole from the first gather to the last scatter
  m.workspace += hand_over_buffers(chunk);
  for (const ParameterGroup& g : groups_) {
    if (g.chunk != chunk) continue;
    const double held = g.held * g.weight_bytes, shards = g.shards;
    m.weights += p_.sharding == Sharding::zero3 ? held / shards + (through && shards > 1 ? held : 0) : held;
    if (!g.trained) continue;
    const double gradients = g.held * s_.memory.gradient_bytes_per_parameter;
    if ((lasting() && !begins()) || through || p_.sharding == Sharding::zero2)
      m.gradients +=
          p_.sharding < Sharding::zero2 ? gradients : gradients / shards + (through && shards > 1 ? gradients : 0);
    const bool buckets = p_.sharding == Sharding::none && g.exchanged > 1 && !views();
    if (buckets) m.gradients += s_.memory.bucket_copies * gradients;
    const double own = g.held / (p_.sharding == Sharding::none ? 1 : shards);
    m.optimizer += (1 - t_.offload_states) * own * state_bytes(g, t_, s_);
    m.host_states += t_.offload_states * own * (state_bytes(g, t_, s_) + host_gradient_bytes(t_));
  }
}

// Where sends and receives are paired (torch.distributed.pipelining, stage.py), a chunk has a buffer to receive in for
// every micro-batch, activations and gradients, and the last one's outputs stay to the end.
double Visits::hand_over_buffers(int chunk) const {
  if (!s_.streams.paired_hand_over || p_.pp < 2) return 0;
  const double x = kBf16 * sizes_of(n_, t_, p_).shard * static_cast<double>(n_.hidden);
  const bool first = chunk == 0, last = chunk + 1 == static_cast<int>(layers_.size());
  return x * p_.ga() * ((first ? 0 : 1) + (!last || n_.vocabulary == 0 ? 1 : 0));
}

// What the exchange of `share` of a chunk's layers moves, or of its tables.
void Visits::gather(MemoryUnit& unit, int chunk, bool tables, double share, int tower) const {
  if (!sharded()) return;
  for (const ParameterGroup& g : groups_) {
    if (g.chunk != chunk || g.shards < 2 || (g.kind == ParameterKind::embedding) != tables || g.tower != tower)
      continue;
    unit.whole += share * g.held * g.gather_bytes;
    if (!g.trained) continue;
    unit.reduced += share * g.held * s_.memory.gradient_bytes_per_parameter;
    if (!lasting()) unit.shard += share * g.held * s_.memory.gradient_bytes_per_parameter / g.shards;
  }
}

// All of their pieces in order.
std::vector<TowerUnit> Visits::towers() const {
  std::vector<TowerUnit> all;
  for (TowerUnit one : towers_) {
    gather(one.unit, 0, false, one.share, one.tower);
    all.insert(all.end(), static_cast<size_t>(one.times), one);
  }
  return all;
}

// The embedding's table, and in any chunk the input, of x bytes.
MemoryUnit Visits::table_unit(int chunk, double x) const {
  MemoryUnit table;
  table.forward.add(Held::activations, x);
  if (chunk > 0 || n_.vocabulary == 0) return table;
  const double bytes = kBf16 * static_cast<double>(n_.vocabulary) / p_.tp * static_cast<double>(n_.hidden);
  if (!t_.lora && weights() == Tape::Weights::stay && !(first_ && splits_)) table.backward.add(Held::gradients, bytes);
  if (!t_.lora && weights() == Tape::Weights::pass) table.backward.touch(Held::temporaries, bytes);
  gather(table, chunk, true, layers_.size() == 1 && !n_.tied_embeddings ? 0.5 : 1);
  return table;
}

// One micro-batch through a chunk and back.
Visits::Visit Visits::visit(int chunk) const {
  const int count = layers_[static_cast<size_t>(chunk)], last = static_cast<int>(layers_.size()) - 1;
  int first = 0;
  for (int c = 0; c < chunk; ++c) first += layers_[static_cast<size_t>(c)];
  std::map<LayerKind, MemoryUnit> units;
  std::vector<const MemoryUnit*> order;
  for (int l = first; l < first + count; ++l) {
    const LayerKind& kind = kinds_[static_cast<size_t>(l)];
    const auto [at, fresh] = units.try_emplace(kind, units_.at(kind));
    if (fresh) gather(at->second, chunk, false, 1.0 / count);
    order.push_back(&at->second);
  }
  const double x = kBf16 * sizes_of(n_, t_, p_).shard * static_cast<double>(n_.hidden);
  const bool ends = chunk == last && n_.vocabulary > 0;
  std::vector<MemoryUnit> heads;
  if (ends) {
    for (const HeadPiece& piece : head_pieces(work({}))) {
      heads.push_back(unit(piece.tape, piece.flops));
      if (piece.shares) heads.back().backward.add(Held::activations, x);
    }
    gather(heads.back(), chunk, true, chunk == 0 && !n_.tied_embeddings ? 0.5 : 1);
  }
  const MemoryUnit table = table_unit(chunk, x);
  Visit made;
  HeldPass& up = made.passes[static_cast<size_t>(MemoryPass::forward)];
  double came = 0, left = 0;
  const std::vector<TowerUnit> before = chunk == 0 ? towers() : std::vector<TowerUnit>{};
  for (const TowerUnit& t : before) up.forward(t.unit, came, false);
  up.forward(table, came, false);
  // Whose activations have left for the host's memory when a layer is done, and come back before its backward.
  const std::vector<int> due = offload_due(t_.offload_layers, count);
  const auto away = [&](size_t layer) {
    const auto k = std::find(due.begin(), due.end(), static_cast<int>(layer)) - due.begin();
    return k < static_cast<long>(due.size())
               ? order[static_cast<size_t>(k)]->forward.end[static_cast<size_t>(Held::activations)]
               : 0.0;
  };
  for (size_t l = 0; l < order.size(); ++l) {
    up.forward(*order[l], came, !p_.reshard);
    up.add(Held::activations, -away(l)), made.away += away(l);
  }
  made.before_head = up.all.pool_peak[0];
  for (const MemoryUnit& u : heads) up.forward(u, came, true);
  up.add(Held::gather_buffer, -came);

  HeldPass& down = made.passes[static_cast<size_t>(splits_ ? MemoryPass::input : MemoryPass::backward)];
  if (p_.reshard && !order.empty()) down.add(Held::gather_buffer, order.back()->whole);
  for (auto u = heads.rbegin(); u != heads.rend(); ++u) down.backward(*u, nullptr, left, true);
  if (!ends) down.add(Held::temporaries, x);  // the gradient comes from the next stage
  for (size_t l = order.size(); l-- > 0;) {
    down.add(Held::activations, away(l));
    down.backward(*order[l], p_.reshard && l > 0 ? order[l - 1] : nullptr, left, !p_.reshard);
  }
  down.add(Held::gather_buffer, table.whole);
  down.backward(table, nullptr, left, false);
  for (auto t = before.rbegin(); t != before.rend(); ++t) {
    if (!t->trained) continue;
    down.add(Held::gather_buffer, t->unit.whole);
    down.backward(t->unit, nullptr, left, false);
  }
  if (splits_) {
    HeldPass& later = made.passes[static_cast<size_t>(MemoryPass::weight)];
    for (auto u = heads.rbegin(); u != heads.rend(); ++u) later.then(u->weight, u->flops);
    for (size_t l = order.size(); l-- > 0;) later.then(order[l]->weight, order[l]->flops);
    for (auto t = before.rbegin(); t != before.rend(); ++t)
      if (t->trained) later.then(t->unit.weight, t->unit.flops);
  }
  if (first_) {  // those of norms and tables too
    HeldPass& last = splits_ ? made.passes[static_cast<size_t>(MemoryPass::weight)] : down;
    last.add(Held::gradients, -last.all.end[static_cast<size_t>(Held::gradients)]);
    for (const ParameterGroup& g : groups_)
      if (g.chunk == chunk && g.trained) last.add(Held::gradients, g.held * s_.memory.gradient_bytes_per_parameter);
  }
  settle(made);
  return made;
}

// What is not of the weights is gone when a micro-batch is: the gradient of its input has left, buffers are free.
void Visits::settle(Visit& visit) const {
  const auto split = [](MemoryPass pass) { return static_cast<size_t>(pass); };
  HeldPass &down = visit.passes[split(MemoryPass::backward)], &input = visit.passes[split(MemoryPass::input)],
           &weight = visit.passes[split(MemoryPass::weight)];
  const HeldStretch& up = visit.of(MemoryPass::forward).all;
  for (size_t i = 0; i < kHeld; ++i) {
    const Held what = static_cast<Held>(i);
    if (what == Held::gradients || what == Held::shard_gradients) continue;
    if (splits_) {
      // Activations wait for the gradients of weights; of the rest that pass frees what it holds itself.
      const double until = up.end[i] + input.all.end[i], own = weight.all.end[i];
      const double later = what == Held::activations ? until + own : std::max(0.0, own);
      input.add(what, later - until - own);
      weight.add(what, -later);
    } else {
      down.add(what, -(up.end[i] + down.all.end[i]));
    }
  }
  if (!splits_) return;
  // A schedule that splits some backward passes runs others whole.
  down.then(input.all, input.flops), down.then(weight.all, weight.flops);
}

MemoryParts Visits::parts_of(const HeldBytes& held) const {
  const auto part = [&](Held what) { return held[static_cast<size_t>(what)]; };
  const double whole = part(Held::gradients);  // of a layer, where they are sharded after it
  return {0,
          part(Held::shard_gradients) + (sharded() ? 0 : whole),
          0,
          part(Held::activations),
          part(Held::narrow_logits) + part(Held::logits),
          part(Held::gathered) + part(Held::gather_buffer) + part(Held::reduce_buffer),
          part(Held::temporaries) + (sharded() ? whole : 0),
          0};
}

StageMemory Visits::stage(const StageWork& work, const Visits& first) const {
  StageMemory m;
  std::vector<Visit> visits, firsts;
  for (const int chunk : work.chunks) {
    parameters(m, chunk);
    visits.push_back(visit(chunk));
    if (begins()) firsts.push_back(first.visit(chunk));
  }
  HeldStretch step;
  FirstGradients begun;
  double before_head = 0, away = 0;
  const auto take = [&](const MemoryVisit& v) {
    const auto slot = static_cast<size_t>(v.slot);
    const bool earliest = !firsts.empty() && begun.insert(v);
    const Visit& visit = earliest ? firsts[slot] : visits[slot];
    if (v.pass != MemoryPass::weight) away += v.pass == MemoryPass::forward ? visit.away : -visit.away;
    m.host_activations = std::max(m.host_activations, away);
    if (v.pass == MemoryPass::forward) before_head = std::max(before_head, step.pool[0] + visit.before_head);
    step.then(visit.of(v.pass).all);
  };
  std::for_each(work.visits.begin(), work.visits.end(), take);
  // One round of several: the next finds gradients.
  if (begins() && work.visits.size() == 2) std::for_each(work.visits.begin(), work.visits.end(), take);
  m.workspace += s_.memory.products_workspace.value();
  // Blocks of logits serve the smaller requests of the passes after them.
  const auto& pool = step.pool_peak;
  const double cached = pool[1] + pool[2] + std::max(pool[0], before_head + pool[3] + pool[4]);
  m.reserved = m.allocated() + cached;
  const MemoryParts most = parts_of(step.at_peak);
  m.gradients += most[1], m.activations = most[3], m.logits = most[4], m.gathered = most[5], m.workspace += most[6];
  int communicators = 0;
  for (const int ranks : {p_.tp, p_.cp, p_.pp, p_.ep, p_.dp}) communicators += ranks > 1;
  m.context = s_.memory.workspace.value() + communicators * s_.memory.communicator.value();
  return m;
}

MemoryPasses Visits::moments(const Visit& made) const {
  MemoryPasses passes;
  for (size_t k = 0; k < passes.size(); ++k) {
    const HeldPass& pass = made.passes[k];
    for (const HeldPass::Moment& moment : pass.moments)
      passes[k].push_back({pass.flops > 0 ? moment.flops / pass.flops : 0, parts_of(moment.held)});
    if (!pass.moments.empty()) passes[k].push_back({1, parts_of(pass.all.end)});
  }
  return passes;
}

StageCurves Visits::curves(const StageWork& work, const Visits& first) const {
  StageCurves curves;
  StageMemory held;
  for (const int chunk : work.chunks) {
    parameters(held, chunk);
    curves.visits.push_back(moments(visit(chunk)));
    if (begins()) curves.firsts.push_back(first.moments(first.visit(chunk)));
  }
  held.workspace += s_.memory.products_workspace.value();
  held.context = stage(work, first).context;
  curves.held = held.bytes();
  return curves;
}

}  // namespace

bool reshards(const Plan& p) {
  return p.sharding != Sharding::zero3 || p.pp == 1;
}

std::vector<StageMemory> memory_of_stages(const Architecture& n, const Training& t, const Plan& p, const Software& s,
                                          const std::vector<int>& layers, const std::vector<StageWork>& work) {
  const Visits visits(n, t, p, s, layers, work);
  std::optional<Visits> first;
  if (visits.begins()) first.emplace(n, t, p, s, layers, work, true);
  std::vector<StageMemory> stages;
  for (const StageWork& w : work) stages.push_back(visits.stage(w, first ? *first : visits));
  return stages;
}

StageCurves memory_curves(const Architecture& n, const Training& t, const Plan& p, const Software& s,
                          const std::vector<int>& layers, const StageWork& work) {
  const Visits visits(n, t, p, s, layers, {work});
  std::optional<Visits> first;
  if (visits.begins()) first.emplace(n, t, p, s, layers, std::vector<StageWork>{work}, true);
  return visits.curves(work, first ? *first : visits);
}

}  // namespace tw
