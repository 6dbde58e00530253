// One training step as events: every stage works through its visits, hands over, waits, meets its peers, exchanges
// gradients and updates weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.hpp"
#include "hardware/activity.hpp"
#include "network/engine.hpp"
#include "step/breakdown.hpp"
#include "step/cost.hpp"
#include "step/noise.hpp"
#include "step/schedule.hpp"
#include "step/step_network.hpp"

namespace tw {

// What the stages of a pipeline do in a step, prepared once for many steps.
struct StepPlan {
  int stages = 1, chunks = 1, micro_batches = 1;  // chunks: of the schedule, a stage (vp)
  int members = 1;                                // replicas that meet at synchronisations
  double nodes_per_member = 1;
  std::vector<PassCost> cost;  // [slot * stages + stage], see ChunkPlacement
  TaskCost optimizer;
  std::vector<SharedSum> weight_bytes;  // gathered after the optimizer, same index; beside the next forward: none
  double bucket_copy_s_per_byte = 0;    // gradients are copied out of their buckets when they arrive
  double hand_over_bytes = 0;
  double fixed_s = 0;
  double host_lead_s = 0;           // how far the host is ahead of the device when a step begins
  bool meet_every_visit = false;    // FP8 scaling meets the replicas, on their devices, every micro-batch
  bool reduce_every_visit = false;  // gradients leave after every backward (ZeRO-2)
  bool gradients_beside = true;     // buckets leave while backward runs
  bool queued_hand_over = false;    // sends and receives of a stage are one queue (hand_over_queue.hpp)
  Schedule schedule = Schedule::one_f_one_b;
  HostNoise noise;
  std::vector<double> slow;  // times that each worker needs for its work [stage * replicas + replica]; empty: 1
};

// `pass`: training, or the estimate of it.
StepPlan plan_step(const StepInputs& in, const StepNetwork& net, const Slowdown& slowdown, Pass pass = Pass::training);

// Seconds that `bytes` take on a class of the network which nobody shares; 0 where there is no class (-1).
double transfer_s(const StepNetwork& net, int load_class, double bytes);

// One span on a stage's stream, for timelines.
struct Span {
  int stage = 0;
  enum class Stream { device, network, host } stream = Stream::device;
  double begin_s = 0, end_s = 0;
  Visit visit;
  const char* what = "";
  double bytes = 0;
  double flops = 0;
};

// A direction of the step, a GPU of the mean stage: time inside visits, waits for the host included.
struct Stretch {
  double time_s = 0;
  ActivityTimes activity;
};

struct StepOutcome {
  double time_s = 0;
  Stretch forward, backward;
  Breakdown breakdown;                        // of the stage that is busiest
  std::vector<ActivityTimes> stage_activity;  // seconds by activity, a GPU of each stage; the rest of the step is spin
  PipelineWork work;                          // between the places where replicas may meet
  double jitter_s = 0;
  double fabric_bytes = 0;  // payload handed to the engine
};

// Simulates one step from the engine's present time on. `replicas` = 1 draws maxima over members; = members draws each
// member on its own. Spans of replica 0 are appended to `spans` when given.
StepOutcome simulate_step(const StepPlan& plan, const StepNetwork& net, network::Engine& engine, int replicas,
                          uint64_t seed, uint64_t step, std::vector<Span>* spans = nullptr);

// What noise adds to a step whose replicas meet at its end only: the same as simulate_step() draws, from the step
// without noise. Not for steps that meet every visit, or with neighbours, who change them.
double end_jitter_s(const StepPlan& plan, const StepOutcome& quiet, int replicas, uint64_t seed, uint64_t step);

}  // namespace tw
