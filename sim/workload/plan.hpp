// The parallel plan and how the model is trained.
#pragma once

#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/error.hpp"
#include "workload/architecture.hpp"

namespace tw {

enum class Schedule { gpipe, one_f_one_b };
template <>
struct Choices<Schedule> {
  static std::vector<std::pair<std::string, Schedule>> table() {
    return {{"gpipe", Schedule::gpipe}, {"1f1b", Schedule::one_f_one_b}};
  }
};

enum class Recompute { none, selective, full };
template <>
struct Choices<Recompute> {
  static std::vector<std::pair<std::string, Recompute>> table() {
    return {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
  }
};

// How optimizer states, gradients and weights are sharded over data-parallel ranks.
enum class Sharding { none, zero1, zero2, zero3 };
template <>
struct Choices<Sharding> {
  static std::vector<std::pair<std::string, Sharding>> table() {
    return {
        {"none", Sharding::none}, {"zero1", Sharding::zero1}, {"zero2", Sharding::zero2}, {"zero3", Sharding::zero3}};
  }
};

struct Plan {
  int nodes = 1;
  int tp = 1, pp = 1, vp = 1, cp = 1, ep = 1;
  int dp = 0;  // 0: what the other sizes leave
  int mbs = 1;
  int gbs = 0;
  bool sequence_parallel = true;
  Schedule schedule = Schedule::one_f_one_b;
  Sharding sharding = Sharding::none;
  int evaluation_nodes = 0;  // nodes of their own that only evaluate, beside `nodes`
  static void describe(Description<Plan>& d) {
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
  int gpus(int gpus_per_node) const { return nodes * gpus_per_node; }
  int ga() const { return gbs / (mbs * dp); }
};

struct Lora {
  int rank = 16;
  int targets = 2;       // adapted linear layers of a transformer layer
  double dropout = 0.1;  // on the adapters' input
  static void describe(Description<Lora>& d) {
    d.object("lora", "Low-rank adapters on a frozen base.");
    d.optional("rank", &Lora::rank, "rank of the adapters", between(1, 1e6));
    d.optional("targets", &Lora::targets, "adapted linear layers of a layer, in the order QKV, projection, MLP",
               between(1, 4));
    d.optional("dropout", &Lora::dropout, "dropout probability on the adapters' input", between(0, 1));
  }
};

struct Training {
  Precision precision = Precision::bf16;  // of the linear layers' matrix products
  long sequence = 0;
  std::optional<Lora> lora;
  Recompute recompute = Recompute::none;
  static void describe(Description<Training>& d) {
    d.object("training", "How the model is trained.");
    d.optional("precision", &Training::precision, "precision of the linear layers");
    d.required("sequence", &Training::sequence, "tokens of a sample", between(1, 1e9));
    d.optional("lora", &Training::lora, "low-rank adaptation; absent: all weights are trained");
    d.optional("recompute", &Training::recompute, "activation recomputation");
  }
};

// Fills in the derived sizes and checks that everything divides. Faults name the nearest valid choice.
// `where` are pointers of plan, training and network in the scenario, for the messages.
void complete_plan(Plan& plan, int gpus_per_node, const ReadContext& at);
void check_plan(const Plan& plan, const Architecture& network, const Training& training, int gpus_per_node,
                const ReadContext& at);

}  // namespace tw
