#include "workload/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/codec.hpp"
#include "core/text.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

// Divisors of n, nearest to `wanted` first, at most three, in rising order.
std::string nearest_divisors(long n, long wanted) {
  std::vector<long> divisors;
  for (long d = 1; d * d <= n; ++d)
    if (n % d == 0) {
      divisors.push_back(d);
      if (d != n / d) divisors.push_back(n / d);
    }
  std::sort(divisors.begin(), divisors.end(), [&](long a, long b) {
    return std::abs(a - wanted) != std::abs(b - wanted) ? std::abs(a - wanted) < std::abs(b - wanted) : a < b;
  });
  divisors.resize(std::min<size_t>(3, divisors.size()));
  std::sort(divisors.begin(), divisors.end());
  std::vector<std::string> texts;
  for (const long d : divisors) texts.push_back(std::to_string(d));
  return "nearest valid: " + one_of(texts);
}

void must_divide(long whole, const char* whole_name, long part, const ReadContext& at, const char* key) {
  if (whole % part == 0) return;
  at.at(key).fault(fmt::format("{} = {} does not divide {} ({})", key, part, whole_name, whole),
                   nearest_divisors(whole, part));
}

}  // namespace

void complete_plan(Plan& plan, int gpus_per_node, const ReadContext& at) {
  const long gpus = static_cast<long>(plan.nodes) * gpus_per_node;
  const long model = static_cast<long>(plan.tp) * plan.pp * plan.cp;
  if (model > gpus || gpus % model != 0) {
    const long stages = std::max<long>(1, static_cast<long>(plan.pp) * plan.cp);
    at.fault(fmt::format("tp x pp x cp = {} x {} x {} = {} does not divide the {} GPUs of {} node{}", plan.tp, plan.pp,
                         plan.cp, model, gpus, plan.nodes, plan.nodes == 1 ? "" : "s"),
             model > gpus && gpus % stages == 0 ? fmt::format("at most {} GPUs a replica; with this pp and cp, tp {}",
                                                              gpus, nearest_divisors(gpus / stages, plan.tp))
                                                : nearest_divisors(gpus, model));
    if (plan.dp == 0) plan.dp = 1;
    return;
  }
  const auto dp = static_cast<int>(gpus / model);
  if (plan.dp != 0 && plan.dp != dp)
    at.at("dp").fault(fmt::format("dp = {} but {} GPUs / (tp x pp x cp = {}) leave {}", plan.dp, gpus, model, dp),
                      fmt::format("leave dp out, or write {}", dp));
  plan.dp = dp;
  const long per_step = static_cast<long>(plan.mbs) * plan.dp;
  if (plan.gbs % per_step != 0) {
    const long below = plan.gbs / per_step * per_step, above = below + per_step;
    at.at("gbs").fault(
        fmt::format("gbs = {} is not a multiple of mbs x dp = {} x {}", plan.gbs, plan.mbs, plan.dp),
        below > 0 ? fmt::format("nearest valid: {} or {}", below, above) : fmt::format("nearest valid: {}", above));
  }
  if (plan.vp > 1 && plan.pp == 1)
    at.at("vp").fault(fmt::format("vp = {} needs pipeline parallelism", plan.vp), "pp above 1, or vp = 1");
  if (plan.shard_group > 0 && (plan.dp * plan.cp) % plan.shard_group != 0)
    at.at("shard_group")
        .fault(fmt::format("shard_group = {} does not divide the {} data-parallel ranks", plan.shard_group,
                           plan.dp * plan.cp),
               nearest_divisors(static_cast<long>(plan.dp) * plan.cp, plan.shard_group));
  if (plan.vp > 1 && plan.schedule == Schedule::one_f_one_b && plan.gbs % per_step == 0 &&
      (plan.gbs / per_step) % plan.pp != 0)
    at.at("gbs").fault(
        fmt::format("interleaved 1F1B needs micro-batches ({}) in multiples of pp = {}", plan.gbs / per_step, plan.pp),
        fmt::format("gbs in multiples of {}", per_step * plan.pp));
}

