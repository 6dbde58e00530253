#include "report/output_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tw::report {
namespace {

// "[]" for every index: "jobs[3].name", "jobs.3.name" -> "jobs[].name".
std::string without_indices(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '[') {
      out += "[]";
      while (i < path.size() && path[i] != ']') ++i;
      continue;
    }
    size_t digits = i + 1;
    while (path[i] == '.' && digits < path.size() && std::isdigit(static_cast<unsigned char>(path[digits])) != 0)
      ++digits;
    if (digits > i + 1 && (digits == path.size() || path[digits] == '.')) {
      out += "[]";
      i = digits - 1;
      continue;
    }
    out += path[i];
  }
  return out;
}

bool stands_for(std::string_view pattern, const std::string& path) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == path;
  // A map is the last part of its path.
  return path.size() > star && path.compare(0, star, pattern.substr(0, star)) == 0;
}

}  // namespace

const std::vector<OutputKey>& output_keys() {
  static const std::vector<OutputKey> keys{
      {"trainwatt", "", "version of the program"},
      {"scenario", "", "name of the scenario"},
      {"error", "", "why the scenario failed; then there are no other keys but scenario"},
      {"seed", "1", "seed of all random draws"},
      {"inputs_sha256", "", "hash of the effective inputs: the same hash, version and seed give the same bytes"},

      {"plan.nodes", "nodes", "nodes of the job"},
      {"plan.gpus", "GPUs", "GPUs of the job"},
      {"plan.tp", "1", "tensor parallelism"},
      {"plan.pp", "1", "pipeline parallelism"},
      {"plan.vp", "1", "virtual pipeline chunks a stage"},
      {"plan.cp", "1", "context parallelism"},
      {"plan.dp", "1", "data parallelism"},
      {"plan.ep", "1", "expert parallelism"},
      {"plan.mbs", "samples", "micro-batch size"},
      {"plan.gbs", "samples", "global batch size"},
      {"plan.ga", "1", "gradient accumulation: micro-batches of a rank in one step"},

      {"step.time_s", "s", "one training step, mean"},
      {"step.tokens_per_s", "tokens/s", "training throughput; null where samples have no tokens"},
      {"step.samples_per_s", "samples/s", "training throughput"},
      {"step.mfu", "1",
       "model FLOPs utilisation: full-attention model FLOPs without recomputation and without weight gradients of "
       "frozen weights, over the dense peak of the GEMM precision"},
      {"step.breakdown_s.compute", "s", "kernels on the critical path"},
      {"step.breakdown_s.host", "s", "GPUs wait for the host to issue kernels"},
      {"step.breakdown_s.tp", "s", "exposed tensor-parallel collectives"},
      {"step.breakdown_s.cp", "s", "exposed context-parallel exchange"},
      {"step.breakdown_s.pp", "s", "exposed hand-over between pipeline stages"},
      {"step.breakdown_s.dp", "s", "exposed gradient exchange and gathers of sharded weights"},
      {"step.breakdown_s.ep", "s", "exposed all-to-all of experts"},
      {"step.breakdown_s.bubble", "s", "pipeline bubble"},
      {"step.breakdown_s.optimizer", "s", "optimizer"},
      {"step.breakdown_s.jitter", "s", "waits for the slowest member"},
      {"step.breakdown_s.other", "s", "the rest"},

      {"memory.per_gpu_bytes", "B", "need of a GPU of the stage that needs most; null for a profiled workload"},
      {"memory.capacity_bytes", "B", "what a GPU has"},
      {"memory.parts_bytes.*", "B", "the need by part: weights, gradients, optimizer, activations, workspace"},

      {"run.status", "", "finished, or stopped: a failure of its power ended the run before its target"},
      {"run.stopped_at_s", "s", "when it stopped; null for a run that reached its target"},
      {"run.time_to_train_s.mean", "s",
       "run_start to run_stop, mean over the seeded runs; null where one of them did not reach its target"},
      {"run.time_to_train_s.sd", "s", "its standard deviation; null for one run"},
      {"run.time_to_train_s.p5", "s", "quantile 0.05"},
      {"run.time_to_train_s.p50", "s", "median"},
      {"run.time_to_train_s.p95", "s", "quantile 0.95"},
      {"run.time_to_train_s.olympic", "s", "mean without the fastest and the slowest run"},
      {"run.time_to_train_s.official", "s", "olympic mean times the RCP factor: an MLPerf score"},
      {"run.steps", "steps", "training steps"},
      {"run.samples", "samples", "samples trained"},
      {"run.evaluations", "1", "evaluations"},
      {"run.eval_s", "s", "one evaluation after the first, mean; null without evaluations"},
      {"run.eval_first_s", "s", "the first evaluation"},
      {"run.init_s", "s", "initialisation before run_start, outside the clock"},
      {"run.first_step_s", "s", "the first step with its warm-up"},
      {"run.wait_s", "s", "waits inside the clock: warm-up, data, barriers; total of the run"},
      {"run.checkpoint_s", "s", "checkpoints; total of the run"},
      {"run.lost_s", "s", "lost to failures: work done twice, restarts; total of the run"},
      {"run.days_per_1T_tokens", "days", "days for a trillion tokens at the speed of the step"},

      {"run.days_per_1T_tokens_effective", "days", "the same with checkpoints, failures, evaluations and waits"},
      {"run.days", "days", "time to train in days"},
      {"run.tokens", "tokens", "tokens trained"},
      {"run.target_samples", "samples", "samples at which the target is reached, before rounding to an evaluation"},
      {"run.goodput", "1", "share of the run spent in steps that count"},
      {"run.slow_s", "s", "lost to nodes that became slow"},
      {"run.checkpoints", "", "null when the run writes none"},
      {"run.checkpoints.bytes", "B", "one checkpoint"},
      {"run.checkpoints.count", "1", "checkpoints written"},
      {"run.checkpoints.interval_s", "s", "time between two"},
      {"run.checkpoints.write_s", "s", "writing one"},
      {"run.checkpoints.read_s", "s", "reading one after a failure"},
      {"run.checkpoints.blocked_s", "s", "training stands still for one"},
      {"run.checkpoints.wait_s", "s", "waits for a checkpoint that is still being written"},
      {"run.checkpoints.bottleneck", "", "what bounds writing"},
      {"run.failures", "", "null when nothing may fail"},
      {"run.failures.mtbf_s", "s", "mean time between failures of the job"},
      {"run.failures.count", "1", "failures of the run"},
      {"run.failures.by_component.*", "1", "failures by what failed"},
      {"run.failures.rework_s", "s", "work done twice"},
      {"run.failures.restart_s", "s", "restarts"},
      {"run.failures.spare_wait_s", "s", "waits for a spare node"},
      {"run.failures.daly_interval_s", "s", "Daly's checkpoint interval for this mean time between failures"},
      {"run.failures.best_interval_s", "s", "the interval with the highest expected goodput"},
      {"run.failures.best_goodput", "1", "expected goodput at that interval"},
      {"run.failures.present_goodput", "1", "expected goodput at the interval of the scenario"},
      {"run.data", "", "null when data loading is not described"},
      {"run.data.batch_s", "s", "reading the batch of one step"},
      {"run.data.wait_s", "s", "mean wait of a step for it"},
      {"run.data.bottleneck", "", "what bounds data loading"},

      {"runs.count", "1", "seeded runs that distributions, energies and the power of nodes are taken over"},
      {"runs.finished", "1", "of them reached their target"},
      {"runs.samples.*", "samples", "samples trained: mean, standard deviation, quantiles over the runs"},
      {"runs.total_dc_j.*", "J", "energy of nodes and network, the same"},
      {"runs.total_ac_j.*", "J", "energy of the AC side, the same"},
      {"runs.facility_j.*", "J", "energy of the building, the same"},
      {"runs.kg_co2e.*", "kg", "CO2e, the same"},
      {"runs.goodput.*", "1", "goodput, the same"},
      {"runs.lost_s.*", "s", "time lost to failures, the same"},
      {"runs.official_dc_j", "J", "olympic mean of the DC energy times the RCP factor"},
      {"runs.rcp_factor", "1", "factor of the score for converging faster than the reference"},
      {"runs.rcp_rule", "", "where that factor comes from"},
      {"runs.half_width_95_pct", "%", "how far the mean time to train may be off, with 95 % certainty"},
      {"runs.runs_needed_95.*", "1", "runs for a mean that is right to 1, 2 and 5 %"},

      {"power.node_dc_w.mean", "W", "DC power of a node, mean over nodes and run"},
      {"power.node_dc_w.min", "W", "the node with the least mean"},
      {"power.node_dc_w.max", "W", "the node with the highest mean"},
      {"power.node_dc_w.steady", "W", "training steps before the first evaluation"},
      {"power.node_dc_w.idle", "W", "idle"},
      {"power.wait_w", "W", "mean over the waits of the run, a node"},
      {"power.eval_w", "W", "mean over the evaluations of the run, a node"},
      {"power.gpu_w", "W", "one GPU in steady training"},
      {"power.per_node[].node", "", "name of the node"},
      {"power.per_node[].mean_w", "W", "its mean DC power over the run"},
      {"power.per_node[].peak_w", "W", "its peak"},
      {"power.per_node[].dc_j", "J", "its DC energy of the run"},
      {"power.network_w", "W", "the job's share of the switches by the rule; 0 on one node, null where undefined"},
      {"power.network_w_per_node", "W", "the same, a node"},
      {"power.network_rule", "", "the rule of apportionment in force"},
      {"power.network_w_by_rule.*", "W", "what each rule of apportionment gives"},
      {"power.peak_bus_w", "W", "highest power of a bus"},
      {"power.shelf_headroom", "1", "share of a power shelf's rating that is free at its peak"},
      {"power.facility.mean_w", "W", "the building's power for this job, mean over the run"},
      {"power.facility.sd_w", "W", "its standard deviation over time"},
      {"power.facility.least_w", "W", "its least"},
      {"power.facility.p5_w", "W", "quantile 0.05 over time"},
      {"power.facility.p50_w", "W", "median over time"},
      {"power.facility.p95_w", "W", "quantile 0.95 over time"},
      {"power.facility.p99_w", "W", "quantile 0.99 over time"},
      {"power.facility.peak_w", "W", "its peak"},
      {"power.facility.largest_step_w", "W", "largest jump between neighbouring phases; negative: a fall"},
      {"power.facility.largest_step_at_s", "s", "when"},
      {"power.facility.step_swing_w", "W", "highest less lowest inside one training step"},
      {"power.facility.ramps[].window_s", "s", "length of the window that a ramp is taken over"},
      {"power.facility.ramps[].up_w_per_s", "W/s", "steepest rise"},
      {"power.facility.ramps[].up_at_s", "s", "when"},
      {"power.facility.ramps[].down_w_per_s", "W/s", "steepest fall"},
      {"power.facility.ramps[].down_at_s", "s", "when"},
      {"power.delivery.stages[].stage", "", "a stage of power delivery, from the nodes to the feed"},
      {"power.delivery.stages[].units", "1", "its units"},
      {"power.delivery.stages[].output_j", "J", "energy that it delivers"},
      {"power.delivery.stages[].loss_j", "J", "energy that it loses"},
      {"power.delivery.stages[].peak_w", "W", "highest output of one unit"},
      {"power.delivery.stages[].peak_unit", "", "which unit"},
      {"power.delivery.stages[].peak_at_s", "s", "when"},
      {"power.delivery.stages[].rating_w", "W", "rating of a unit; null when not given"},
      {"power.delivery.stages[].headroom_w", "W", "rating less peak"},
      {"power.delivery.stages[].spare_headroom_w", "W", "the same after the failure that its redundancy is to survive"},
      {"power.delivery.stages[].redundant", "", "whether it survives that failure at its peak"},
      {"power.delivery.grid_j", "J", "energy at the feed, without cooling and network"},
      {"power.failures[]", "", "what each power failure of the scenario did"},

      {"energy.nodes_dc_j", "J", "DC energy of the nodes"},
      {"energy.network_j", "J", "energy of the job's share of the switches"},
      {"energy.total_dc_j", "J", "nodes and network"},
      {"energy.rectifier_loss_j", "J", "lost in the rectifiers"},
      {"energy.total_ac_j", "J", "nodes, network and rectifier loss: the AC side"},
      {"energy.facility_j", "J", "the building's: base of the site's PUE times PUE"},
      {"energy.ppue_j", "J", "of which tank cooling: base times (pPUE - 1)"},
      {"energy.dc_per_sample_j", "J", "nodes and network, a sample"},
      {"energy.dc_per_token_j", "J", "nodes and network, a token"},
      {"energy.facility_per_sample_j", "J", "the building, a sample"},
      {"energy.facility_per_token_j", "J", "the building, a token"},
      {"energy.nodes_parts_j.*", "J",
       "the nodes' energy by part; names with gpu_ are activities of the GPUs, their sum and the others' is "
       "nodes_dc_j"},

      {"energy_mlperf_v4_0.nodes_dc_j", "J", "DC energy of the nodes; window of the score"},
      {"energy_mlperf_v4_0.network_j", "J", "energy of the job's share of the switches; window of the score"},
      {"energy_mlperf_v4_0.total_dc_j", "J", "nodes and network; window of the score"},
      {"energy_mlperf_v4_0.rectifier_loss_j", "J", "lost in the rectifiers; window of the score"},
      {"energy_mlperf_v4_0.total_ac_j", "J", "nodes, network and rectifier loss: the AC side; window of the score"},
      {"energy_mlperf_v4_0.facility_j", "J", "the building's: base of the site's PUE times PUE; window of the score"},
      {"energy_mlperf_v4_0.ppue_j", "J", "of which tank cooling: base times (pPUE - 1); window of the score"},
      {"energy_mlperf_v4_0.rcp_factor", "1", "reference convergence factor that the window multiplies by"},

      {"carbon.kg_co2e", "kg", "CO2e of the facility energy, window run, by the grid (location-based)"},
      {"carbon.kg_co2e_mlperf_v4_0", "kg", "the same for the window mlperf_v4_0"},
      {"carbon.intensity_kg_per_kwh", "kg/kWh", "the site's constant intensity"},
      {"carbon.kg_co2e_market", "kg", "by contract (market-based); null when the site does not know"},
      {"carbon.hourly", "", "null when the site has no hourly series"},
      {"carbon.hourly.start", "", "start of the run, with its offset from UTC; null when the scenario names none"},
      {"carbon.hourly.kg_co2e", "kg", "CO2e hour by hour from that start"},
      {"carbon.hourly.kg_co2e_market", "kg", "the same by contract"},
      {"carbon.hourly.cost_usd", "USD", "energy cost hour by hour from that start"},
      {"carbon.hourly.least_carbon_start", "", "the full hour of the series at which a start emits least"},
      {"carbon.hourly.least_kg_co2e", "kg", "CO2e from that hour"},
      {"carbon.hourly.most_kg_co2e", "kg", "CO2e from the worst hour"},
      {"carbon.hourly.least_cost_start", "", "the full hour at which a start costs least"},
      {"carbon.hourly.least_cost_usd", "USD", "cost from that hour"},
      {"carbon.hourly.most_cost_usd", "USD", "cost from the dearest hour"},
      {"cost.energy_usd", "USD", "facility energy at the site's price"},

      {"jobs[].name", "", "the job itself, then each neighbour on the fabric; empty when it is alone"},
      {"jobs[].alone_s", "s", "a step of the job, or one turn of a neighbour, alone on the fabric"},
      {"jobs[].together_s", "s", "with the others"},
      {"jobs[].slow_down", "1", "together over alone"},
      {"jobs[].bottleneck", "", "class of the links that bind it"},
      {"jobs[].narrowest_link", "", "the narrowest link of that class"},

      {"reference.source", "", "where the measurement comes from"},
      {"reference.rows[].quantity", "", "name of the measured quantity"},
      {"reference.rows[].unit", "", "its unit"},
      {"reference.rows[].measured", "", "what was measured, in that unit"},
      {"reference.rows[].predicted", "", "what the simulation gives"},
      {"reference.rows[].error_pct", "%", "predicted over measured, less one"},
      {"reference.rows[].kind", "", "fitted (the profiles saw it), predicted (they did not), given (an input)"},
      {"warnings[]", "", "what a reader of these numbers has to know"}};
  return keys;
}

