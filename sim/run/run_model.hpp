// The whole run: start-up, steps, evaluations, and what every group of nodes does meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "network/engine.hpp"
#include "power/power_run.hpp"
#include "run/run_plan.hpp"
#include "step/inputs.hpp"
#include "step/step_model.hpp"
#include "step/timeline.hpp"

namespace tw {

struct RunInputs {
  StepInputs step;
  const RunPlan* run = nullptr;
  double switches = 0;                       // that carry the job's traffic, for their failures
  const std::vector<int>* placed = nullptr;  // nodes of the cluster, those that train first; null: the first ones
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
  double target_samples = 0;                        // as drawn or given, before rounding to whole steps
  double checkpoints = 0, checkpoint_s = 0;         // training waited for them this long
  double checkpoint_wait_s = 0;                     // of it because the one before was still being written
  double rework_s = 0, restart_s = 0, spare_s = 0;  // failures: work lost; down; of that waiting for a node
  std::array<double, kComponentNames.size()> failures{};
  double useful_s = 0;                    // training steps that counted
  double slow_s = 0;                      // steps took this much longer for slow nodes
  double input_s = 0;                     // mean wait of a step for its data
  bool evaluations_queue = false;         // an evaluation beside training began after the next was due
  double failed() const;                  // failures of all kinds
  bool stopped = false;                   // its power went for good: everything above is that up to then
  double supply_lost_s = 0;               // to power: time under a limit, work lost when it stopped
  std::vector<std::string> power_events;  // what the scenario's power failures did, one sentence each
  Timeline timeline;
  PowerOptions power;  // for integrate_power() on the timeline
};

// Noisy pipeline steps, simulated once for each seed and drawn from by many runs.
using NoisePools = std::map<uint64_t, std::vector<double>>;

// One run of a series.
struct SeriesRun {
  uint64_t seed = 1;
  size_t index = 0;             // in the series, for samples_by_run
  uint64_t pool_seed = 1;       // of the pipeline steps it draws from; its own seed: it simulates them
  NoisePools* pools = nullptr;  // kept between runs; null: its own
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
  int level = 1;            // 3: its exchanges are sent as messages
  std::vector<Span> spans;  // of the quiet step
  InputTime input;          // to read one batch
  // Time of a step over that of the quiet one, while nodes of the job (by number) need this many times as long for
  // their work, and some of the run's slow cables are. Nothing: the slowest node's.
  std::function<double(const std::vector<double>& nodes, const std::vector<bool>& cables)> slow_pace;
};

// Simulates one quiet step at full clock, lets the board limit set the clock, and simulates again.
RunModel build_run_model(const RunInputs& in, network::Engine& engine, const StepNetwork& network, int level);

// Whether a direction of the step is long enough for the board limiter to act on it by itself.
bool limiter_sees_directions(const RunModel& model);

// Seconds and shares of a mean stage's GPU.
ActivityTimes mean_activity(const StepOutcome& step);
ActivityTimes shares_of(const ActivityTimes& seconds, double time_s);

// Failures a second of the job's components; all 0 without a reliability profile.
FailureRates job_failure_rates(const RunInputs& in);
// From a failure until the restored job trains again, waits for a spare node aside.
double restart_s(const RunInputs& in, double read_s);

// Plays the run for one seed. Steps whose replicas meet at every visit of a single stage are replayed: the quiet step
// plus each meeting's own draw, which is what the events would give. Pipelines simulate a few noisy steps and draw from
// them, and so do very long runs of single stages. Steps, evaluations, checkpoints, failures of nodes, nodes that turn
// slow and what happens to the power meet in one order of events; each changes what follows. `engine` is the one the
// model was built on. Throws DoesNotFit beyond the horizons (steps, ten years, number of checkpoints).
SimulatedRun play_run(const RunInputs& in, const RunModel& model, network::Engine& engine, const SeriesRun& series);

}  // namespace tw
