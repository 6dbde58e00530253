#include "study/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "facility/facility.hpp"
#include "network/busy_engine.hpp"
#include "network/process.hpp"
#include "power/energy_window.hpp"
#include "power/meter.hpp"
#include "power/network_rule.hpp"
#include "power/power_run.hpp"
#include "run/run_model.hpp"
#include "step/shape_warnings.hpp"
#include "study/archive.hpp"
#include "study/fitting_plans.hpp"
#include "study/power_study.hpp"
#include "study/reference_rows.hpp"
#include "study/run_study.hpp"
#include "topology/placement.hpp"
#include "workload/operations.hpp"

namespace tw {
namespace {

PlanResult plan_of(const Scenario& s) {
  const Plan& p = s.plan;
  PlanResult r;
  r.nodes = p.nodes + p.evaluation_nodes;
  r.gpus = r.nodes * s.cluster.node.gpus;
  r.tp = p.tp, r.pp = p.pp, r.vp = p.vp, r.cp = p.cp, r.dp = p.dp, r.ep = p.ep, r.mbs = p.mbs, r.gbs = p.gbs;
  r.ga = s.workload ? 1 : p.ga();
  return r;
}

// The stage that needs most; throws DoesNotFit with the table when it does not fit.
MemoryResult memory_of(const Scenario& s) {
  MemoryResult r;
  r.capacity_bytes = s.cluster.node.accelerator.memory.value();
  if (!s.network) return r;
  const PlanMemory most = plan_memory(*s.network, *s.training, s.plan, s.software);
  r.per_gpu_bytes = most.memory.total();
  r.parts_bytes = most.memory.parts();
  if (*r.per_gpu_bytes > *r.capacity_bytes) {
    std::string table;
    for (const auto& [part, size] : r.parts_bytes) table += fmt::format("\n  {:<12} {:8.2f} GiB", part, size / gib);
    const auto nearest = nearest_fitting_plans(s);
    table += nearest.empty() ? "\nno plan on these GPUs fits: more GPUs, or a shorter sequence"
                             : "\nnearest plans that fit:";
    for (const std::string& plan : nearest) table += "\n  " + plan;
    throw DoesNotFit(fmt::format("{}: out of memory: {:.2f} GiB of {:.2f} GiB on each GPU of pipeline stage {}{}",
                                 s.name, *r.per_gpu_bytes / gib, *r.capacity_bytes / gib, most.stage, table));
  }
  return r;
}

double sample_tokens(const Scenario& s) {
  return s.training ? static_cast<double>(s.training->sequence) : 1;
}

StepResult step_of(const Scenario& s, const SimulatedRun& run) {
  StepResult r;
  r.time_s = run.step_s;
  r.samples_per_s = s.plan.gbs / run.step_s;
  r.breakdown_s = run.breakdown;
  if (s.network) {
    r.tokens_per_s = *r.samples_per_s * sample_tokens(s);
    const Accelerator& a = s.cluster.node.accelerator;
    const FlopRate peaks[] = {a.peak_fp32, a.peak_bf16, a.peak_fp8};  // by Precision
    const double peak = peaks[static_cast<size_t>(s.training->precision)].value();
    const double gpus = static_cast<double>(s.plan.nodes) * s.cluster.node.gpus;
    if (peak > 0) r.mfu = model_flops_per_sample(*s.network, *s.training) * *r.samples_per_s / (gpus * peak);
  }
  return r;
}

EnergyResult energy_of(const EnergyWindow& w, const FacilityEnergy& f) {
  EnergyResult r;
  r.nodes_dc_j = w.nodes_dc_j;
  r.network_j = w.network_j, r.total_dc_j = w.total_dc_j, r.rectifier_loss_j = w.rectifier_loss_j;
  r.total_ac_j = w.total_ac_j, r.facility_j = f.facility_j, r.ppue_j = f.ppue_j, r.rcp_factor = w.rcp_factor;
  return r;
}

void fill_power(Result& r, const Scenario& s, const PowerRun& power, const Fabric& fabric,
                const std::vector<int>& nodes) {
  PowerResult& p = r.power;
  p.mean = power.mean_w, p.min = power.min_w, p.max = power.max_w, p.steady = power.steady_w, p.idle = power.idle_w;
  p.train = power.train_w;
  p.wait = power.wait_w, p.evaluation = power.evaluation_w, p.gpu_steady = power.gpu_steady_w;
  for (const NodePowerRun& n : power.nodes)
    p.per_node.push_back({fabric.vertices[static_cast<size_t>(n.node)].name, n.mean_w, n.peak_w, n.dc_j});
  p.network_rule = choice_name(s.network_rule);
  p.network_w_by_rule = network_power_by_rule(fabric, nodes);
  p.network_w = p.network_w_by_rule[p.network_rule];
  if (p.network_w) p.network_w_per_node = *p.network_w / static_cast<double>(nodes.size());
  p.peak_bus_w = power.peak_bus_w;
  p.shelf_headroom = power.headroom_share;
}

void warn_about(Result& r, const Scenario& s) {
  const Accelerator& a = s.cluster.node.accelerator;
  if (!a.transferred_from.empty())
    r.warnings.push_back(
        fmt::format("{}: efficiencies are transferred from {}, not measured", a.name, a.transferred_from));
  for (const std::string& what : r.grid.failures) r.warnings.push_back("power failure: " + what);
  if (r.grid.stopped)
    r.warnings.push_back("the job stopped before its target; its time and energy are those up to that moment");
  // The law between cap and speed is fitted at one limit; nothing was measured below it.
  if (a.board_limit < a.power.fitted_limit)
    r.warnings.push_back(fmt::format(
        "time and power under a cap of {} are an estimate: kernels lengthen with the dynamic power that is left to the "
        "-{:.2f}, fitted on burst against sustained rates at {}",
        to_text(a.board_limit), a.power.throttle_exponent, to_text(a.power.fitted_limit)));
  if (s.network && s.network->layers % (s.plan.pp * s.plan.vp) != 0)
    r.warnings.push_back(
        fmt::format("{} layers do not divide into {} chunks: uneven stages", s.network->layers, s.plan.pp * s.plan.vp));
}

}  // namespace

RunInputs run_inputs(const Scenario& s) {
  RunInputs in;
  in.step = {s.network ? &*s.network : nullptr,
             s.training ? &*s.training : nullptr,
             s.workload ? &*s.workload : nullptr,
             &s.cluster,
             &s.software,
             &s.plan};
  in.run = &s.run;
  return in;
}

Result simulate(const LoadedScenario& loaded, const SimulationOptions& options) {
  const Scenario& s = loaded.scenario;
  Result r;
  r.scenario = s.name;
  r.seed = options.seed;
  r.inputs_sha256 = loaded.sha256;
  r.plan = plan_of(s);
  r.memory = memory_of(s);

  if (s.run.checkpoints) check_capacity(run_inputs(s).step, *s.run.checkpoints, s.name);
  RunInputs in = run_inputs(s);
  const int replicas = options.level >= 2 && s.network ? s.plan.dp : 1;
  const Fabric fabric = build_fabric(s.cluster);
  // The nodes that train, then those that only evaluate.
  const std::vector<int> placed = place(fabric, s.placement, s.plan.nodes + s.plan.evaluation_nodes);
  if (placed.size() > 1) in.switches = static_cast<double>(switch_use(fabric, placed).size());
  const Neighbours others{s.jobs, s.traffic};
  StepNetwork network = build_step_network(in.step, fabric, {placed.begin(), placed.begin() + s.plan.nodes}, replicas,
                                           neighbour_loads(others, fabric));
  const std::vector<network::Neighbour> neighbours = neighbours_of(others, network);
  const auto links = network.classes.empty() ? network::isolated_engine(network.links, network.classes)
                                             : network::open_engine(network.links, network.classes);
  network::BusyEngine shared(*links, neighbours);
  network::Engine* const engine = neighbours.empty() ? links.get() : static_cast<network::Engine*>(&shared);
  double alone_s = 0;
  if (!neighbours.empty()) {
    shared.let_neighbours_run(false);
    alone_s = build_run_model(in, *engine, network, options.level).quiet.time_s;
    shared.let_neighbours_run(true);
  }
  const RunModel model = build_run_model(in, *engine, network, options.level);
  if (!neighbours.empty())
    r.jobs = job_results(s.name, alone_s, model.quiet.time_s, neighbours, shared.turns(), network, fabric);
  const int runs = options.runs > 0 ? options.runs : planned_runs(s.run);
  NoisePools pools;
  const RunSeries whole{&s, &in, &model, engine, &placed, options.seed, runs, &pools};
  SimulatedRun run = play_one(whole, 0);
  const SuppliedRun supplied = supply(s, std::move(run.timeline), options.seed);

  r.step = step_of(s, run);
  r.run = run_result(s, in, model, run, supplied, r.step);
  const PowerRun power = integrate_power(s.cluster, supplied.timeline, supplied.options);
  std::vector<int> nodes;
  for (const NodeGroup& g : supplied.timeline.groups) nodes.insert(nodes.end(), g.nodes.begin(), g.nodes.end());
  fill_power(r, s, power, fabric, nodes);
  const EnergyWindow window = run_window(power, r.power.network_w);
  const MlperfWindow& m = s.run.mlperf_v4_0;
  // All runs, the first one included; times and scores of the result are taken over them.
  const std::vector<RunSample> samples = play_series(whole, sample_of(s, run, supplied), options.workers);
  r.series_of_runs = series_result(s, samples, r.power.network_w);
  const double rcp = r.series_of_runs.rcp_factor.value_or(1);
  r.run.time_to_train_s = time_distribution(s, samples, rcp);
  const EnergyWindow scored =
      mlperf_window(s.cluster, power, r.power.network_w, m.meter_before.value(), m.meter_after.value(), rcp);
  const FacilityEnergy facility = facility_energy(s.site, window), scored_facility = facility_energy(s.site, scored);
  r.energy = energy_of(window, facility);
  r.energy_mlperf_v4_0 = energy_of(scored, scored_facility);
  r.carbon = {facility.kg_co2e, scored_facility.kg_co2e, s.site.carbon_intensity.value() * joules_per_kwh};
  r.cost["energy_usd"] = facility.cost_usd;
  r.grid = grid_view(loaded, supplied, power, model, r.energy, r.power.network_w.value_or(0), run.samples);
  if (facility.kg_co2e_market) r.grid.kg_co2e_market = facility.kg_co2e_market;
  // A figure needs no more than some ten thousand readings, however long the run.
  Meter meter = dc_meter;
  meter.interval_s = std::max(meter.interval_s, (power.run_end_s - power.run_begin_s) / 50000);
  const NodeSeries series = node_series(power, meter, power.run_begin_s, power.run_end_s);
  r.series = {series.time_s, series.mean_w, series.p5_w, series.p95_w, series.p50_w};
  r.timeline = supplied.timeline;
  r.power_options = supplied.options;
  warn_about(r, s);
  for (std::string& warning : run_warnings(s, r, run)) r.warnings.push_back(std::move(warning));
  for (std::string& warning : shape_warnings(in.step)) r.warnings.push_back(std::move(warning));
  fill_reference(r, s.reference);
  return r;
}

std::vector<Outcome> simulate_all(const std::vector<LoadedScenario>& scenarios, const SimulationOptions& options,
                                  int jobs, double deadline_s, const std::function<void(size_t, size_t)>& progress) {
  ChildOptions children;
  children.jobs = jobs;
  children.deadline_s = deadline_s;
  children.progress = progress;
  const auto answers = in_children(
      scenarios.size(), [&](size_t i) { return to_bytes(simulate(scenarios[i], options)); }, children);
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < answers.size(); ++i) {
    Outcome o;
    if (answers[i].error.empty()) {
      o.result = from_bytes(answers[i].value);
    } else {
      o.result.scenario = scenarios[i].scenario.name;
      o.result.error = answers[i].error;
      o.exit_code = static_cast<int>(answers[i].code);
    }
    outcomes.push_back(std::move(o));
  }
  return outcomes;
}

}  // namespace tw
