// The result of one scenario in SI units, described in result.cpp: every key of the JSON contract (DESIGN 9), and what
// else crosses a pipe. An absent optional is null.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "power/delivery.hpp"
#include "power/network_rule.hpp"
#include "power/power_run.hpp"
#include "power/ramps.hpp"
#include "power/step_power.hpp"
#include "step/breakdown.hpp"
#include "step/timeline.hpp"
#include "study/interval.hpp"
#include "study/step_detail.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

using Maybe = std::optional<double>;

struct PlanResult {
  int nodes = 0, gpus = 0, tp = 1, pp = 1, vp = 1, cp = 1, dp = 1, ep = 1, mbs = 1, gbs = 0, ga = 1;
  Maybe etp = {}, edp = {};
  static void describe(Outputs<PlanResult>& d);
};

struct StepResult {
  Maybe time_s, tokens_per_s, samples_per_s, mfu;
  Breakdown breakdown_s;
  static void describe(Outputs<StepResult>& d);
};

struct MemoryResult {
  Maybe per_gpu_bytes, capacity_bytes, allocated_bytes, reserved_bytes, host_bytes, host_capacity_bytes;
  std::map<std::string, double> parts_bytes;
  static void describe(Outputs<MemoryResult>& d);
};

struct Distribution {
  Maybe mean, sd, p5, p50, p95, olympic, official;
  static void describe(Outputs<Distribution>& d);
};

// Mean, standard deviation and quantiles over the seeded runs.
struct Spread {
  Maybe mean, sd, p5, p50, p95;
  static void describe(Outputs<Spread>& d);
};

struct CheckpointResult {
  Maybe bytes, count, interval_s, write_s, read_s, blocked_s, wait_s;
  std::string bottleneck;
  static void describe(Outputs<CheckpointResult>& d);
};

// Failures of the run, and what its checkpoint interval should be.
struct FailuresResult {
  Maybe mtbf_s, count, rework_s, restart_s, spare_wait_s;
  std::map<std::string, double> by_component;
  Maybe daly_interval_s;                                 // Young and Daly
  Maybe best_interval_s, best_goodput, present_goodput;  // by simulation; the latter at the interval in use
  static void describe(Outputs<FailuresResult>& d);
};

struct DataResult {
  Maybe batch_s, wait_s;  // to read a batch; a step's mean wait for it
  std::string bottleneck;
  static void describe(Outputs<DataResult>& d);
};

// What the seeded runs say together.
struct SeriesResult {
  int count = 1, finished = 1;  // of them reached their target
  Spread samples, total_dc_j, total_ac_j, facility_j, kg_co2e, goodput, lost_s;
  Maybe official_dc_j, rcp_factor;
  std::string rcp_rule;  // "given", "convergence data"; empty: none
  // 95 % certainty: how far the mean of these runs may be off, and runs for a mean that is right to 1, 2 and 5 %.
  Maybe half_width_pct, needed_1pct, needed_2pct, needed_5pct;
  static void describe(Outputs<SeriesResult>& d);
};

struct RunResult {
  std::string status = "finished";  // or "stopped": before its target, by a failure of its power
  Maybe stopped_at_s;
  Distribution time_to_train_s;
  Maybe steps, samples, evaluations, eval_s, eval_first_s, init_s, first_step_s, wait_s, checkpoint_s, lost_s,
      days_per_1T_tokens;
  Maybe target_samples, goodput, slow_s, days, tokens;
  Maybe days_per_1T_tokens_effective;  // with everything that is not a training step
  CheckpointResult checkpoints;
  FailuresResult failures;
  DataResult data;
  static void describe(Outputs<RunResult>& d);
};

struct NodePowerResult {
  std::string node;
  double mean_w = 0, peak_w = 0, dc_j = 0;
  static void describe(Outputs<NodePowerResult>& d);
};

struct PowerResult {
  Maybe mean, min, max, steady, idle;  // node_dc_w
  Maybe wait, evaluation;              // means over the run's waits and evaluations (validate: wait_w, eval_w)
  Maybe gpu_steady;                    // one GPU in steady training
  std::vector<NodePowerResult> per_node;
  Maybe network_w, network_w_per_node;
  std::string network_rule;
  std::map<std::string, Maybe> network_w_by_rule;
  std::vector<SwitchShare> switches;  // by the rule in force
  Maybe peak_bus_w, shelf_headroom;
  Maybe train;  // whenever training steps run, mean over all nodes
  static void describe(Outputs<PowerResult>& d);
};

struct EnergyResult {
  Maybe nodes_dc_j, network_j, total_dc_j, rectifier_loss_j, total_ac_j, facility_j, ppue_j, rcp_factor;
  static void describe(Outputs<EnergyResult>& d);
};

