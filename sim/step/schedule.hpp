// Pipeline schedules: the order in which a stage works through its micro-batches, and which chunks it holds.
#pragma once

#include <string>
#include <vector>

#include "workload/plan.hpp"

namespace tw {

// What a visit computes: a whole pass, or the half of a backward pass that gives gradients of inputs or of weights.
enum class Part { whole, input, weight };

// One visit of a micro-batch to one model chunk of a stage.
struct Visit {
  bool backward = false;
  int chunk = 0;        // slot of the stage, 0 .. slots - 1
  int micro_batch = 0;  // 0 .. ga - 1
  Part part = Part::whole;
  bool joined = false;  // issued as one with the next visit: both wait for both inputs, and pass on together
};

// Where a model chunk stands: a slot of a stage.
struct Place {
  int stage = 0, slot = 0;
};

// Chunks in the order data visits them. A schedule in two directions has two such ways, which share the model.
struct ChunkPlacement {
  int slots = 1;                        // chunks that a stage holds
  std::vector<std::vector<Place>> way;  // [direction][chunk]
  // Direction of a micro-batch: the first half of them goes the first way.
  const std::vector<Place>& of(int micro_batch, int micro_batches) const {
    return way.size() > 1 && micro_batch >= (micro_batches + 1) / 2 ? way[1] : way[0];
  }
  // Model chunk in a slot of a stage.
  int chunk(int stage, int slot) const;
};

// One schedule, a file each; all are listed in schedules().
struct ScheduleRule {
  Schedule name;
  ChunkPlacement (*placement)(int pp, int vp);
  std::vector<Visit> (*visits)(int stage, int pp, int vp, int micro_batches);
  // "" when the plan can run so; else what is wrong and what is allowed.
  std::string (*refusal)(int pp, int vp, int micro_batches);
  bool splits = false;  // some backward is cut into its halves
};

const ScheduleRule& rule_of(Schedule schedule, int vp);

// Every schedule with one way through looped chunks whose ranks send and receive in pairs (torch's
// PipelineScheduleSingle).
bool single_chunk(Schedule schedule, int vp);

// Adds a fault for a plan that its schedule cannot run; `at` is the plan's place in the scenario.
void check_schedule(const Plan& plan, const ReadContext& at);

// Chunks go round the stages: stage c % pp, slot c / pp (Megatron-LM's interleaving).
ChunkPlacement looped(int pp, int vp);
// Out and back again: stage r holds chunks r and 2 pp - 1 - r.
ChunkPlacement v_shaped(int pp, int vp);
// Both directions at once: stage r holds chunk r of the one and pp - 1 - r of the other, so weights are held twice.
ChunkPlacement two_way(int pp, int vp);

ScheduleRule gpipe();                     // Huang et al. 2019
ScheduleRule one_forward_one_backward();  // PipeDream-Flush, Narayanan et al. 2019
ScheduleRule interleaved();               // Narayanan et al. 2021, Megatron-LM
ScheduleRule zb_h1();                     // Qi et al. 2023 (zero bubble), no more memory than 1F1B
ScheduleRule interleaved_zero_bubble();   // ZB1P in chunks, as torch.distributed.pipelining orders it
ScheduleRule zbv();                       // Qi et al. 2023, appendix, V-shaped
ScheduleRule dualpipev();                 // DeepSeek 2025: half of DualPipe, folded
ScheduleRule dualpipe();                  // DeepSeek-V3 report 2024

}  // namespace tw
