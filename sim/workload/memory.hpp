// Memory of one accelerator: tensors with their lifetimes over one step, by part, at the moment that needs most.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workload/architecture.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

constexpr std::array<std::string_view, 8> kMemoryParts{"weights", "gradients", "optimizer", "activations",
                                                       "logits",  "gathered",  "workspace", "context"};
using MemoryParts = std::array<double, kMemoryParts.size()>;  // bytes

struct StageMemory {
  // Bytes at the step's peak. activations: kept for backward passes; workspace: gradients of activations, recomputed
  // tensors and kernels' workspaces; gathered: whole weights of sharded layers with the buffers of their exchange;
  // context: of the process, its libraries and communicators, beside the framework's allocator.
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, logits = 0, gathered = 0, workspace = 0,
         context = 0;
  double reserved = 0;  // by a caching allocator that keeps the most of each stream
  // In the host's memory, at the most: activations, and states with the pinned copies that their update takes.
  double host_activations = 0, host_states = 0;
  double allocated() const { return weights + gradients + optimizer + activations + logits + gathered + workspace; }
  double total() const { return allocated() + context; }
  MemoryParts bytes() const {
    return {weights, gradients, optimizer, activations, logits, gathered, workspace, context};
  }
  std::map<std::string, double> parts() const;
};

// What a stage does in a step, as far as memory goes: the chunks that it holds, and visits to them in their order
// (see step/step_memory.hpp). `input` and `weight` are the halves of a backward pass that is split.
enum class MemoryPass { forward, backward, input, weight };
struct MemoryVisit {
  int slot = 0;  // of `chunks`
  MemoryPass pass = MemoryPass::forward;
};
struct StageWork {
  std::vector<int> chunks = {0};
  std::vector<MemoryVisit> visits = {{0, MemoryPass::forward}, {0, MemoryPass::backward}};
};

// The first visit of each slot that makes gradients of weights.
class FirstGradients {
 public:
  bool insert(const MemoryVisit& v) {
    return (v.pass == MemoryPass::backward || v.pass == MemoryPass::weight) && slots_.insert(v.slot).second;
  }

 private:
  std::set<int> slots_;
};

// Per pipeline stage; `layers` counts the layers of each chunk, in the order data visits them.
std::vector<StageMemory> memory_of_stages(const Architecture& network, const Training& training, const Plan& plan,
                                          const Software& software, const std::vector<int>& layers,
                                          const std::vector<StageWork>& work);

// Bytes over those at the beginning of a visit, at a share of its time: the most inside each layer and what is left
// after it. A layer takes its share of the visit's operations.
struct MemoryMoment {
  double share = 0;
  MemoryParts bytes{};
};
using MemoryPasses = std::array<std::vector<MemoryMoment>, 4>;  // [MemoryPass]
struct StageCurves {
  MemoryParts held{};                // through the step
  std::vector<MemoryPasses> visits;  // of each slot
  std::vector<MemoryPasses> firsts;  // of the visits that its gradients begin with (FirstGradients); empty: no others
};
StageCurves memory_curves(const Architecture& network, const Training& training, const Plan& plan,
                          const Software& software, const std::vector<int>& layers, const StageWork& work);

// The layers of a chunk at whose end the activations of its first `offloaded` ones, one after the other, have left for
// the host's memory, and before whose backward they begin to come back: spread evenly, the last one at the end
// (TransformerEngine, cpu_offload.py, layer_window_map). The last layer's stay, since they are wanted at once.
std::vector<int> offload_due(int offloaded, int layers);

// Whether whole weights are freed after each pass, and gradients reduced in each: ZeRO-3 in a pipeline would gather and
// reduce for every micro-batch, and keeps both whole through the step instead (PyTorch FSDP2, torchtitan).
bool reshards(const Plan& plan);

// Activation bytes that one layer keeps with a release's kernels.
double kept_activation_bytes(const Architecture& network, const LayerKind& kind, const Training& training,
                             const Plan& plan, const Software& software);

// Activation bytes that one layer keeps for one micro-batch on one rank. Without a kind the network's first layer.
double layer_activation_bytes(const Architecture& network, const LayerKind& kind, const Training& training,
                              const Plan& plan, bool eager = false);
double layer_activation_bytes(const Architecture& network, const Training& training, const Plan& plan,
                              bool eager = false);

}  // namespace tw
