// The parallel plan and how the model is trained.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/error.hpp"
#include "workload/architecture.hpp"

namespace tw {

enum class Schedule { gpipe, one_f_one_b, zb_h1, interleaved_zero_bubble, zbv, dualpipev, dualpipe };
template <>
struct Choices<Schedule> {
  static std::vector<std::pair<std::string, Schedule>> table();
};

// How backward gets what forward did not keep: named modules, all but every other product (PyTorch's selective
// checkpoints, as torchtitan sets them), or whole layers.
enum class Recompute { none, selective, alternate, full };

// Parts of a layer that are computed again; without a list attention alone.
enum class Module { attention, norms, activation, mlp, experts, mla_up };

// How the ranks of a context-parallel group bring queries and keys together.
enum class ContextExchange { ring, all_gather, heads };

// How optimizer states, gradients and weights are sharded over data-parallel ranks.
enum class Sharding { none, zero1, zero2, zero3 };

struct Plan {
  int nodes = 1;
  int tp = 1, pp = 1, vp = 1, cp = 1, ep = 1;
  int etp = 0;  // tensor parallelism of an expert; 0: tp where ep divides dp x cp, else 1
  int dp = 0;   // 0: what the other sizes leave
  int mbs = 1;
  int gbs = 0;
  bool sequence_parallel = true;
  Schedule schedule = Schedule::one_f_one_b;
  Sharding sharding = Sharding::none;
  int shard_group = 0;  // ranks that share states (hybrid sharding); 0: all data and context parallel ranks
  ContextExchange context = ContextExchange::ring;
  std::string layout;        // layers of each chunk; empty: even
  bool reshard = true;       // zero3: weights are freed after a forward and gathered again for its backward
  int evaluation_nodes = 0;  // nodes of their own that only evaluate, beside `nodes`
  static void describe(Description<Plan>& d);
  int gpus(int gpus_per_node) const { return nodes * gpus_per_node; }
  int ga() const { return dp > 0 ? gbs / (mbs * dp) : 1; }
  int expert_tp() const { return etp > 0 ? etp : cp * dp % ep == 0 ? tp : 1; }  // ranks that share one expert
  int sharded_over() const { return shard_group > 0 ? std::min(shard_group, dp * cp) : dp * cp; }
};

struct Lora {
  int rank = 16;
  int targets = 2;       // adapted linear layers of a transformer layer
  double dropout = 0.1;  // on the adapters' input
  static void describe(Description<Lora>& d);
};

enum class Update { adamw, muon };

enum class StatePrecision { none, fp8, bf16, fp32 };

// What the optimizer keeps of each trained parameter.
struct Optimizer {
  Update update = Update::adamw;                    // AdamW has two moments, Muon one but for tables
  StatePrecision master = StatePrecision::fp32;     // copy of the weight
  StatePrecision moments = StatePrecision::fp32;    // each
  StatePrecision gradients = StatePrecision::fp32;  // as they are kept and exchanged
  static void describe(Description<Optimizer>& d);
};

// Who updates optimizer states that wait in the host's memory: its processors, to whom gradients go and from whom
// weights come (Megatron-Core's HybridDeviceOptimizer); or the accelerator, to which the states come and from which
// they go back in chunks (its chunked state offload).
enum class OffloadUpdate { host, device };
template <>
struct Choices<OffloadUpdate> {
  static std::vector<std::pair<std::string, OffloadUpdate>> table();
};

struct Training {
  Precision precision = Precision::bf16;  // of the linear layers' matrix products
  long sequence = 0;
  std::optional<Lora> lora;
  Recompute recompute = Recompute::none;
  std::vector<Module> recompute_modules;
  int recompute_layers = 0;            // of each chunk, its first, that recomputation is for; 0: all
  std::optional<Optimizer> optimizer;  // absent: the release's
  int loss_chunks = 1;                 // head and loss take the tokens in so many parts
  int offload_layers = 0;              // of a stage, whose activations wait in the host's memory
  double offload_states = 0;           // share of the optimizer's states that waits there
  OffloadUpdate offload_update = OffloadUpdate::host;
  bool offload_overlap = true;             // copies run beside the update of other states
  std::vector<std::string> frozen_towers;  // by name; their projectors are trained
  bool recompute_towers = false;           // as the network's layers
  double expert_imbalance = 1;             // rows of the busiest rank's experts over the mean
  static void describe(Description<Training>& d);
};

// Whether backward computes this part of a layer again.
bool recomputes(const Training& training, Module module);

// Layers of each model chunk (pp x vp of them, in the order data visits them). As the plan's layout says; else even
// when it divides; else, when that makes chunks even, embedding, head and each next-token layer count as a layer, which
// the first and the last chunk give up (as Megatron counts them: account_for_embedding_in_pipeline_split, and the 405B
// proxies of reference/mlperf/dgxc_llama31.csv); else the first chunks take one layer more. `further`: next-token
// layers.
std::vector<int> layers_of_chunks(int layers, int pp, int vp, int further = 0);
std::vector<int> layers_of_chunks(const Architecture& network, const Plan& plan);
// The network's layers, of which those stay as they are that recomputation is not for; `chunks` as above.
std::vector<LayerKind> layers_as_trained(const Architecture& network, const Training& training,
                                         const std::vector<int>& chunks);
// Whether it makes chunks alike, in the one way or the other.
bool even_chunks(int layers, int chunks, int further = 0);
int next_token_layers(const Architecture& network);

// A layout names what each chunk holds, chunks separated by |: V towers, E embedding, t a layer, m next-token layers, L
// head and loss, x*n and (..)*n repeat; or the number of layers: "Et*4|(t*4|)*14tmL", "4|4|3". Returns what is wrong
// with it. `letters`: of all chunks, without repeats.
std::string parse_layout(const std::string& text, std::vector<int>& layers, std::string* letters = nullptr);

// Fills in the derived sizes and checks that everything divides. Faults name the nearest valid choice.
// `where` are pointers of plan, training and network in the scenario, for the messages.
void complete_plan(Plan& plan, int gpus_per_node, const ReadContext& at);
void check_plan(const Plan& plan, const Architecture& network, const Training& training, int gpus_per_node,
                const ReadContext& at);

}  // namespace tw