namespace {

void check_layout(const Plan& plan, const Architecture& network, const ReadContext& at) {
  const long chunks = static_cast<long>(plan.pp) * plan.vp;
  if (plan.layout.empty()) {
    // A chunk may hold no layer only where embedding and head count as one each (see layers_of_chunks).
    if (chunks > network.layers && !even_chunks(network.layers, static_cast<int>(chunks), next_token_layers(network)))
      at.at("pp").fault(fmt::format("pp x vp = {} x {} exceeds the {} layers", plan.pp, plan.vp, network.layers),
                        fmt::format("pp x vp at most {}", network.layers));
    return;
  }
  std::vector<int> layers;
  std::string letters;
  const std::string wrong = parse_layout(plan.layout, layers, &letters);
  const ReadContext here = at.at("layout");
  if (!wrong.empty())
    return here.fault("layout: " + wrong, "chunks of V, E, t, m, L separated by |, as Et*4|(t*4|)*14tmL");
  if (static_cast<long>(layers.size()) != chunks)
    return here.fault(fmt::format("the layout has {} chunks, pp x vp = {} x {}", layers.size(), plan.pp, plan.vp),
                      fmt::format("{} chunks", chunks));
  long sum = 0;
  for (const int n : layers) sum += n;
  if (sum != network.layers)
    here.fault(fmt::format("the layout has {} layers, the network {}", sum, network.layers),
               fmt::format("{} layers", network.layers));
  const auto further = std::count(letters.begin(), letters.end(), 'm');
  if (further > 0 && further != next_token_layers(network))
    here.fault(
        fmt::format("the layout has {} next-token layers (m), the network {}", further, next_token_layers(network)),
        network.next_token ? "as many as its depth" : "no m");
  if (network.towers.empty() && letters.find('V') != std::string::npos)
    here.fault("the layout has towers (V), the network none", "no V");
}

void check_experts(const Plan& plan, const Architecture& network, int gpus_per_node, const ReadContext& at) {
  if (network.experts == 0) {
    if (plan.ep > 1) at.at("ep").fault(fmt::format("ep = {} but the network has no experts", plan.ep), "ep = 1");
    if (plan.etp > 1) at.at("etp").fault(fmt::format("etp = {} but the network has no experts", plan.etp), "etp = 1");
    return;
  }
  const long ranks = static_cast<long>(plan.tp) * plan.cp * plan.dp;
  must_divide(network.experts, "the experts", plan.ep, at, "ep");
  if (plan.etp > 0) must_divide(network.expert_size(), "the experts' inner size", plan.etp, at, "etp");
  if (plan.etp > 0) must_divide(plan.tp, "tp", plan.etp, at, "etp");
  // What etp does is said where it does not divide tp, what ep does where it does not divide the experts, and of ranks
  // that do not divide the GPUs there are none to share out.
  const long etp = plan.expert_tp();
  const bool known = ranks * plan.pp == plan.gpus(gpus_per_node) && network.experts % plan.ep == 0;
  if (known && plan.tp % etp == 0 && ranks % (plan.ep * etp) != 0)
    at.at("ep").fault(fmt::format("ep x etp = {} x {} does not divide the tp x cp x dp = {} ranks of a stage", plan.ep,
                                  plan.expert_tp(), ranks),
                      nearest_divisors(std::gcd<long, long>(ranks / etp, network.experts), plan.ep));
  if (plan.tp > 1 && plan.expert_tp() < plan.tp && !plan.sequence_parallel)
    at.at("sequence_parallel")
        .fault(fmt::format("experts over tp ranks (etp = {} below tp = {}) take each rank's own tokens",
                           plan.expert_tp(), plan.tp),
               "sequence_parallel = true");
}

// Towers are cut over the same tensor-parallel ranks.
void check_tower_ranks(const Plan& plan, const Architecture& network, const ReadContext& at) {
  for (const Tower& w : network.towers) {
    must_divide(w.heads, fmt::format("the heads of tower {}", printable(w.name)).c_str(), plan.tp, at, "tp");
    must_divide(w.ffn, fmt::format("the MLP size of tower {}", printable(w.name)).c_str(), plan.tp, at, "tp");
    for (const long width : w.projector)
      must_divide(width, fmt::format("a projector's width of tower {}", printable(w.name)).c_str(), plan.tp, at, "tp");
  }
}

}  // namespace

