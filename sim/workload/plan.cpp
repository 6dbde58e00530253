#include "workload/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/codec.hpp"
#include "core/text.hpp"

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
  if (part > 0 && whole % part == 0) return;
  at.at(key).fault(fmt::format("{} = {} does not divide {} ({})", key, part, whole_name, whole),
                   nearest_divisors(whole, part));
}

}  // namespace

void complete_plan(Plan& plan, int gpus_per_node, const ReadContext& at) {
  const long gpus = static_cast<long>(plan.nodes) * gpus_per_node;
  const long model = static_cast<long>(plan.tp) * plan.pp * plan.cp;
  if (model > gpus || gpus % model != 0) {
    const long best = std::max<long>(1, gpus / std::max<long>(1, static_cast<long>(plan.pp) * plan.cp));
    at.fault(fmt::format("tp x pp x cp = {} x {} x {} = {} does not divide the {} GPUs of {} nodes", plan.tp, plan.pp,
                         plan.cp, model, gpus, plan.nodes),
             model > gpus ? fmt::format("at most {} GPUs a replica; with this pp and cp, tp {}", gpus,
                                        nearest_divisors(best, plan.tp))
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
  if (plan.gbs % per_step != 0 || plan.gbs < per_step) {
    const long below = plan.gbs / per_step * per_step, above = below + per_step;
    at.at("gbs").fault(
        fmt::format("gbs = {} is not a multiple of mbs x dp = {} x {}", plan.gbs, plan.mbs, plan.dp),
        below > 0 ? fmt::format("nearest valid: {} or {}", below, above) : fmt::format("nearest valid: {}", above));
  }
  if (plan.vp > 1 && plan.pp == 1)
    at.at("vp").fault(fmt::format("vp = {} needs pipeline parallelism", plan.vp), "pp above 1, or vp = 1");
  if (plan.vp > 1 && plan.schedule == Schedule::gpipe)
    at.at("schedule").fault("gpipe has no interleaved form", "1f1b, or vp = 1");
  if (plan.vp > 1 && plan.gbs % per_step == 0 && (plan.gbs / per_step) % plan.pp != 0)
    at.at("gbs").fault(
        fmt::format("interleaved 1F1B needs micro-batches ({}) in multiples of pp = {}", plan.gbs / per_step, plan.pp),
        fmt::format("gbs in multiples of {}", per_step * plan.pp));
}

void check_plan(const Plan& plan, const Architecture& network, const Training& training, int, const ReadContext& at) {
  must_divide(network.heads, "the attention heads", plan.tp, at, "tp");
  if (network.kv() % plan.tp != 0 && plan.tp % network.kv() != 0)
    at.at("tp").fault(fmt::format("tp = {} and {} key/value heads: neither divides the other", plan.tp, network.kv()),
                      nearest_divisors(network.kv(), plan.tp));
  must_divide(network.ffn, "the MLP size", plan.tp, at, "tp");
  // Context parallelism cuts the sequence into 2 cp pieces so that causal work is even.
  if (training.sequence % (2L * plan.cp) != 0 && plan.cp > 1)
    at.at("cp").fault(fmt::format("cp = {} needs a sequence ({}) divisible by 2 x cp", plan.cp, training.sequence),
                      nearest_divisors(training.sequence / 2, plan.cp));
  if (plan.sequence_parallel && (training.sequence / plan.cp) % plan.tp != 0)
    at.at("tp").fault(fmt::format("sequence parallelism needs the {} tokens of a rank divisible by tp = {}",
                                  training.sequence / plan.cp, plan.tp),
                      nearest_divisors(training.sequence / plan.cp, plan.tp));
  const long chunks = static_cast<long>(plan.pp) * plan.vp;
  // A chunk may hold no layer only where embedding and head count as one each (see layers_of_chunks).
  if (chunks > network.layers && chunks != network.layers + 2L)
    at.at("pp").fault(fmt::format("pp x vp = {} x {} exceeds the {} layers", plan.pp, plan.vp, network.layers),
                      fmt::format("pp x vp at most {}", network.layers));
  if (network.experts > 0 && (network.experts_per_token < 1 || network.experts_per_token > network.experts))
    at.fault(fmt::format("experts_per_token = {} of {} experts", network.experts_per_token, network.experts),
             fmt::format("allowed: 1 to {}", network.experts));
  if (network.experts > 0)
    must_divide(network.experts, "the experts", plan.ep, at, "ep");
  else if (plan.ep > 1)
    at.at("ep").fault(fmt::format("ep = {} but the network has no experts", plan.ep), "ep = 1");
  if (plan.ep > 1 && plan.dp % plan.ep != 0)
    at.at("ep").fault(fmt::format("ep = {} does not divide dp = {}", plan.ep, plan.dp),
                      nearest_divisors(plan.dp, plan.ep));
}

std::vector<std::pair<std::string, Schedule>> Choices<Schedule>::table() {
  return {{"gpipe", Schedule::gpipe}, {"1f1b", Schedule::one_f_one_b}};
}

std::vector<std::pair<std::string, Recompute>> Choices<Recompute>::table() {
  return {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
}

std::vector<std::pair<std::string, Sharding>> Choices<Sharding>::table() {
  return {{"none", Sharding::none}, {"zero1", Sharding::zero1}, {"zero2", Sharding::zero2}, {"zero3", Sharding::zero3}};
}

void Plan::describe(Description<Plan>& d) {
  d.object("plan", "The parallel plan.");
  d.required("nodes", &Plan::nodes, "nodes that train", between(1, 1e6));
  d.optional("tp", &Plan::tp, "tensor parallelism", between(1, 1e6));
  d.optional("pp", &Plan::pp, "pipeline parallelism", between(1, 1e6));
  d.optional("vp", &Plan::vp, "virtual pipeline chunks a stage (interleaved schedule)", between(1, 1e6));
  d.optional("cp", &Plan::cp, "context parallelism", between(1, 1e6));
  d.optional("ep", &Plan::ep, "expert parallelism", between(1, 1e6));
  d.optional("dp", &Plan::dp, "data parallelism; 0: what the other sizes leave", between(0, 1e6));
  d.optional("mbs", &Plan::mbs, "micro-batch size of a replica, in samples", between(1, 1e9));
  d.required("gbs", &Plan::gbs, "global batch size, in samples", between(1, 1e9));
  d.optional("sequence_parallel", &Plan::sequence_parallel, "shard norms and residuals over the TP ranks");
  d.optional("schedule", &Plan::schedule, "pipeline schedule (interleaved when vp > 1)");
  d.optional("sharding", &Plan::sharding, "what data-parallel ranks shard: optimizer (zero1), gradients, weights");
  d.optional("evaluation_nodes", &Plan::evaluation_nodes, "further nodes that only evaluate", between(0, 1e6));
}

void Lora::describe(Description<Lora>& d) {
  d.object("lora", "Low-rank adapters on a frozen base.");
  d.optional("rank", &Lora::rank, "rank of the adapters", between(1, 1e6));
  d.optional("targets", &Lora::targets, "adapted linear layers of a layer, in the order QKV, projection, MLP",
             between(1, 4));
  d.optional("dropout", &Lora::dropout, "dropout probability on the adapters' input", between(0, 1));
}

void Training::describe(Description<Training>& d) {
  d.object("training", "How the model is trained.");
  d.optional("precision", &Training::precision, "precision of the linear layers");
  d.required("sequence", &Training::sequence, "tokens of a sample", between(1, 1e9));
  d.optional("lora", &Training::lora, "low-rank adaptation; absent: all weights are trained");
  d.optional("recompute", &Training::recompute, "activation recomputation");
}

}  // namespace tw