const OutputKey* find_output_key(const std::string& path) {
  const std::string plain_path = without_indices(path);
  for (const OutputKey& key : output_keys())
    if (stands_for(key.path, plain_path)) return &key;
  return nullptr;
}

bool more_is_better(const std::string& path) {
  return path.find("per_s") != std::string::npos || path == "step.mfu" || path.find("headroom") != std::string::npos;
}

std::string outputs_markdown() {
  std::string out =
      "# Outputs: every key of the result JSON\n\n"
      "Made by `trainwatt schema --markdown docs/reference`; a test holds it against the program.\n\n"
      "`trainwatt run SCENARIO... --json FILE` writes an array, an object for each scenario in the order of the\n"
      "arguments. Values are in SI units; a key that does not apply is null. Keys are added, never renamed. "
      "`sweep.csv`\n"
      "has the same keys as its columns, joined by dots. `[]` stands for each element of a list, `*` for each key of "
      "a\n"
      "map.\n";
  std::string part;
  for (const OutputKey& key : output_keys()) {
    const std::string path = key.path;
    const size_t end = path.find_first_of(".[");
    const std::string here = end == std::string::npos ? "The result" : path.substr(0, end);
    if (here != part) {
      part = here;
      out += fmt::format("\n## {}\n\n| key | unit | meaning |\n|---|---|---|\n", part);
    }
    out += fmt::format("| `{}` | {} | {} |\n", path, key.unit, key.meaning);
  }
  return out;
}

}  // namespace tw::report
