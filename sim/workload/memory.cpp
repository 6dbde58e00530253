#include "workload/memory.hpp"

#include <algorithm>
#include <map>

#include "workload/layer_builder.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

namespace tw {

std::map<std::string, double> StageMemory::parts() const {
  return {{"weights", weights},
          {"gradients", gradients},
          {"optimizer", optimizer},
          {"activations", activations},
          {"workspace", workspace}};
}

namespace {

// Weights, gradients and states of the parameters that one stage holds.
void add_parameters(StageMemory& m, const ParameterGroup& g, const Plan& p, const Software& s) {
  const double weights = g.held * g.weight_bytes, shards = g.shards;
  const bool whole = !reshards(p);  // FSDP in a pipeline gathers once a step and reduces after the last micro-batch
  m.weights += p.sharding == Sharding::zero3 ? weights / shards + (whole && shards > 1 ? weights : 0) : weights;
  if (!g.trained) return;
  const double gradients = g.held * s.gradient_bytes_per_parameter;
  m.gradients += p.sharding < Sharding::zero2 ? gradients : gradients / shards + (whole && shards > 1 ? gradients : 0);
  if (p.sharding == Sharding::none && g.exchanged > 1) m.buckets += s.bucket_copies * gradients;
  m.optimizer += g.held * s.optimizer_state_bytes_per_parameter / (p.sharding == Sharding::none ? 1 : shards);
}

// Elements inside the widest MLP, on one rank.
double inner_elements(const Architecture& n, const Training& t, const Plan& p) {
  double most = 0;
  for (const LayerKind& kind : layer_kinds(n)) {
    if (kind.feed == Feed::mlp) most = std::max(most, local_tokens(t, p) * static_cast<double>(n.ffn) / p.tp);
    if (kind.feed == Feed::experts)
      most = std::max(most, routed_tokens(n, t, p).rows * static_cast<double>(n.expert_size()) / p.expert_tp());
  }
  return most;
}

// Logits with the loss, and under ZeRO-3 the head's table and its gradient, whole: it is one unit, gathered last.
double head_bytes(const Architecture& n, const Training& t, const Plan& p, const Software& s) {
  const double vocabulary = static_cast<double>(n.vocabulary) / p.tp;
  // Fused: BF16 logits, and FP32 gradients in the place of the FP32 logits. Eager: BF16 and FP32 logits, their log
  // softmax, and its gradient.
  double bytes = local_tokens(t, p) * vocabulary * (s.eager_elementwise ? 2 + 4 + 4 + 4 : 2 + 4);
  if (p.sharding == Sharding::zero3 && reshards(p) && p.sharded_over() > 1)
    bytes += vocabulary * static_cast<double>(n.hidden) * (2 + (t.lora ? 0 : s.gradient_bytes_per_parameter));
  return bytes;
}

}  // namespace

bool reshards(const Plan& p) {
  return p.sharding != Sharding::zero3 || p.pp == 1;
}

std::vector<StageMemory> memory_of_stages(const Architecture& n, const Training& t, const Plan& p, const Software& s,
                                          const std::vector<int>& layers, const std::vector<int>& in_flight) {
  const auto groups = parameter_groups(n, t, p, s, layers);
  Training kept = t;
  kept.recompute = Recompute::none;
  const auto kinds = layer_kinds(n);
  std::map<LayerKind, std::pair<double, double>> bytes;  // kept for a visit, and more for the layer at work
  for (const LayerKind& kind : kinds)
    if (bytes.find(kind) == bytes.end()) {
      const double visit = layer_activation_bytes(n, kind, t, p, s.eager_elementwise);
      // What recomputation frees comes back for the layer at work.
      bytes[kind] = {visit, layer_activation_bytes(n, kind, kept, p, s.eager_elementwise) - visit};
    }
  std::vector<int> first(layers.size(), 0);
  for (size_t c = 1; c < layers.size(); ++c) first[c] = first[c - 1] + layers[c - 1];
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < p.pp; ++stage) {
    double visit = 0, at_work = 0;  // of the chunk, and the layer, that keep most
    StageMemory m;
    double gathered_layer = 0;  // the largest of the stage
    for (int v = 0; v < p.vp; ++v) {
      const int chunk = v * p.pp + stage, count = layers[static_cast<size_t>(chunk)];
      double of_chunk = 0;
      for (const auto& [kind, times] : count_kinds(kinds, first[static_cast<size_t>(chunk)], count)) {
        of_chunk += times * bytes[kind].first;
        at_work = std::max(at_work, bytes[kind].second);
      }
      visit = std::max(visit, of_chunk);
      double layer = 0;
      for (const ParameterGroup& g : groups) {
        if (g.chunk != chunk) continue;
        add_parameters(m, g, p, s);
        if (g.shards > 1 && g.kind != ParameterKind::embedding && count > 0)
          layer += ((p.reshard ? 0 : count - 1) + s.gathered_layers + 1.0 / g.shards) * g.held * g.gather_bytes / count;
      }
      gathered_layer = std::max(gathered_layer, layer);
    }
    m.activations = in_flight[static_cast<size_t>(stage)] * visit + at_work;
    // With one micro-batch and gradients freed after each step, they grow while backward frees activations.
    if (!s.persistent_gradients && p.ga() == 1) m.gradients = std::max(0.0, m.gradients - m.activations);
    m.gradients += m.buckets;
    // Gathered weights stand beside the shards they were gathered from, and reduced gradients beside the whole ones.
    if (p.sharding == Sharding::zero3 && reshards(p)) m.workspace += gathered_layer;
    // Eager backward holds the gradients of an MLP's inner tensors: the product, both halves of the gate, their join.
    if (s.eager_elementwise) m.workspace += (n.mlp == Mlp::swiglu ? 4 : 1) * 2 * inner_elements(n, t, p);
    if (stage == p.pp - 1) {
      if (n.next_token)
        for (const LayerKind& kind : next_token_kinds(n))
          m.activations += n.next_token->depth * layer_activation_bytes(n, kind, t, p, s.eager_elementwise);
      m.workspace += head_bytes(n, t, p, s);
    }
    m.workspace += s.workspace.value();
    stages.push_back(m);
  }
  return stages;
}

}  // namespace tw
