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
  static std::vector<std::pair<std::string, Schedule>> table();
};

enum class Recompute { none, selective, full };
template <>
struct Choices<Recompute> {
  static std::vector<std::pair<std::string, Recompute>> table();
};

// How optimizer states, gradients and weights are sharded over data-parallel ranks.
enum class Sharding { none, zero1, zero2, zero3 };
template <>
struct Choices<Sharding> {
  static std::vector<std::pair<std::string, Sharding>> table();
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
  static void describe(Description<Plan>& d);
  int gpus(int gpus_per_node) const { return nodes * gpus_per_node; }
  int ga() const { return dp > 0 ? gbs / (mbs * dp) : 1; }
  int expert_tp() const { return tp; }  // ranks that share one expert
};

struct Lora {
  int rank = 16;
  int targets = 2;       // adapted linear layers of a transformer layer
  double dropout = 0.1;  // on the adapters' input
  static void describe(Description<Lora>& d);
};

struct Training {
  Precision precision = Precision::bf16;  // of the linear layers' matrix products
  long sequence = 0;
  std::optional<Lora> lora;
  Recompute recompute = Recompute::none;
  static void describe(Description<Training>& d);
};

// Fills in the derived sizes and checks that everything divides. Faults name the nearest valid choice.
// `where` are pointers of plan, training and network in the scenario, for the messages.
void complete_plan(Plan& plan, int gpus_per_node, const ReadContext& at);
void check_plan(const Plan& plan, const Architecture& network, const Training& training, int gpus_per_node,
                const ReadContext& at);

}  // namespace tw
