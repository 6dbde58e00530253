#include "workload/parameters.hpp"

#include <algorithm>

namespace tw {
namespace {

struct Part {
  ParameterKind kind;
  double count;  // parameters, whole
  int cut;       // ranks of a stage that each hold another piece
};

std::vector<Part> layer_parts(const Architecture& n, const Plan& p) {
  const auto h = static_cast<double>(n.hidden);
  const double mlp = n.mlp_matrices() * h * static_cast<double>(n.ffn);
  std::vector<Part> parts = {
      {ParameterKind::dense, 2 * h * static_cast<double>(n.query_width()), p.tp},
      // With fewer key and value heads than ranks, ranks hold the same ones.
      {ParameterKind::dense, 2 * h * static_cast<double>(n.kv_width()), std::min(p.tp, n.kv())},
      {ParameterKind::dense, (2 + n.experts) * h, 1},  // norms and router
  };
  if (n.experts > 0)
    parts.push_back({ParameterKind::expert, mlp * n.experts, p.ep * p.expert_tp()});
  else
    parts.push_back({ParameterKind::dense, mlp, p.tp});
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
  const auto add = [&](const Part& part, int chunk, double times, bool trained, bool repeated = false) {
    if (part.count * times <= 0) return;
    ParameterGroup g;
    g.kind = part.kind;
    g.chunk = chunk;
    g.whole = part.count * times;
    g.held = g.whole / part.cut;
    g.copies = std::max(1, ranks / part.cut);
    g.shards = g.expert() ? expert_copies(p) : p.dp * p.cp;
    g.trained = trained;
    g.repeated = repeated;
    if (!trained && is_scaled(t.precision) && part.kind != ParameterKind::embedding) {
      g.weight_bytes = s.frozen_fp8_bytes_per_parameter;
      g.gather_bytes = 1;
    }
    groups.push_back(g);
  };
  const bool trained = !t.lora;
  const Part table{ParameterKind::embedding, static_cast<double>(n.vocabulary) * static_cast<double>(n.hidden), p.tp};
  const int last = static_cast<int>(layers.size()) - 1;
  for (int c = 0; c <= last; ++c) {
    if (c == 0) add(table, c, 1, trained);
    for (const Part& part : layer_parts(n, p)) add(part, c, layers[static_cast<size_t>(c)], trained);
    if (t.lora)
      add({ParameterKind::adapter, adapter_parameters(n, *t.lora), p.tp}, c, layers[static_cast<size_t>(c)], true);
    if (c < last) continue;
    add({ParameterKind::dense, static_cast<double>(n.hidden), 1}, c, 1, trained);  // final norm
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

double trained_layer_parameters(const Architecture& n, const Training& t, const Plan& p) {
  if (t.lora) return adapter_parameters(n, *t.lora) / p.tp;
  double sum = 0;
  for (const Part& part : layer_parts(n, p)) sum += part.count / part.cut;
  return sum;
}

double layer_parameters(const Architecture& n) {
  double sum = 0;
  for (const Part& part : layer_parts(n, {})) sum += part.count;
  return sum;
}

double network_parameters(const Architecture& n) {
  const double table = static_cast<double>(n.vocabulary) * static_cast<double>(n.hidden);
  return n.layers * layer_parameters(n) + table * (n.tied_embeddings ? 1 : 2) + static_cast<double>(n.hidden);
}

double adapter_parameters(const Architecture& n, const Lora& lora) {
  const auto h = static_cast<double>(n.hidden);
  const double q = static_cast<double>(n.query_width()), kv = static_cast<double>(n.kv_width());
  const double down = static_cast<double>(n.ffn), up = (n.mlp_matrices() - 1) * down;
  const double sizes[] = {h + q + 2 * kv, q + h, h + up, down + h};  // in plus out of QKV, projection, MLP
  double sum = 0;
  for (int i = 0; i < lora.targets; ++i) sum += lora.rank * sizes[i];
  return sum;
}

}  // namespace tw
