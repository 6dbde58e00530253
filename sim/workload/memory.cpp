#include "workload/memory.hpp"

#include <algorithm>

#include "workload/operations.hpp"
#include "workload/parameters.hpp"

namespace tw {

std::map<std::string, double> StageMemory::parts() const {
  return {{"weights", weights},
          {"gradients", gradients},
          {"optimizer", optimizer},
          {"activations", activations},
          {"workspace", workspace}};
}

double layer_activation_bytes(const Architecture& n, const Training& t, const Plan& p, bool eager) {
  const double tokens = local_tokens(t, p), tp = p.tp;
  const double shard = p.sequence_parallel ? tokens / tp : tokens;
  const auto h = static_cast<double>(n.hidden);
  const double q = static_cast<double>(n.query_width()) / tp,
               kv = static_cast<double>(n.kv_width()) / std::min<double>(tp, n.kv());
  const double up = (n.mlp == Mlp::swiglu ? 2 : 1) * static_cast<double>(n.ffn) / tp,
               down = static_cast<double>(n.ffn) / tp;
  const double expert_tokens = n.experts > 0 ? tokens * n.experts_per_token : tokens;
  if (t.recompute == Recompute::full) return 2 * shard * h;  // the layer's input alone
  // Linear inputs are kept for the weight gradients: in FP8 where the layer runs in FP8, not at all where the base is
  // frozen (adapters keep the inputs of the layers they adapt).
  const double input = is_scaled(t.precision) ? 1 : 2;
  const auto kept = [&](int target) { return !t.lora || t.lora->targets >= target ? (t.lora ? 2.0 : input) : 0.0; };
  // Recomputed attention keeps its inputs; its output stays where the projection's weight gradient wants it in BF16.
  const bool again = t.recompute == Recompute::selective;
  const bool output = !again || kept(2) == 2;
  double bytes = 2 * 2 * shard * h;                                          // inputs of the two norms
  bytes += kept(1) * shard * h;                                              // QKV input
  bytes += 2 * tokens * (q + 2 * kv);                                        // queries, keys, values
  if (output) bytes += 2 * tokens * q;                                       // attention output
  if (!again) bytes += 4 * tokens * q / static_cast<double>(n.head_size());  // and statistics
  if (!t.lora && input < 2) bytes += input * tokens * q;                     // FP8 copy of the projection's input
  bytes += kept(3) * shard * h;                                              // MLP input
  bytes += 2 * expert_tokens * up;                                           // before the activation
  bytes += kept(4) * expert_tokens * down;                                   // after it
  if (n.dropout > 0) bytes += 2 * shard * h;                                 // masks
  if (eager && n.mlp == Mlp::swiglu) bytes += 2 * expert_tokens * down;
  if (eager && !again) bytes += 2 * 2 * tokens * (q - kv);
  return bytes;
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
  if (p.sharding == Sharding::none && shards > 1) m.buckets += s.bucket_copies * gradients;
  m.optimizer += g.held * s.optimizer_state_bytes_per_parameter / (p.sharding == Sharding::none ? 1 : shards);
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
  const double per_visit = layer_activation_bytes(n, t, p, s.eager_elementwise);
  // What recomputation frees comes back for the layer at work.
  const double at_work = layer_activation_bytes(n, kept, p, s.eager_elementwise) - per_visit;
  const double tokens = local_tokens(t, p);
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < p.pp; ++stage) {
    int most_layers = 0;
    StageMemory m;
    double gathered_layer = 0;  // the largest of the stage
    for (int v = 0; v < p.vp; ++v) {
      const int chunk = v * p.pp + stage, count = layers[static_cast<size_t>(chunk)];
      most_layers = std::max(most_layers, count);
      double layer = 0;
      for (const ParameterGroup& g : groups) {
        if (g.chunk != chunk) continue;
        add_parameters(m, g, p, s);
        if (g.shards > 1 && g.kind != ParameterKind::embedding && count > 0)
          layer += (s.gathered_layers + 1.0 / g.shards) * g.held * g.gather_bytes / count;
      }
      gathered_layer = std::max(gathered_layer, layer);
    }
    m.activations = in_flight[static_cast<size_t>(stage)] * most_layers * per_visit + at_work;
    // With one micro-batch and gradients freed after each step, they grow while backward frees activations.
    if (!s.persistent_gradients && p.ga() == 1) m.gradients = std::max(0.0, m.gradients - m.activations);
    m.gradients += m.buckets;
    // Gathered weights stand beside the shards they were gathered from, and reduced gradients beside the whole ones.
    if (p.sharding == Sharding::zero3 && reshards(p)) m.workspace += gathered_layer;
    // Eager backward holds the gradients of an MLP's inner tensors: the product, both halves of the gate, their join.
    if (s.eager_elementwise)
      m.workspace += (n.mlp == Mlp::swiglu ? 4 : 1) * 2 * tokens * static_cast<double>(n.ffn) / p.tp;
    // FP32 logits and their gradient live on the last stage; one layer's temporaries anywhere.
    if (stage == p.pp - 1) m.workspace += tokens * static_cast<double>(n.vocabulary) / p.tp * (2 + 4);
    m.workspace += s.workspace.value();
    stages.push_back(m);
  }
  return stages;
}

}  // namespace tw
