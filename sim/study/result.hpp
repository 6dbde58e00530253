// The result of one scenario: every key of the JSON contract (DESIGN 9), in SI units. An absent optional is null.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "step/breakdown.hpp"
#include "step/timeline.hpp"

namespace tw {

using Maybe = std::optional<double>;

struct PlanResult {
  int nodes = 0, gpus = 0, tp = 1, pp = 1, vp = 1, cp = 1, dp = 1, ep = 1, mbs = 1, gbs = 0, ga = 1;
};

struct StepResult {
  Maybe time_s, tokens_per_s, samples_per_s, mfu;
  Breakdown breakdown_s;
};

struct MemoryResult {
  Maybe per_gpu_bytes, capacity_bytes;
  std::map<std::string, double> parts_bytes;
};

struct Distribution {
  Maybe mean, sd, p5, p50, p95, olympic, official;
};

struct RunResult {
  Distribution time_to_train_s;
  Maybe steps, samples, evaluations, eval_s, eval_first_s, init_s, first_step_s, wait_s, checkpoint_s, lost_s,
      days_per_1T_tokens;
};

struct NodePowerResult {
  std::string node;
  double mean_w = 0, peak_w = 0, dc_j = 0;
};

struct PowerResult {
  Maybe mean, min, max, steady, idle;  // node_dc_w
  Maybe wait, evaluation;              // means over the run's waits and evaluations (validate: wait_w, eval_w)
  Maybe gpu_steady;                    // one GPU in steady training
  std::vector<NodePowerResult> per_node;
  Maybe network_w, network_w_per_node;
  std::string network_rule;
  std::map<std::string, Maybe> network_w_by_rule;
  Maybe peak_bus_w, shelf_headroom;
};

struct EnergyResult {
  Maybe nodes_dc_j, network_j, total_dc_j, rectifier_loss_j, total_ac_j, facility_j, ppue_j, rcp_factor;
};

struct CarbonResult {
  Maybe kg_co2e, kg_co2e_mlperf_v4_0, intensity_kg_per_kwh;
};

struct ReferenceRow {
  std::string quantity, unit, kind;  // kind: fitted, predicted or given
  Maybe measured, predicted, error_pct;
};

struct ReferenceResult {
  std::string source;
  std::vector<ReferenceRow> rows;
};

// Node power over time, for figures: mean and quantiles over nodes, as a meter would read it.
struct PowerSeries {
  std::vector<double> time_s, mean_w, p5_w, p95_w;
};

struct Result {
  std::string scenario;
  uint64_t seed = 1;
  std::string inputs_sha256;
  PlanResult plan;
  StepResult step;
  MemoryResult memory;
  RunResult run;
  PowerResult power;
  EnergyResult energy, energy_mlperf_v4_0;
  CarbonResult carbon;
  std::map<std::string, Maybe> cost;
  ReferenceResult reference;
  std::vector<std::string> warnings;
  std::string error;  // set when the scenario failed after its inputs were accepted

  // Beyond the JSON: material for figures and telemetry.
  Timeline timeline;
  PowerSeries series;
};

}  // namespace tw