struct CarbonResult {
  Maybe kg_co2e, kg_co2e_mlperf_v4_0, intensity_kg_per_kwh;
  static void describe(Outputs<CarbonResult>& d);
};

// The job and each of its neighbours on the fabric: a step of the job, one turn of a neighbour.
struct JobResult {
  std::string name;
  Maybe alone_s, together_s, slow_down;
  std::string bottleneck, narrowest;  // class of the links that bind it, and the link
  static void describe(Outputs<JobResult>& d);
};

struct ReferenceRow {
  std::string quantity, unit, kind;  // kind: fitted, predicted or given
  Maybe measured, predicted, error_pct;
  static void describe(Outputs<ReferenceRow>& d);
};

struct ReferenceResult {
  std::string source;
  std::vector<ReferenceRow> rows;
  static void describe(Outputs<ReferenceResult>& d);
};

// Node power over time, for figures: mean and quantiles over nodes, as a meter would read it.
struct PowerSeries {
  std::vector<double> time_s, mean_w, p5_w, p95_w, p50_w;
  static void describe(Outputs<PowerSeries>& d);
};

// Carbon and cost by the hour, for a site with hourly series.
struct HourlyResult {
  std::string start;  // as the scenario says; empty: only the choices below
  Maybe kg_co2e, kg_co2e_market, cost_usd;
  std::string least_carbon_start, least_cost_start;
  Maybe least_kg_co2e, most_kg_co2e, least_cost_usd, most_cost_usd;
  static void describe(Outputs<HourlyResult>& d);
};

// From the nodes to the grid: who carries what, how it moves, what it costs for each sample.
struct GridResult {
  PowerSwings facility;                   // the building's power for this job, inside the run
  std::vector<StageTotals> stages;        // from the nodes to the feed
  Maybe grid_j;                           // at the feed, without cooling and network
  std::map<std::string, double> parts_j;  // of the nodes: "gpu_" and the activity, host, conversion ...
  std::vector<std::string> failures;      // what each power failure did
  bool stopped = false;                   // by one of them
  double lost_s = 0;
  Maybe dc_per_sample_j, dc_per_token_j, facility_per_sample_j, facility_per_token_j;
  Maybe kg_co2e_market;  // by contract; kg_co2e of the result is that of the grid
  std::optional<HourlyResult> hourly;
  StepPower step;
  Maybe node_ac_w;                    // mean
  Maybe node_peak_w, node_peak_ac_w;  // of a node, all boards in their densest kernel
  static void describe(Outputs<GridResult>& d);
};

struct Result {
  std::string scenario;
  uint64_t seed = 1;
  std::string inputs_sha256;
  PlanResult plan;
  StepResult step;
  MemoryResult memory;
  RunResult run;
  SeriesResult series_of_runs;
  PowerResult power;
  EnergyResult energy, energy_mlperf_v4_0;
  CarbonResult carbon;
  GridResult grid;
  std::map<std::string, Maybe> cost;
  std::vector<JobResult> jobs;  // empty when nobody else is on the fabric
  ReferenceResult reference;
  std::map<std::string, Interval> intervals;  // step, time_to_train, node_dc_w, energy; filled where results are shown
  std::vector<std::string> warnings;
  std::string error;  // set when the scenario failed after its inputs were accepted

  // Beyond the JSON: material for figures and telemetry.
  Timeline timeline;
  PowerOptions power_options;  // failures and caps in force, for integrate_power() on the timeline
  PowerSeries series;
  StepDetail step_detail;
  static void describe(Outputs<Result>& d);
};

// As bytes, from the child that simulated it.
std::string to_bytes(const Result& result);
Result from_bytes(const std::string& bytes);

// The value of a named quantity of a result, in SI: a name of quantity_units() or the path of a key ("run.lost_s");
// absent where it does not apply. `rule` chooses among the apportionments of network_w; empty: that of the scenario.
Maybe result_quantity(const Result& result, const std::string& quantity, const std::string& rule = "");
// The names that measurements go by, with their units; the unit of any quantity, none when there is no such number.
const std::vector<std::pair<std::string, std::string>>& quantity_units();
std::optional<std::string> quantity_unit(const std::string& quantity);
// "dc_mlperf_j" -> "energy at DC, MLPerf window"; of no known name with its underscores as blanks.
std::string quantity_words(const std::string& quantity);

// Inconsistencies of a published reference that a reader has to know, such as a carbon figure that does not follow from
// the site's own factor.
std::vector<std::string> reference_warnings(const Result& result);

}  // namespace tw