void check_plan(const Plan& plan, const Architecture& network, const Training& training, int gpus_per_node,
                const ReadContext& at) {
  const auto kinds = layer_kinds(network);
  const auto some = [&](auto test) { return std::any_of(kinds.begin(), kinds.end(), test); };
  const bool attends = some([](const LayerKind& k) { return k.mixer == Mixer::attention || k.mixer == Mixer::window; });
  if (attends) must_divide(network.heads, "the attention heads", plan.tp, at, "tp");
  if (attends && network.kv() % plan.tp != 0 && plan.tp % network.kv() != 0)
    at.at("tp").fault(fmt::format("tp = {} and {} key/value heads: neither divides the other", plan.tp, network.kv()),
                      nearest_divisors(network.kv(), plan.tp));
  if (network.mamba) must_divide(network.mamba->heads, "the Mamba heads", plan.tp, at, "tp");
  if (network.delta) must_divide(network.delta->key_heads, "the delta rule's key heads", plan.tp, at, "tp");
  // Mixers whose state walks through the whole sequence exchange their heads over contexts, whatever attention does.
  const auto of_rank = [&](int heads, const char* what) {
    if (heads / plan.tp > 0 && plan.cp > 1) must_divide(heads / plan.tp, what, plan.cp, at, "cp");
  };
  if (network.mamba) of_rank(network.mamba->heads, "the Mamba heads of a rank");
  if (network.delta) of_rank(network.delta->key_heads, "the delta rule's key heads of a rank");
  if (some([](const LayerKind& k) { return k.feed == Feed::mlp; }))
    must_divide(network.ffn, "the MLP size", plan.tp, at, "tp");
  if (network.shared_ffn > 0) must_divide(network.shared_ffn, "the shared experts' size", plan.tp, at, "tp");
  if (network.experts > 0 && plan.etp == 0)
    must_divide(network.expert_size(), "the experts' inner size", plan.expert_tp(), at, "tp");
  // Context parallelism cuts the sequence into 2 cp pieces so that causal work is even.
  if (training.sequence % (2L * plan.cp) != 0 && plan.cp > 1)
    at.at("cp").fault(fmt::format("cp = {} needs a sequence ({}) divisible by 2 x cp", plan.cp, training.sequence),
                      nearest_divisors(training.sequence / 2, plan.cp));
  if (plan.context == ContextExchange::heads && attends && network.heads / plan.tp % plan.cp != 0)
    at.at("cp").fault(fmt::format("cp = {} does not divide the {} heads of a rank, which \"heads\" exchanges", plan.cp,
                                  network.heads / plan.tp),
                      nearest_divisors(network.heads / plan.tp, plan.cp));
  if (plan.sequence_parallel && (training.sequence / plan.cp) % plan.tp != 0)
    at.at("tp").fault(fmt::format("sequence parallelism needs the {} tokens of a rank divisible by tp = {}",
                                  training.sequence / plan.cp, plan.tp),
                      nearest_divisors(training.sequence / plan.cp, plan.tp));
  if (plan.shard_group > 0 && plan.sharding == Sharding::none)
    at.at("shard_group").fault("shard_group without sharding", "sharding = zero1, zero2 or zero3");
  check_layout(plan, network, at);
  check_experts(plan, network, gpus_per_node, at);
  check_tower_ranks(plan, network, at);
}

std::vector<LayerKind> layers_as_trained(const Architecture& n, const Training& t, const std::vector<int>& chunks) {
  std::vector<LayerKind> kinds = layer_kinds(n);
  if (t.recompute == Recompute::none || t.recompute_layers == 0) return kinds;
  size_t first = 0;
  for (const int count : chunks) {
    for (size_t l = first + static_cast<size_t>(t.recompute_layers); l < first + static_cast<size_t>(count); ++l)
      kinds.at(l).kept = true;
    first += static_cast<size_t>(count);
  }
  return kinds;
}

bool recomputes(const Training& t, Module module) {
  if (t.recompute == Recompute::full) return true;
  if (t.recompute != Recompute::selective) return false;
  if (t.recompute_modules.empty()) return module == Module::attention;
  return std::find(t.recompute_modules.begin(), t.recompute_modules.end(), module) != t.recompute_modules.end();
}

std::vector<std::pair<std::string, Schedule>> Choices<Schedule>::table() {
  return {{"gpipe", Schedule::gpipe},      {"1f1b", Schedule::one_f_one_b},
          {"zb_h1", Schedule::zb_h1},      {"interleaved_zero_bubble", Schedule::interleaved_zero_bubble},
          {"zbv", Schedule::zbv},          {"dualpipev", Schedule::dualpipev},
          {"dualpipe", Schedule::dualpipe}};
}

