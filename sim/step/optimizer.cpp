// The update of the weights, on the device and, for states that wait there, on the host.
#include <algorithm>
#include <cmath>

#include "hardware/kernels.hpp"
#include "step/cost.hpp"

namespace tw {
namespace {

// Of states, that are copied and updated at a time (Megatron-Core's --optimizer-state-offload-chunk-size-mb, as its
// README sets it).
constexpr double kChunkBytes = 256e6;

// What a rank updates.
struct Owned {
  double parameters = 0, states = 0, gradients = 0, weights = 0;  // the last three in bytes
};

// Seconds until all chunks have come, been updated and gone: each of the three is a queue, and the second serves nobody
// before `free_s`. With free_s = 0: in + update + out of one chunk, and the longest of the three for each of the
// others.
double in_chunks_s(double in_s, double update_s, double out_s, int chunks, double free_s) {
  double in = 0, updated = free_s, out = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    in += in_s / chunks;
    updated = std::max(in, updated) + update_s / chunks;
    out = std::max(updated, out) + out_s / chunks;
  }
  return out;
}

// `kernels_s`: of the device for all of it. The gap is what the device waits for the host and the copies.
TaskCost update_cost(const StepInputs& in, const Owned& own, double kernels_s) {
  const Training& t = *in.training;
  const NodeType& node = in.cluster->node;
  const double away = t.offload_states, copy_Bps = node.host_copy_Bps();
  TaskCost cost;
  if (away <= 0 || copy_Bps <= 0) {
    cost.busy[Activity::memory_bound] = kernels_s;
    return cost;
  }
  const int chunks = t.offload_overlap ? std::max(1, static_cast<int>(std::ceil(away * own.states / kChunkBytes))) : 1;
  double end_s = 0;
  if (t.offload_update == OffloadUpdate::host) {
    // Gradients go as they are kept and are widened there; weights are narrowed there and come as they are kept. The
    // host reads gradients and states and writes states, all accelerators' at a time.
    cost.busy[Activity::memory_bound] = (1 - away) * kernels_s;
    const double host_Bps = node.host_memory.bandwidth.value() * node.host_memory.update_efficiency / node.gpus;
    const double update_s = away * (2 * own.states + host_gradient_bytes(t) * own.parameters) / host_Bps;
    end_s = in_chunks_s(away * own.gradients / copy_Bps, update_s, away * own.weights / copy_Bps, chunks, 0);
  } else {
    cost.busy[Activity::memory_bound] = kernels_s;
    const double copy_s = away * own.states / copy_Bps;
    end_s = in_chunks_s(copy_s, away * kernels_s, copy_s, chunks, (1 - away) * kernels_s);
  }
  cost.gap_s = std::max(0.0, end_s - cost.busy.total());
  return cost;
}

}  // namespace

TaskCost optimizer_cost(const StepInputs& in) {
  const Plan& plan = *in.plan;
  const Software& s = *in.software;
  const ChunkPlacement placement = rule_of(plan.schedule, plan.vp).placement(plan.pp, plan.vp);
  std::vector<Owned> stages(static_cast<size_t>(plan.pp));  // by a rank of each
  for (const ParameterGroup& g : groups_of(in)) {
    if (!g.trained) continue;
    const double own = g.held / (plan.sharding == Sharding::none ? 1 : g.shards);
    for (const auto& way : placement.way) {
      Owned& at = stages[static_cast<size_t>(way[static_cast<size_t>(g.chunk)].stage)];
      at.parameters += own, at.states += own * state_bytes(g, *in.training, s);
      at.gradients += own * s.memory.gradient_bytes_per_parameter, at.weights += own * g.weight_bytes;
    }
  }
  const Accelerator& a = in.cluster->node.accelerator;
  // Its kernel computes about as long as it moves: it gains less than copies do from a faster memory.
  const auto chip = a.efficiency.find("optimizer");
  const double share =
      (s.kernels.optimizer_efficiency > 0 ? s.kernels.optimizer_efficiency : s.kernels.memory_efficiency) *
      (chip == a.efficiency.end() ? 1 : chip->second);
  TaskCost longest;
  for (const Owned& own : stages) {
    // Gradient read, two moments and master weight read and written, weight written.
    const double bytes = s.kernels.optimizer_bytes_per_parameter * own.parameters;
    const TaskCost cost = update_cost(in, own, memory_time_s(a, bytes, share) / in.cluster->hosts.device_speed);
    if (cost.device_s() > longest.device_s()) longest = cost;
  }
  return longest;
}

}  // namespace tw
