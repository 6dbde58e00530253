// Parameters of a network by group: who holds them, how often, who exchanges their gradients. Optimizer, gradient
// exchange, gathers and memory are sums over these groups, so that all ranks together hold what the plan says.
#pragma once

#include <vector>

#include "workload/architecture.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

enum class ParameterKind { dense, expert, embedding, adapter };

struct ParameterGroup {
  ParameterKind kind = ParameterKind::dense;
  int chunk = 0;            // model chunk, in the order data visits them
  int tower = 0;            // from 1, or below 0: of its projectors; 0: none
  double whole = 0;         // parameters that all ranks of the stage hold together, each counted once
  double held = 0;          // parameters of one rank before anything is sharded over data-parallel ranks
  int copies = 1;           // ranks of the job that hold the same parameter: held * ranks of a stage = whole * copies
  int exchanged = 1;        // ranks that exchange its gradients
  int shards = 1;           // of these, the ranks that may share its states, gradients and weights
  bool trained = true;      // false: the frozen base beneath adapters
  bool repeated = false;    // the head's copy of a tied table: the same parameters as another group's
  double weight_bytes = 2;  // of one parameter as it is kept for the passes
  double gather_bytes = 2;  // and as it is gathered

  bool expert() const { return kind == ParameterKind::expert; }
};

// Ranks that hold the same experts: tp x cp x dp / (ep x tensor parallelism of an expert).
int expert_copies(const Plan& plan);

// All groups of the job; `layers` counts the layers of each chunk (see layers_of_chunks).
std::vector<ParameterGroup> parameter_groups(const Architecture& network, const Training& training, const Plan& plan,
                                             const Software& software, const std::vector<int>& layers);

// Parts of a sum over groups: those that all data and context parallel ranks share, and those that only the holders of
// the same experts share.
struct SharedSum {
  double dense = 0, experts = 0;
  double total() const { return dense + experts; }
  double& of(const ParameterGroup& g) { return g.expert() ? experts : dense; }
};

// Trained parameters that a rank of `chunk` holds before sharding.
SharedSum trained_parameters(const std::vector<ParameterGroup>& groups, int chunk);
// Bytes of the buffers that ZeRO-3 gathers for one pass of a rank through `chunk`; groups of one rank gather nothing.
SharedSum gathered_bytes(const std::vector<ParameterGroup>& groups, int chunk);

// The release with what a training's optimizer keeps and moves in the place of its own: bytes of states and gradients,
// and traffic of an update (all states and the gradient read, states and weight written).
Software with_optimizer(Software software, const Training& training);
// Bytes of states of each parameter of a group.
double state_bytes(const ParameterGroup& group, const Training& training, const Software& software);

// Bytes of a pinned gradient in FP32 for each parameter that the host's processors update (Megatron-Core,
// hybrid_optimizer.py); 0 where the device does.
double host_gradient_bytes(const Training& training);

// Trained parameters of one layer that a rank holds before sharding.
double trained_layer_parameters(const Architecture& network, const LayerKind& kind, const Training& training,
                                const Plan& plan);

// Parameters of one layer, whole; of the network's first where no kind is given.
double layer_parameters(const Architecture& network, const LayerKind& kind);
double layer_parameters(const Architecture& network);
// Of the network with its towers, next-token layers included when asked for.
double network_parameters(const Architecture& network, bool next_token = true);
// Of a tower, and of its projectors beside it.
double tower_parameters(const Tower& tower);
double projector_parameters(const Architecture& network, const Tower& tower);
// Those that one token visits: all but the experts that it is not routed to, without next-token layers and towers.
double active_parameters(const Architecture& network);
// What the adapters of one layer hold, and of all layers.
double adapter_parameters(const Architecture& network, const LayerKind& kind, const Lora& lora);
double adapter_parameters(const Architecture& network, const Lora& lora);

}  // namespace tw