void Plan::describe(Description<Plan>& d) {
  d.object("plan", "The parallel plan.");
  d.required("nodes", &Plan::nodes, "nodes that train", between(1, 1e6));
  d.optional("tp", &Plan::tp, "tensor parallelism", between(1, 1e6));
  d.optional("pp", &Plan::pp, "pipeline parallelism", between(1, 1e6));
  d.optional("vp", &Plan::vp, "virtual pipeline chunks a stage (interleaved schedule)", between(1, 1e6));
  d.optional("cp", &Plan::cp, "context parallelism", between(1, 1e6));
  d.optional("ep", &Plan::ep, "expert parallelism", between(1, 1e6));
  d.optional("etp", &Plan::etp, "tensor parallelism of an expert; 0: tp where ep divides dp x cp, else 1",
             between(0, 1e6));
  d.optional("dp", &Plan::dp, "data parallelism; 0: what the other sizes leave", between(0, 1e6));
  d.optional("mbs", &Plan::mbs, "micro-batch size of a replica, in samples", between(1, 1e9));
  d.required("gbs", &Plan::gbs, "global batch size, in samples", between(1, 1e9));
  d.optional("sequence_parallel", &Plan::sequence_parallel, "shard norms and residuals over the TP ranks");
  d.optional("schedule", &Plan::schedule, "pipeline schedule (interleaved when vp > 1)");
  d.optional("sharding", &Plan::sharding, "what data-parallel ranks shard: optimizer (zero1), gradients, weights");
  d.optional("shard_group", &Plan::shard_group,
             "ranks that share states, gradients or weights, replicated beyond (hybrid sharding); 0: all of dp x cp",
             between(0, 1e6));
  d.optional("context", &Plan::context,
             "what context-parallel ranks exchange: keys and values round a ring or gathered, or heads (Ulysses)");
  d.optional(
      "layout", &Plan::layout,
      "layers of each pipeline chunk, in the order data visits them, such as \"Et*4|(t*4|)*14tmL\" or \"5|6|5\"; "
      "E: embedding, t: a layer, m: next-token layers, L: loss, V: towers; absent: even");
  d.optional("reshard", &Plan::reshard,
             "zero3: whole weights are freed after a forward and gathered again for its backward");
  d.optional("evaluation_nodes", &Plan::evaluation_nodes, "further nodes that only evaluate", between(0, 1e6));
}

void Lora::describe(Description<Lora>& d) {
  d.object("lora", "Low-rank adapters on a frozen base.");
  d.optional("rank", &Lora::rank, "rank of the adapters", between(1, 1e6));
  d.optional("targets", &Lora::targets, "adapted linear layers of a layer, in the order QKV, projection, MLP",
             between(1, 4));
  d.optional("dropout", &Lora::dropout, "dropout probability on the adapters' input", between(0, 1));
}

void Optimizer::describe(Description<Optimizer>& d) {
  d.object("optimizer", "What the optimizer keeps of each trained parameter.");
  d.optional("update", &Optimizer::update, "rule: AdamW with two moments, or Muon with one (two for tables)");
  d.optional("master", &Optimizer::master, "precision of its own copy of the weights; none: it updates the weights");
  d.optional("moments", &Optimizer::moments, "precision of each moment");
  d.optional("gradients", &Optimizer::gradients, "precision in which gradients are kept and exchanged");
}

std::vector<std::pair<std::string, OffloadUpdate>> Choices<OffloadUpdate>::table() {
  return {{"host", OffloadUpdate::host}, {"device", OffloadUpdate::device}};
}

void Training::describe(Description<Training>& d) {
  d.object("training", "How the model is trained.");
  d.optional("precision", &Training::precision,
             "precision of the linear layers; an accelerator's \"precisions\" add to those of the field");
  d.required("sequence", &Training::sequence, "tokens of a sample", between(1, 1e9));
  d.optional("lora", &Training::lora, "low-rank adaptation; absent: all weights are trained");
  d.optional("recompute", &Training::recompute,
             "activation recomputation: none, modules (selective), "
             "all but every other product (alternate), whole layers (full)");
  d.optional("recompute_modules", &Training::recompute_modules,
             "with selective: what is computed again; absent: attention");
  d.optional("recompute_layers", &Training::recompute_layers,
             "layers of each chunk, its first ones, that recomputation is for; 0: all", between(0, 1e5));
  d.optional("optimizer", &Training::optimizer, "the optimizer's states; absent: as the release keeps them");
  d.optional("loss_chunks", &Training::loss_chunks,
             "parts of the tokens that head and loss take one after the other, so that logits of one part exist at a "
             "time",
             between(1, 1024));
  d.optional(
      "offload_layers", &Training::offload_layers,
      "layers of each chunk, its first ones, whose activations wait in the host's memory between forward and backward",
      between(0, 100000));
  d.optional("offload_states", &Training::offload_states,
             "share of the optimizer's states that waits in the host's memory", between(0, 1));
  d.optional("offload_update", &Training::offload_update,
             "who updates them: the host's processors (gradients go, weights come), or the device (they come and go in "
             "chunks)");
  d.optional("offload_overlap", &Training::offload_overlap,
             "their copies run beside the update of others; false: copies, then the update, then copies");
  d.optional("frozen_towers", &Training::frozen_towers,
             "towers, by name, that are not trained: they run forward alone, and their projectors are trained");
  d.optional("recompute_towers", &Training::recompute_towers,
             "towers are recomputed as the network's layers are; else they keep what they need");
  d.optional(
      "expert_imbalance", &Training::expert_imbalance,
      "tokens of the rank with the busiest experts over the mean: 1 where a recipe drops tokens or forces balance, "
      "about 1.2 for Grok-1's untrained router, one expert a rank (reference/suites/more.json)",
      between(1, 1e3));
}

}  // namespace tw
