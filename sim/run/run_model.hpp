// The whole run: start-up, steps, evaluations, and what every group of nodes does meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "network/engine.hpp"
#include "run/run_plan.hpp"
#include "step/inputs.hpp"
#include "step/step_model.hpp"
#include "step/timeline.hpp"

namespace tw {

struct RunInputs {
  StepInputs step;
  const RunPlan* run = nullptr;
};

// One seeded run.
struct SimulatedRun {
  double time_s = 0;  // run_start to run_stop
  double steps = 0, samples = 0, evaluations = 0;
  double step_s = 0;    // mean of the steps after the first
  Breakdown breakdown;  // mean of the steps after the first
  double eval_s = 0, eval_first_s = 0, init_s = 0, first_step_s = 0, wait_s = 0;
  Slowdown slowdown;           // of clock-bound kernels in training, by the board limit
  ActivityTimes train_shares;  // of the steps after the first
  double fabric_bytes_per_step = 0;
  Timeline timeline;
};

// What a run is made of, computed once and used for any number of seeds.
struct RunModel {
  StepPlan step;  // at the clock that the board limit allows
  StepNetwork network;
  StepOutcome quiet;  // one step without noise
  Slowdown slowdown;
  double evaluation_batch_s = 0;  // one batch on one replica
  ActivityTimes evaluation_shares;
  int replicas = 1;         // level 2: every data-parallel replica on its own
  std::vector<Span> spans;  // of the quiet step
};

// Simulates one quiet step at full clock, lets the board limit set the clock, and simulates again.
RunModel build_run_model(const RunInputs& in, network::Engine& engine, const StepNetwork& network, int level);

// Whether a direction of the step is long enough for the board limiter to act on it by itself.
bool limiter_sees_directions(const RunModel& model);

// Plays the run for one seed. Steps whose replicas meet at every visit of a single stage are replayed: the quiet step
// plus each meeting's own draw, which is what the events would give. Pipelines simulate a few noisy steps and draw from
// them. `engine` is the one the model was built on; `index` counts the runs of a series, for samples_by_run.
SimulatedRun play_run(const RunInputs& in, const RunModel& model, network::Engine& engine, uint64_t seed,
                      size_t index = 0);

}  // namespace tw
