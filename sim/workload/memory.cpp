#include "workload/memory.hpp"

#include <algorithm>

#include "workload/operations.hpp"

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
  double bytes = 2 * 2 * shard * h;                                               // inputs of the two norms
  bytes += kept(1) * shard * h;                                                   // QKV input
  bytes += 2 * tokens * (q + 2 * kv);                                             // queries, keys, values
  bytes += 2 * tokens * q + 4 * tokens * q / static_cast<double>(n.head_size());  // attention output and statistics
  if (kept(2) > 2 || !t.lora) bytes += (input < 2 ? input : 0) * tokens * q;      // FP8 copy of the projection's input
  bytes += kept(3) * shard * h;                                                   // MLP input
  bytes += 2 * expert_tokens * up;                                                // before the activation
  bytes += kept(4) * expert_tokens * down;                                        // after it
  if (n.dropout > 0) bytes += 2 * shard * h;                                      // masks
  if (eager && n.mlp == Mlp::swiglu) bytes += 2 * expert_tokens * down;
  if (eager) bytes += 2 * 2 * tokens * (q - kv);
  return bytes;
}

std::vector<StageMemory> memory_of_stages(const Architecture& n, const Training& t, const Plan& p, const Software& s,
                                          const std::vector<int>& layers, const std::vector<int>& in_flight) {
  const double experts =
      n.mlp_matrices() * static_cast<double>(n.hidden) * static_cast<double>(n.ffn) * std::max(1, n.experts);
  const double layer_here = (layer_parameters(n) - experts) / p.tp + experts / p.tp / (n.experts > 0 ? p.ep : 1);
  const double table = static_cast<double>(n.vocabulary) * static_cast<double>(n.hidden) / p.tp;
  const double shards = static_cast<double>(p.dp) * p.cp;
  const double weight_shards = p.sharding == Sharding::zero3 ? shards : 1;
  const double gradient_shards = p.sharding == Sharding::zero2 || p.sharding == Sharding::zero3 ? shards : 1;
  const double state_shards = p.sharding == Sharding::none ? 1 : shards;
  const double per_visit = layer_activation_bytes(n, t, p, s.eager_elementwise);
  const double tokens = local_tokens(t, p);
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < p.pp; ++stage) {
    int own_layers = 0, most_layers = 0;
    for (int v = 0; v < p.vp; ++v) {
      const int count = layers[static_cast<size_t>(v * p.pp + stage)];
      own_layers += count;
      most_layers = std::max(most_layers, count);
    }
    double parameters = own_layers * layer_here, trained = own_layers * trained_layer_parameters(n, t, p);
    const int tables = (stage == 0 ? 1 : 0) + (stage == p.pp - 1 && !(n.tied_embeddings && p.pp == 1) ? 1 : 0);
    parameters += tables * table;
    trained += tables * trained_embedding_parameters(n, t, p);
    StageMemory m;
    // Frozen FP8 weights are held in FP8 alone, in both layouts; trained ones in BF16 beside the master copy.
    m.weights = (t.lora && is_scaled(t.precision)
                     ? own_layers * layer_here * s.frozen_fp8_bytes_per_parameter + tables * table * 2
                     : parameters * 2) /
                weight_shards;
    m.gradients = trained * s.gradient_bytes_per_parameter / gradient_shards;
    m.optimizer = trained * s.optimizer_state_bytes_per_parameter / state_shards;
    m.activations = in_flight[static_cast<size_t>(stage)] * most_layers * per_visit;
    // With one micro-batch and gradients freed after each step, they grow while backward frees activations.
    if (!s.persistent_gradients && p.ga() == 1) m.gradients = std::max(0.0, m.gradients - m.activations);
    if (p.sharding == Sharding::none && shards > 1)
      m.gradients += s.bucket_copies * trained * s.gradient_bytes_per_parameter;
    // Gathered weights stand beside the shards they were gathered from, and reduced gradients beside the whole ones.
    if (p.sharding == Sharding::zero3 && shards > 1) m.workspace += (s.gathered_layers + 1 / shards) * layer_here * 2;
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
