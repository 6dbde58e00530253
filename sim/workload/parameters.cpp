#include "workload/parameters.hpp"

#include <algorithm>

#include "workload/pattern.hpp"
#include "workload/tower.hpp"

namespace tw {
namespace {

struct Part {
  ParameterKind kind;
  double count;  // parameters, whole
  int cut;       // ranks of a stage that each hold another piece
};
using Parts = std::vector<Part>;

void add_attention(Parts& parts, const Architecture& n, const Plan& p) {
  const auto h = static_cast<double>(n.hidden), heads = static_cast<double>(n.heads);
  const auto q = static_cast<double>(n.query_width()), out = static_cast<double>(n.output_width());
  const auto dense = [&](double count, int cut) { parts.push_back({ParameterKind::dense, count, cut}); };
  if (n.sinks) dense(heads, p.tp);
  if (n.mla) {
    const auto rq = static_cast<double>(n.mla->query_rank), rkv = static_cast<double>(n.mla->kv_rank);
    const auto nope = static_cast<double>(n.mla->nope), rope = static_cast<double>(n.mla->rope);
    // Every rank has the narrow projections and their norms; their heads are cut.
    dense((rq > 0 ? h * rq + rq : 0) + h * (rkv + rope) + rkv, 1);
    dense((rq > 0 ? rq : h) * q + rkv * heads * (nope + static_cast<double>(n.mla->value)) + out * h, p.tp);
    return;
  }
  const auto kv = static_cast<double>(n.kv_width());
  const double gates = n.attention_gate ? out : 0;
  dense(h * (q + gates + out) + (n.qkv_biases() ? q + gates : 0), p.tp);
  // With fewer key and value heads than ranks, ranks hold the same ones.
  dense(2 * kv * (h + (n.qkv_biases() ? 1 : 0)), std::min(p.tp, n.kv()));
  if (n.output_biases()) dense(h, 1);
  if (n.qk_norm == QkNorm::head) dense(2 * static_cast<double>(n.head_size()), 1);
  if (n.qk_norm == QkNorm::width) dense(q, p.tp), dense(kv, std::min(p.tp, n.kv()));
}

void add_mamba(Parts& parts, const Architecture& n, const Plan& p) {
  const auto h = static_cast<double>(n.hidden), inner = static_cast<double>(n.mamba->inner());
  const auto maps = static_cast<double>(n.mamba->maps()), heads = static_cast<double>(n.mamba->heads);
  const double in = h * (2 * inner + maps + heads);
  const double convolution = (inner + maps) * (n.mamba->convolution + 1);
  parts.push_back({ParameterKind::dense, in + convolution + 3 * heads + inner + inner * h, p.tp});
}

void add_delta(Parts& parts, const Architecture& n, const Plan& p) {
  const DeltaNet& d = *n.delta;
  const auto h = static_cast<double>(n.hidden), values = static_cast<double>(d.values());
  parts.push_back({ParameterKind::dense,
                   h * static_cast<double>(d.projected()) + static_cast<double>(d.convolved() * d.convolution) +
                       2 * d.value_heads + values * h,
                   p.tp});
  parts.push_back({ParameterKind::dense, static_cast<double>(d.value_dim), 1});  // norm of a head
}

void add_feed(Parts& parts, const Architecture& n, Feed feed, const Plan& p) {
  const auto h = static_cast<double>(n.hidden);
  const auto mlp = [&](double width, double inner) {
    return n.mlp_matrices() * width * inner + (n.biases ? (n.mlp_matrices() - 1) * inner + width : 0);
  };
  if (feed == Feed::mlp) parts.push_back({ParameterKind::dense, mlp(h, static_cast<double>(n.ffn)), p.tp});
  if (feed != Feed::experts) return;
  const auto width = static_cast<double>(n.expert_width()), inner = static_cast<double>(n.expert_size());
  parts.push_back({ParameterKind::expert, n.experts * mlp(width, inner), p.ep * p.expert_tp()});
  parts.push_back({ParameterKind::dense, n.experts * (h + (n.biases ? 1 : 0)), 1});  // router
  if (n.expert_latent > 0) parts.push_back({ParameterKind::dense, 2 * h * width, 1});
  if (n.shared_gate) parts.push_back({ParameterKind::dense, h, 1});
  if (n.shared_ffn > 0) parts.push_back({ParameterKind::dense, mlp(h, static_cast<double>(n.shared_ffn)), p.tp});
}

double norm_size(const Architecture& n) {
  return static_cast<double>(n.hidden) * (n.norm == Norm::layernorm ? 2 : 1);
}

Parts layer_parts(const Architecture& n, const LayerKind& kind, const Plan& p) {
  Parts parts;
  if (kind.mixer == Mixer::mamba)
    add_mamba(parts, n, p);
  else if (kind.mixer == Mixer::delta)
    add_delta(parts, n, p);
  else if (kind.mixer != Mixer::none)
    add_attention(parts, n, p);
  add_feed(parts, n, kind.feed, p);
  const int norms =
      ((kind.mixer != Mixer::none ? 1 : 0) + (kind.feed != Feed::none ? 1 : 0)) * (n.output_norms ? 2 : 1);
  parts.push_back({ParameterKind::dense, norms * norm_size(n), 1});
  return parts;
}

// Joining a next-token head's two inputs: their norms, the projection, and a last norm.
Parts next_token_parts(const Architecture& n, const Plan& p) {
  const auto h = static_cast<double>(n.hidden);
  Parts parts = {{ParameterKind::dense, 2 * h * h, p.tp}, {ParameterKind::dense, 3 * norm_size(n), 1}};
  for (const LayerKind& kind : next_token_kinds(n))
    for (const Part& part : layer_parts(n, kind, p)) parts.push_back(part);
  return parts;
}

double next_token_sets(const Architecture& n) {
  if (!n.next_token || n.next_token->depth == 0) return 0;
  return n.next_token->shared ? 1 : n.next_token->depth;
}

double sum_of(const Parts& parts) {
  double sum = 0;
  for (const Part& part : parts) sum += part.count;
  return sum;
}

// What a tower begins with every rank has whole.
Parts tower_parts(const Tower& w, const Plan& p) {
  const Architecture own = tower_network(w);
  const double begins = static_cast<double>(w.patch + w.vocabulary + w.positions + w.class_tokens);
  Parts parts = {{ParameterKind::dense, begins * static_cast<double>(w.hidden) + w.end_norms * norm_size(own), 1}};
  for (const auto& [kind, count] : count_kinds(layer_kinds(own), 0, w.layers))
    for (Part part : layer_parts(own, kind, p)) part.count *= count, parts.push_back(part);
  return parts;
}

Parts projector_parts(const Architecture& n, const Tower& w, const Plan& p) {
  const std::vector<double> widths = projector_widths(w, n);
  double weights = 0, biases = 0;
  for (size_t i = 1; i < widths.size(); ++i) weights += widths[i - 1] * widths[i], biases += widths[i];
  Parts parts = {{ParameterKind::dense, w.projectors * weights, p.tp}};
  if (w.projector_biases) parts.push_back({ParameterKind::dense, w.projectors * biases, 1});
  return parts;
}

}  // namespace

int expert_copies(const Plan& p) {
  return std::max(1, static_cast<int>(static_cast<long>(p.tp) * p.cp * p.dp / (p.ep * p.expert_tp())));
}

std::vector<ParameterGroup> parameter_groups(const Architecture& n, const Training& t, const Plan& p, const Software& s,
                                             const std::vector<int>& layers) {
  std::vector<ParameterGroup> groups;
  const int ranks = p.tp * p.cp * p.dp;
  const auto add = [&](const Part& part, int chunk, double times, bool trained, bool repeated = false, int tower = 0) {
    if (part.count * times <= 0) return;
    ParameterGroup g;
    g.kind = part.kind;
    g.chunk = chunk;
    g.tower = tower;
    g.whole = part.count * times;
    g.held = g.whole / part.cut;
    g.copies = std::max(1, ranks / part.cut);
    g.exchanged = g.expert() ? expert_copies(p) : p.dp * p.cp;
    g.shards = g.expert() ? g.exchanged : p.sharded_over();
    g.trained = trained;
    g.repeated = repeated;
    if (!trained && t.precision.scaled && part.kind != ParameterKind::embedding) {
      g.weight_bytes = s.memory.frozen_fp8_bytes_per_parameter;
      g.gather_bytes = 1;
    }
    groups.push_back(g);
  };
  const bool trained = !t.lora;
  const Part table{ParameterKind::embedding, static_cast<double>(n.vocabulary) * static_cast<double>(n.hidden), p.tp};
  const int last = static_cast<int>(layers.size()) - 1;
  const auto kinds = layer_kinds(n);
  int first = 0, number = 0;
  for (const Tower& w : n.towers) {
    ++number;
    for (const Part& part : tower_parts(w, p)) add(part, 0, 1, trains_tower(w, t), false, number);
    for (const Part& part : projector_parts(n, w, p)) add(part, 0, 1, trained, false, -number);
  }
  for (int c = 0; c <= last; ++c) {
    if (c == 0) add(table, c, 1, trained);
    for (const auto& [kind, count] : count_kinds(kinds, first, layers[static_cast<size_t>(c)])) {
      for (const Part& part : layer_parts(n, kind, p)) add(part, c, count, trained);
      if (t.lora) add({ParameterKind::adapter, adapter_parameters(n, kind, *t.lora), p.tp}, c, count, true);
    }
    first += layers[static_cast<size_t>(c)];
    if (c < last) continue;
    add({ParameterKind::dense, norm_size(n), 1}, c, 1, trained);  // final norm
    if (next_token_sets(n) > 0)
      for (const Part& part : next_token_parts(n, p)) add(part, c, next_token_sets(n), trained);
    // A tied table on the stage that holds the embedding is one; elsewhere the head keeps a copy.
    if (!n.tied_embeddings || p.pp > 1) add(table, c, 1, trained, n.tied_embeddings);
  }
  return groups;
}

SharedSum trained_parameters(const std::vector<ParameterGroup>& groups, int chunk) {
  SharedSum sum;
  for (const ParameterGroup& g : groups)
    if (g.trained && g.chunk == chunk) sum.of(g) += g.held;
  return sum;
}

SharedSum gathered_bytes(const std::vector<ParameterGroup>& groups, int chunk) {
  SharedSum sum;
  for (const ParameterGroup& g : groups)
    if (g.chunk == chunk && g.shards > 1) sum.of(g) += g.held * g.gather_bytes;
  return sum;
}

namespace {

double bytes_of(StatePrecision p) {
  return p == StatePrecision::fp32 ? 4 : p == StatePrecision::bf16 ? 2 : p == StatePrecision::fp8 ? 1 : 0;
}

}  // namespace

Software with_optimizer(Software s, const Training& t) {
  if (!t.optimizer) return s;
  const Optimizer& o = *t.optimizer;
  const double states = bytes_of(o.master) + (o.update == Update::muon ? 1 : 2) * bytes_of(o.moments);
  s.memory.gradient_bytes_per_parameter = bytes_of(o.gradients);
  s.memory.optimizer_state_bytes_per_parameter = states;
  s.kernels.optimizer_bytes_per_parameter = 2 * states + s.memory.gradient_bytes_per_parameter + 2;
  return s;
}

double state_bytes(const ParameterGroup& g, const Training& t, const Software& s) {
  const bool second = t.optimizer && t.optimizer->update == Update::muon && g.kind == ParameterKind::embedding;
  return s.memory.optimizer_state_bytes_per_parameter + (second ? bytes_of(t.optimizer->moments) : 0);
}

double host_gradient_bytes(const Training& t) {
  return t.offload_update == OffloadUpdate::host ? bytes_of(StatePrecision::fp32) : 0;
}

double trained_layer_parameters(const Architecture& n, const LayerKind& kind, const Training& t, const Plan& p) {
  if (t.lora) return adapter_parameters(n, kind, *t.lora) / p.tp;
  double sum = 0;
  for (const Part& part : layer_parts(n, kind, p)) sum += part.count / part.cut;
  return sum;
}

double layer_parameters(const Architecture& n, const LayerKind& kind) {
  return sum_of(layer_parts(n, kind, {}));
}

double layer_parameters(const Architecture& n) {
  return layer_parameters(n, layer_kinds(n).front());
}

double network_parameters(const Architecture& n, bool next_token) {
  const double table = static_cast<double>(n.vocabulary) * static_cast<double>(n.hidden);
  double sum = table * (n.tied_embeddings ? 1 : 2) + norm_size(n);
  for (const auto& [kind, count] : count_kinds(layer_kinds(n), 0, n.layers)) sum += count * layer_parameters(n, kind);
  if (next_token && next_token_sets(n) > 0) sum += next_token_sets(n) * sum_of(next_token_parts(n, {}));
  for (const Tower& w : n.towers) sum += tower_parameters(w) + projector_parameters(n, w);
  return sum;
}

double tower_parameters(const Tower& w) {
  return sum_of(tower_parts(w, {}));
}

double projector_parameters(const Architecture& n, const Tower& w) {
  return sum_of(projector_parts(n, w, {}));
}

double active_parameters(const Architecture& n) {
  double sum = network_parameters(n, false);
  for (const Tower& w : n.towers) sum -= tower_parameters(w) + projector_parameters(n, w);
  for (const LayerKind& kind : layer_kinds(n))
    for (const Part& part : layer_parts(n, kind, {}))
      if (part.kind == ParameterKind::expert) sum -= part.count * (1 - 1.0 * n.experts_per_token / n.experts);
  return sum;
}

double adapter_parameters(const Architecture& n, const LayerKind& kind, const Lora& lora) {
  const auto h = static_cast<double>(n.hidden), out = static_cast<double>(n.output_width());
  const double q = static_cast<double>(n.query_width()), kv = static_cast<double>(n.kv_width());
  const auto down = static_cast<double>(kind.feed == Feed::experts ? n.expert_size() : n.ffn);
  const double up = (n.mlp_matrices() - 1) * down;
  const double sizes[] = {h + q + 2 * kv, out + h, h + up, down + h};  // in plus out of QKV, projection, MLP
  const bool mixes = kind.mixer == Mixer::attention || kind.mixer == Mixer::window;
  double sum = 0;
  for (int i = 0; i < lora.targets; ++i)
    if (i < 2 ? mixes : kind.feed != Feed::none) sum += lora.rank * sizes[i];
  return sum;
}

double adapter_parameters(const Architecture& n, const Lora& lora) {
  double sum = 0;
  for (const LayerKind& kind : layer_kinds(n)) sum += adapter_parameters(n, kind, lora);
  return sum;
}

}  // namespace tw
