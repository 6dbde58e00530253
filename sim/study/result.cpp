#include "study/result.hpp"

#include "core/outputs.hpp"
#include "core/version.hpp"
#include "power/network_rule.hpp"

namespace tw {

void PlanResult::describe(Outputs<PlanResult>& d) {
  d.output("nodes", &PlanResult::nodes, "nodes", "nodes of the job");
  d.output("gpus", &PlanResult::gpus, "GPUs", "GPUs of the job");
  d.output("tp", &PlanResult::tp, "1", "tensor parallelism");
  d.output("pp", &PlanResult::pp, "1", "pipeline parallelism");
  d.output("vp", &PlanResult::vp, "1", "virtual pipeline chunks a stage");
  d.output("cp", &PlanResult::cp, "1", "context parallelism");
  d.output("dp", &PlanResult::dp, "1", "data parallelism");
  d.output("ep", &PlanResult::ep, "1", "expert parallelism");
  d.output("mbs", &PlanResult::mbs, "samples", "micro-batch size");
  d.output("gbs", &PlanResult::gbs, "samples", "global batch size");
  d.output("ga", &PlanResult::ga, "1", "gradient accumulation: micro-batches of a rank in one step");
  d.output("etp", &PlanResult::etp, "1", "tensor parallelism of an expert; null: no experts");
  d.output("edp", &PlanResult::edp, "1", "ranks of a stage that hold the same experts; null: no experts");
}

void StepResult::describe(Outputs<StepResult>& d) {
  d.output("time_s", &StepResult::time_s, "s", "one training step, mean");
  d.output("tokens_per_s", &StepResult::tokens_per_s, "tokens/s",
           "training throughput; null where samples have no tokens");
  d.output("samples_per_s", &StepResult::samples_per_s, "samples/s", "training throughput");
  d.output("mfu", &StepResult::mfu, "1",
           "model FLOPs utilisation: full-attention model FLOPs without recomputation and without weight gradients of "
           "frozen weights, over the dense peak of the GEMM precision");
  d.output("breakdown_s", &StepResult::breakdown_s);
}

void MemoryResult::describe(Outputs<MemoryResult>& d) {
  d.output("per_gpu_bytes", &MemoryResult::per_gpu_bytes, "B",
           "need of a GPU of the stage that needs most; null for a profiled workload");
  d.output("capacity_bytes", &MemoryResult::capacity_bytes, "B", "what a GPU has");
  d.output("parts_bytes", &MemoryResult::parts_bytes, "B",
           "the need by part at the step's peak: weights, gradients, optimizer, activations, logits, gathered (whole "
           "weights of sharded layers, buffers of their exchange), workspace, context");
  d.output("allocated_bytes", &MemoryResult::allocated_bytes, "B", "the need without the process's context");
  d.output("reserved_bytes", &MemoryResult::reserved_bytes, "B",
           "what a caching allocator takes for it, which keeps the most of each stream");
  d.output(
      "host_bytes", &MemoryResult::host_bytes, "B",
      "what waits in a node's host memory, states and activations, with its pinned copies; null where nothing does");
  d.output("host_capacity_bytes", &MemoryResult::host_capacity_bytes, "B",
           "host memory of a node; null where the cluster does not say");
}

void Distribution::describe(Outputs<Distribution>& d) {
  d.output("mean", &Distribution::mean, "",
           "run_start to run_stop, mean over the seeded runs; null where one of them did not reach its target");
  d.output("sd", &Distribution::sd, "", "its standard deviation; null for one run");
  d.output("p5", &Distribution::p5, "", "quantile 0.05");
  d.output("p50", &Distribution::p50, "", "median");
  d.output("p95", &Distribution::p95, "", "quantile 0.95");
  d.output("olympic", &Distribution::olympic, "", "mean without the fastest and the slowest run");
  d.output("official", &Distribution::official, "", "olympic mean times the RCP factor: an MLPerf score");
}

void Spread::describe(Outputs<Spread>& d) {
  d.output("mean", &Spread::mean, "", "mean over the runs");
  d.output("sd", &Spread::sd, "", "standard deviation over the runs; null for one run");
  d.output("p5", &Spread::p5, "", "quantile 0.05 over the runs");
  d.output("p50", &Spread::p50, "", "median over the runs");
  d.output("p95", &Spread::p95, "", "quantile 0.95 over the runs");
}

void CheckpointResult::describe(Outputs<CheckpointResult>& d) {
  d.null_without(&CheckpointResult::bytes, "null when the run writes none");
  d.output("bytes", &CheckpointResult::bytes, "B", "one checkpoint");
  d.output("count", &CheckpointResult::count, "1", "checkpoints written").whole();
  d.output("interval_s", &CheckpointResult::interval_s, "s", "time between two");
  d.output("write_s", &CheckpointResult::write_s, "s", "writing one");
  d.output("read_s", &CheckpointResult::read_s, "s", "reading one after a failure");
  d.output("blocked_s", &CheckpointResult::blocked_s, "s", "training stands still for one");
  d.output("wait_s", &CheckpointResult::wait_s, "s", "waits for a checkpoint that is still being written");
  d.output("bottleneck", &CheckpointResult::bottleneck, "", "what bounds writing");
}

void FailuresResult::describe(Outputs<FailuresResult>& d) {
  d.null_without(&FailuresResult::count, "null when nothing may fail");
  d.output("mtbf_s", &FailuresResult::mtbf_s, "s", "mean time between failures of the job");
  d.output("count", &FailuresResult::count, "1", "failures of the run").whole();
  d.output("by_component", &FailuresResult::by_component, "1", "failures by what failed");
  d.output("rework_s", &FailuresResult::rework_s, "s", "work done twice");
  d.output("restart_s", &FailuresResult::restart_s, "s", "restarts");
  d.output("spare_wait_s", &FailuresResult::spare_wait_s, "s", "waits for a spare node");
  d.output("daly_interval_s", &FailuresResult::daly_interval_s, "s",
           "Daly's checkpoint interval for this mean time between failures");
  d.output("best_interval_s", &FailuresResult::best_interval_s, "s", "the interval with the highest expected goodput");
  d.output("best_goodput", &FailuresResult::best_goodput, "1", "expected goodput at that interval");
  d.output("present_goodput", &FailuresResult::present_goodput, "1",
           "expected goodput at the interval of the scenario");
}

void DataResult::describe(Outputs<DataResult>& d) {
  d.null_without(&DataResult::batch_s, "null when data loading is not described");
  d.output("batch_s", &DataResult::batch_s, "s", "reading the batch of one step");
  d.output("wait_s", &DataResult::wait_s, "s", "mean wait of a step for it");
  d.output("bottleneck", &DataResult::bottleneck, "", "what bounds data loading");
}

void SeriesResult::describe(Outputs<SeriesResult>& d) {
  d.output("count", &SeriesResult::count, "1",
           "seeded runs that distributions, energies and the power of nodes are taken over");
  d.output("finished", &SeriesResult::finished, "1", "of them reached their target");
  d.output("samples", &SeriesResult::samples, "samples", "samples trained");
  d.output("total_dc_j", &SeriesResult::total_dc_j, "J", "energy of nodes and network");
  d.output("total_ac_j", &SeriesResult::total_ac_j, "J", "energy of the AC side");
  d.output("facility_j", &SeriesResult::facility_j, "J", "energy of the building");
  d.output("kg_co2e", &SeriesResult::kg_co2e, "kg", "CO2e");
  d.output("goodput", &SeriesResult::goodput, "1", "goodput");
  d.output("lost_s", &SeriesResult::lost_s, "s", "time lost to failures");
  d.output("official_dc_j", &SeriesResult::official_dc_j, "J",
           "olympic mean of the DC energy times the RCP factor; null for fewer than three runs");
  d.output("rcp_factor", &SeriesResult::rcp_factor, "1",
           "factor of the score for converging faster than the reference");
  d.output("rcp_rule", &SeriesResult::rcp_rule, "", "where that factor comes from").null_if_empty();
  d.output("half_width_95_pct", &SeriesResult::half_width_pct, "%",
           "how far the mean time to train may be off, with 95 % certainty; null for one run");
  d.output("runs_needed_95.1_pct", &SeriesResult::needed_1pct, "1", "runs for a mean that is right to 1 %").whole();
  d.output("runs_needed_95.2_pct", &SeriesResult::needed_2pct, "1", "runs for a mean that is right to 2 %").whole();
  d.output("runs_needed_95.5_pct", &SeriesResult::needed_5pct, "1", "runs for a mean that is right to 5 %").whole();
}

void RunResult::describe(Outputs<RunResult>& d) {
  d.output("status", &RunResult::status, "",
           "finished, or stopped: a failure of its power ended the run before its target");
  d.output("stopped_at_s", &RunResult::stopped_at_s, "s", "when it stopped; null for a run that reached its target");
  d.output("time_to_train_s", &RunResult::time_to_train_s, "s");
  d.output("steps", &RunResult::steps, "steps", "training steps").whole();
  d.output("samples", &RunResult::samples, "samples", "samples trained").whole();
  d.output("evaluations", &RunResult::evaluations, "1", "evaluations").whole();
  d.output("eval_s", &RunResult::eval_s, "s", "one evaluation after the first, mean; null without evaluations");
  d.output("eval_first_s", &RunResult::eval_first_s, "s", "the first evaluation; null without evaluations");
  d.output("init_s", &RunResult::init_s, "s", "initialisation before run_start, outside the clock");
  d.output("first_step_s", &RunResult::first_step_s, "s", "the first step with its warm-up");
  d.output("wait_s", &RunResult::wait_s, "s", "waits inside the clock: warm-up, data, barriers; total of the run");
  d.output("checkpoint_s", &RunResult::checkpoint_s, "s", "checkpoints; total of the run");
  d.output("lost_s", &RunResult::lost_s, "s", "lost to failures: work done twice, restarts; total of the run");
  d.output("days_per_1T_tokens", &RunResult::days_per_1T_tokens, "d",
           "days for a trillion tokens at the speed of the step");
  d.output("days_per_1T_tokens_effective", &RunResult::days_per_1T_tokens_effective, "d",
           "the same with checkpoints, failures, evaluations and waits");
  d.output("days", &RunResult::days, "d", "time to train in days");
  d.output("tokens", &RunResult::tokens, "tokens", "tokens trained").whole();
  d.output("target_samples", &RunResult::target_samples, "samples",
           "samples at which the target is reached, before rounding to an evaluation");
  d.output("goodput", &RunResult::goodput, "1", "share of the run spent in steps that count");
  d.output("slow_s", &RunResult::slow_s, "s", "lost to nodes and cables that became slow");
  d.output("checkpoints", &RunResult::checkpoints);
  d.output("failures", &RunResult::failures);
  d.output("data", &RunResult::data);
}

void NodePowerResult::describe(Outputs<NodePowerResult>& d) {
  d.output("node", &NodePowerResult::node, "", "name of the node");
  d.output("mean_w", &NodePowerResult::mean_w, "W", "its mean DC power over the run");
  d.output("peak_w", &NodePowerResult::peak_w, "W", "its peak");
  d.output("dc_j", &NodePowerResult::dc_j, "J", "its DC energy of the run");
}

void PowerResult::describe(Outputs<PowerResult>& d) {
  d.output("node_dc_w.mean", &PowerResult::mean, "W", "DC power of a node, mean over nodes and run");
  d.output("node_dc_w.min", &PowerResult::min, "W", "the node with the least mean");
  d.output("node_dc_w.max", &PowerResult::max, "W", "the node with the highest mean");
  d.output("node_dc_w.steady", &PowerResult::steady, "W", "training steps before the first evaluation");
  d.output("node_dc_w.idle", &PowerResult::idle, "W", "idle");
  d.output("wait_w", &PowerResult::wait, "W", "mean over the waits of the run, a node");
  d.output("eval_w", &PowerResult::evaluation, "W", "mean over the evaluations of the run, a node");
  d.output("gpu_w", &PowerResult::gpu_steady, "W", "one GPU in steady training");
  d.output("per_node", &PowerResult::per_node);
  d.output("network_w", &PowerResult::network_w, "W",
           "the job's share of the switches by the rule; 0 on one node, null where undefined");
  d.output("network_w_per_node", &PowerResult::network_w_per_node, "W", "the same, a node");
  d.output("network_rule", &PowerResult::network_rule, "", "the rule of apportionment in force").null_if_empty();
  for (const auto& entry : Choices<NetworkRule>::table())
    d.computed(
        "network_w_by_rule." + entry.first,
        [rule = entry.first](const PowerResult& p) {
          const auto found = p.network_w_by_rule.find(rule);
          return found == p.network_w_by_rule.end() ? std::nullopt : found->second;
        },
        "W", "what this rule of apportionment gives");
  d.output("peak_bus_w", &PowerResult::peak_bus_w, "W", "highest power of a bus");
  d.output("shelf_headroom", &PowerResult::shelf_headroom, "1",
           "share of a power shelf's rating that is free at its peak");
  d.carried("by_rule", &PowerResult::network_w_by_rule);
  d.carried("switches", &PowerResult::switches);
  d.carried("train_w", &PowerResult::train, "W",
            "whenever training steps run, mean over all nodes; not written, for rows of measurements");
}

void EnergyResult::describe(Outputs<EnergyResult>& d) {
  d.output("nodes_dc_j", &EnergyResult::nodes_dc_j, "J", "DC energy of the nodes");
  d.output("network_j", &EnergyResult::network_j, "J", "energy of the job's share of the switches");
  d.output("total_dc_j", &EnergyResult::total_dc_j, "J", "nodes and network");
  d.output("rectifier_loss_j", &EnergyResult::rectifier_loss_j, "J",
           "lost in the rectifiers, with what batteries of the buses took and have not given back");
  d.output("total_ac_j", &EnergyResult::total_ac_j, "J", "nodes, network and rectifier loss: the AC side");
  d.output("facility_j", &EnergyResult::facility_j, "J", "the building's: base of the site's PUE times PUE");
  d.output("ppue_j", &EnergyResult::ppue_j, "J", "of which tank cooling: base times (pPUE - 1)");
  d.carried("window_rcp_factor", &EnergyResult::rcp_factor);
}

void CarbonResult::describe(Outputs<CarbonResult>& d) {
  d.output("kg_co2e", &CarbonResult::kg_co2e, "kg",
           "CO2e of the facility energy, window run, by the grid (location-based)");
  d.output("kg_co2e_mlperf_v4_0", &CarbonResult::kg_co2e_mlperf_v4_0, "kg", "the same for the window mlperf_v4_0");
  d.output("intensity_kg_per_kwh", &CarbonResult::intensity_kg_per_kwh, "kg/kWh", "the site's constant intensity");
}

void JobResult::describe(Outputs<JobResult>& d) {
  d.output("name", &JobResult::name, "", "the job itself, then each neighbour on the fabric; empty when it is alone");
  d.output("alone_s", &JobResult::alone_s, "s", "a step of the job, or one turn of a neighbour, alone on the fabric");
  d.output("together_s", &JobResult::together_s, "s", "with the others");
  d.output("slow_down", &JobResult::slow_down, "1", "together over alone");
  d.output("bottleneck", &JobResult::bottleneck, "", "class of the links that bind it").null_if_empty();
  d.output("narrowest_link", &JobResult::narrowest, "", "the narrowest link of that class").null_if_empty();
}

void ReferenceRow::describe(Outputs<ReferenceRow>& d) {
  d.output("quantity", &ReferenceRow::quantity, "", "name of the measured quantity");
  d.output("unit", &ReferenceRow::unit, "", "its unit");
  d.output("measured", &ReferenceRow::measured, "", "what was measured, in that unit");
  d.output("predicted", &ReferenceRow::predicted, "", "what the simulation gives");
  d.output("error_pct", &ReferenceRow::error_pct, "%", "predicted over measured, less one");
  d.output("kind", &ReferenceRow::kind, "", "fitted (the profiles saw it), predicted (they did not), given (an input)");
}

void ReferenceResult::describe(Outputs<ReferenceResult>& d) {
  d.output("source", &ReferenceResult::source, "", "where the measurement comes from").null_if_empty();
  d.output("rows", &ReferenceResult::rows);
}

void PowerSeries::describe(Outputs<PowerSeries>& d) {
  d.output("time_s", &PowerSeries::time_s);
  d.output("mean_w", &PowerSeries::mean_w);
  d.output("p5_w", &PowerSeries::p5_w);
  d.output("p95_w", &PowerSeries::p95_w);
  d.output("p50_w", &PowerSeries::p50_w);
}

void HourlyResult::describe(Outputs<HourlyResult>& d) {
  d.null_meaning("null when the site has no hourly series");
  d.output("start", &HourlyResult::start, "",
           "start of the run, with its offset from UTC; null when the scenario names none")
      .null_if_empty();
  d.output("kg_co2e", &HourlyResult::kg_co2e, "kg", "CO2e hour by hour from that start");
  d.output("kg_co2e_market", &HourlyResult::kg_co2e_market, "kg", "the same by contract");
  d.output("cost_usd", &HourlyResult::cost_usd, "USD", "energy cost hour by hour from that start");
  d.output("least_carbon_start", &HourlyResult::least_carbon_start, "",
           "the full hour of the series at which a start emits least")
      .null_if_empty();
  d.output("least_kg_co2e", &HourlyResult::least_kg_co2e, "kg", "CO2e from that hour");
  d.output("most_kg_co2e", &HourlyResult::most_kg_co2e, "kg", "CO2e from the worst hour");
  d.output("least_cost_start", &HourlyResult::least_cost_start, "", "the full hour at which a start costs least")
      .null_if_empty();
  d.output("least_cost_usd", &HourlyResult::least_cost_usd, "USD", "cost from that hour");
  d.output("most_cost_usd", &HourlyResult::most_cost_usd, "USD", "cost from the dearest hour");
}

// Its keys stand in other parts of the result.
void GridResult::describe(Outputs<GridResult>& d) {
  d.output("power.node_ac_w", &GridResult::node_ac_w, "W", "a node at the AC side, mean over nodes and run");
  d.output(
      "power.node_peak_w", &GridResult::node_peak_w, "W",
      "a node on its DC bus while all its boards run their densest kernel, before any limiter acts: what meters that "
      "sample see at most; null where the accelerator's limiter is not known");
  d.output("power.node_peak_ac_w", &GridResult::node_peak_ac_w, "W", "the same at the AC side of its bus");
  d.output("power.facility", &GridResult::facility);
  d.output("power.delivery.stages", &GridResult::stages);
  d.output("power.delivery.grid_j", &GridResult::grid_j, "J", "energy at the feed, without cooling and network");
  d.output("power.failures", &GridResult::failures, "", "what each power failure of the scenario did");
  d.output("energy.dc_per_sample_j", &GridResult::dc_per_sample_j, "J", "nodes and network, a sample");
  d.output("energy.dc_per_token_j", &GridResult::dc_per_token_j, "J", "nodes and network, a token");
  d.output("energy.facility_per_sample_j", &GridResult::facility_per_sample_j, "J", "the building, a sample");
  d.output("energy.facility_per_token_j", &GridResult::facility_per_token_j, "J", "the building, a token");
  d.output("energy.nodes_parts_j", &GridResult::parts_j, "J",
           "the nodes' energy by part; names with gpu_ are activities of the GPUs, their sum and the others' is "
           "nodes_dc_j");
  d.output("carbon.kg_co2e_market", &GridResult::kg_co2e_market, "kg",
           "by contract (market-based); null when the site does not know");
  d.output("carbon.hourly", &GridResult::hourly);
  d.carried("stopped", &GridResult::stopped);
  d.carried("lost_s", &GridResult::lost_s);
  d.carried("step_power", &GridResult::step);
}

void Result::describe(Outputs<Result>& d) {
  d.computed(
      "trainwatt", [](const Result&) { return std::string(version()); }, "", "version of the program");
  d.output("scenario", &Result::scenario, "", "name of the scenario");
  d.carried("error", &Result::error, "", "why the scenario failed; then there are no other keys but scenario");
  d.output("seed", &Result::seed, "1", "seed of all random draws");
  d.output("inputs_sha256", &Result::inputs_sha256, "",
           "hash of the effective inputs: the same hash, version and seed give the same bytes");
  d.output("plan", &Result::plan);
  d.output("step", &Result::step);
  d.output("memory", &Result::memory);
  d.output("run", &Result::run);
  d.output("runs", &Result::series_of_runs);
  d.output("power", &Result::power);
  d.output("energy", &Result::energy);
  d.output("energy_mlperf_v4_0", &Result::energy_mlperf_v4_0, "", "window of the score");
  d.computed(
      "energy_mlperf_v4_0.rcp_factor", [](const Result& r) { return r.energy_mlperf_v4_0.rcp_factor; }, "1",
      "reference convergence factor that the window multiplies by");
  d.output("carbon", &Result::carbon);
  d.output("", &Result::grid);
  d.output("cost", &Result::cost, "", "facility energy at the site's price; names end with the currency");
  d.output("jobs", &Result::jobs);
  d.output("reference", &Result::reference);
  d.computed(
      "warnings",
      [](const Result& r) {
        std::vector<std::string> all = r.warnings;
        for (std::string& warning : reference_warnings(r)) all.push_back(std::move(warning));
        return all;
      },
      "", "what a reader of these numbers has to know");
  d.carried("own_warnings", &Result::warnings);
  d.carried("timeline", &Result::timeline);
  d.carried("power_options", &Result::power_options);
  d.carried("series", &Result::series);
  d.carried("step_detail", &Result::step_detail);
}

std::string to_bytes(const Result& result) {
  return packed(result);
}

Result from_bytes(const std::string& bytes) {
  return unpacked<Result>(bytes);
}

}  // namespace tw
