#include "workload/layer_builder.hpp"
#include "workload/operations.hpp"
#include "workload/pattern.hpp"
#include "workload/tower.hpp"

namespace tw {
namespace {

struct TokenFlops {
  double linear = 0;  // multiply-adds with weights, forward
  double scores = 0;  // and without: scores and their use, scans
};

// The router, norms and look-ups are not counted (Megatron-LM, num_floating_point_operations).
void add_layer(TokenFlops& sum, const Architecture& n, const LayerKind& kind, double sequence, bool causal_half) {
  const auto h = static_cast<double>(n.hidden);
  if (kind.mixer == Mixer::mamba) {
    const auto inner = static_cast<double>(n.mamba->inner()), state = static_cast<double>(n.mamba->state);
    sum.linear += h * (3 * inner + static_cast<double>(n.mamba->maps()) + n.mamba->heads);
    sum.scores += mamba_scan_flops / 2 * inner * state;
  } else if (kind.mixer == Mixer::delta) {
    const DeltaNet& d = *n.delta;
    sum.linear += h * static_cast<double>(d.projected() + d.values());
    sum.scores += static_cast<double>(d.convolved() * d.convolution) + delta_rule_work(d);
  } else if (kind.mixer != Mixer::none) {
    const auto q = static_cast<double>(n.query_width()), out = static_cast<double>(n.output_width());
    if (n.mla) {
      const auto rq = static_cast<double>(n.mla->query_rank), rkv = static_cast<double>(n.mla->kv_rank);
      sum.linear += rq > 0 ? rq * (h + q) : h * q;
      sum.linear += h * (rkv + static_cast<double>(n.mla->rope)) +
                    rkv * n.heads * static_cast<double>(n.mla->nope + n.mla->value) + out * h;
    } else {
      sum.linear += h * (q + (n.attention_gate ? 2 : 1) * out + 2 * static_cast<double>(n.kv_width()));
    }
    sum.scores += mean_keys(n, kind.mixer, sequence, causal_half) * (q + out);
  }
  if (kind.feed == Feed::mlp) sum.linear += n.mlp_matrices() * h * static_cast<double>(n.ffn);
  if (kind.feed != Feed::experts) return;
  const auto width = static_cast<double>(n.expert_width());
  sum.linear += n.experts_per_token * n.mlp_matrices() * width * static_cast<double>(n.expert_size());
  sum.linear += n.mlp_matrices() * h * static_cast<double>(n.shared_ffn);
  if (n.expert_latent > 0) sum.linear += 2 * h * width;
}

TokenFlops network_flops(const Architecture& n, double sequence, bool causal_half) {
  const auto h = static_cast<double>(n.hidden);
  const double head = h * static_cast<double>(n.vocabulary);
  TokenFlops sum;
  sum.linear += head;
  for (const auto& [kind, count] : count_kinds(layer_kinds(n), 0, n.layers)) {
    TokenFlops one;
    add_layer(one, n, kind, sequence, causal_half);
    sum.linear += count * one.linear;
    sum.scores += count * one.scores;
  }
  for (int i = 0; n.next_token && i < n.next_token->depth; ++i) {
    sum.linear += 2 * h * h + head;
    for (const LayerKind& kind : next_token_kinds(n)) add_layer(sum, n, kind, sequence, causal_half);
  }
  return sum;
}

}  // namespace

double layer_flops(const Architecture& n, const LayerKind& kind, double sequence) {
  TokenFlops one;
  add_layer(one, n, kind, sequence, true);
  return 2 * (one.linear + one.scores);
}

TowerFlops tower_flops(const Architecture& n, const Tower& w) {
  const Architecture own = tower_network(w);
  TowerFlops f;
  TokenFlops layers;
  for (const auto& [kind, count] : count_kinds(layer_kinds(own), 0, w.layers)) {
    TokenFlops one;
    add_layer(one, own, kind, static_cast<double>(w.tokens), true);
    layers.linear += count * one.linear, layers.scores += count * one.scores;
  }
  const auto tokens = static_cast<double>(w.tokens);
  const double patches = tokens - w.class_tokens;
  f.linear = w.items * (tokens * layers.linear + patches * static_cast<double>(w.patch * w.hidden));
  f.scores = w.items * tokens * layers.scores;
  const std::vector<double> widths = projector_widths(w, n);
  for (size_t i = 1; i < widths.size(); ++i)
    f.projector += w.items * w.projectors * static_cast<double>(w.made()) * widths[i - 1] * widths[i];
  return f;
}

double model_flops_per_sample(const Architecture& n, const Training& t, bool causal_half) {
  const auto tokens = static_cast<double>(t.sequence);
  const TokenFlops f = network_flops(n, tokens, causal_half);
  // Backward: input gradients as much as forward, weight gradients as much again; scores have no weights but two
  // gradients each.
  double sum = 2 * tokens * ((t.lora ? 2 : 3) * f.linear + 3 * f.scores);
  // Towers that are frozen have no backward pass: nothing before them is trained.
  for (const Tower& w : n.towers) {
    const TowerFlops one = tower_flops(n, w);
    sum += 2 * ((trains_tower(w, t) ? 3 : 1) * (one.linear + one.scores) + (t.lora ? 1 : 3) * one.projector);
  }
  return sum;
}

}  // namespace tw
