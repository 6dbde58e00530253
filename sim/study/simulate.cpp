#include "study/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "facility/facility.hpp"
#include "network/busy_engine.hpp"
#include "network/collective.hpp"
#include "network/message_level.hpp"
#include "network/metered_engine.hpp"
#include "network/process.hpp"
#include "power/energy_window.hpp"
#include "power/meter.hpp"
#include "power/network_rule.hpp"
#include "power/power_run.hpp"
#include "power/rule_shares.hpp"
#include "run/run_model.hpp"
#include "run/slow_step.hpp"
#include "step/shape_warnings.hpp"
#include "study/fitting_plans.hpp"
#include "study/power_study.hpp"
#include "study/result_warnings.hpp"
#include "study/run_study.hpp"
#include "study/validate.hpp"
#include "topology/placement.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"

namespace tw {
namespace {

PlanResult plan_of(const Scenario& s) {
  const Plan& p = s.plan;
  PlanResult r;
  r.nodes = p.nodes + p.evaluation_nodes;
  r.gpus = r.nodes * s.cluster.node.gpus;
  r.tp = p.tp, r.pp = p.pp, r.vp = p.vp, r.cp = p.cp, r.dp = p.dp, r.ep = p.ep, r.mbs = p.mbs, r.gbs = p.gbs;
  r.ga = s.workload ? 1 : p.ga();
  if (s.network && s.network->experts > 0) r.etp = p.expert_tp(), r.edp = expert_copies(p);
  return r;
}

// The stage that needs most; throws DoesNotFit with the table when it does not fit.
MemoryResult memory_of(const Scenario& s, int& stage) {
  MemoryResult r;
  r.capacity_bytes = s.cluster.node.accelerator.memory.value();
  if (!s.network) return r;
  const PlanMemory most = plan_memory(*s.network, *s.training, s.plan, s.software);
  stage = most.stage;
  r.per_gpu_bytes = most.memory.total();
  r.parts_bytes = most.memory.parts();
  r.allocated_bytes = most.memory.allocated(), r.reserved_bytes = most.memory.reserved;
  const NodeType& node = s.cluster.node;
  if (most.host_bytes > 0) r.host_bytes = most.host_bytes * node.gpus;
  if (node.host_memory.capacity.value() > 0) r.host_capacity_bytes = node.host_memory.capacity.value();
  if (r.host_bytes && r.host_capacity_bytes && *r.host_bytes > *r.host_capacity_bytes)
    throw DoesNotFit(fmt::format(
        "{}: out of host memory: {:.0f} GiB of {:.0f} GiB on each node, {:.0f} GiB for each of its {} GPUs; less of "
        "/training/offload_states or offload_layers, or states sharded over more GPUs",
        s.name, *r.host_bytes / gib, *r.host_capacity_bytes / gib, most.host_bytes / gib, node.gpus));
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

// Visits of stages by micro-batches in one step: each is an event.
constexpr double kMostVisits = 2e7;

void check_size(const Scenario& s, int replicas) {
  const double visits = 2.0 * s.plan.ga() * s.plan.pp * s.plan.vp * replicas;
  if (s.network && visits > kMostVisits)
    throw DoesNotFit(fmt::format(
        "{}: a step of {} micro-batches is {:.2g} visits of stages; at most {:.0g} are simulated: a larger micro-batch "
        "or a smaller global batch",
        s.name, s.plan.ga(), visits, kMostVisits));
}

// Level 3 is an oracle of small jobs.
constexpr int kMostMessageGpus = 256;

void check_level(const Scenario& s, int level) {
  if (level != 3) return;
  if (const int gpus = s.plan.nodes * s.cluster.node.gpus; gpus > kMostMessageGpus)
    throw DoesNotFit(
        fmt::format("{}: level 3 sends every message: at most {} GPUs, not {}; --level 2 treats each "
                    "exchange as one load",
                    s.name, kMostMessageGpus, gpus));
  if (!s.network)
    throw DoesNotFit(fmt::format("{}: level 3 is for networks, not for profiled workloads; --level 1", s.name));
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
    const double peak = a.peak(s.training->precision).value();
    const double gpus = static_cast<double>(s.plan.nodes) * s.cluster.node.gpus;
    r.mfu = model_flops_per_sample(*s.network, *s.training) * *r.samples_per_s / (gpus * peak);
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

// The job, with what its step puts on the cables, and its neighbours, with theirs.
std::vector<NetworkJob> network_jobs(const Scenario& s, const Fabric& fabric, const std::vector<int>& nodes,
                                     const StepNetwork& network, const network::MeteredEngine& meter) {
  std::vector<NetworkJob> jobs{{nodes, std::vector<double>(fabric.cables.size(), 0)}};
  for (const NeighbourJob& job : s.jobs)
    jobs.push_back({place_named(fabric, job.nodes), std::vector<double>(fabric.cables.size(), 0)});
  std::vector<std::vector<double>> link_Bps(jobs.size(),
                                            std::vector<double>(static_cast<size_t>(fabric.link_count()), 0));
  for (size_t c = 0; c < network.classes.size(); ++c) {
    const auto other = std::find(network.others.begin(), network.others.end(), static_cast<int>(c));
    const auto j = other == network.others.end() ? 0 : static_cast<size_t>(other - network.others.begin()) + 1;
    if (j >= jobs.size()) continue;  // background traffic belongs to no job
    const double rate_Bps = meter.rate_Bps(c);
    for (const network::LinkUse& use : network.classes[c].uses) {
      const auto link = static_cast<size_t>(use.link);
      if (link < network.link_ids.size())
        link_Bps[j][static_cast<size_t>(network.link_ids[link])] += use.weight * rate_Bps;
    }
  }
  if (network.other_links) network.other_links(link_Bps.front());
  for (size_t j = 0; j < jobs.size(); ++j)
    for (size_t link = 0; link < static_cast<size_t>(fabric.cable_links()); ++link)
      jobs[j].cable_Bps[link / 2] += link_Bps[j][link];
  return jobs;
}

void fill_power(Result& r, const Scenario& s, const PowerRun& power, const Fabric& fabric,
                const std::vector<NetworkJob>& jobs) {
  PowerResult& p = r.power;
  p.mean = power.mean_w, p.min = power.min_w, p.max = power.max_w, p.steady = power.steady_w, p.idle = power.idle_w;
  p.train = power.train_w;
  p.wait = power.wait_w, p.evaluation = power.evaluation_w, p.gpu_steady = power.gpu_steady_w;
  for (const NodePowerRun& n : power.nodes)
    p.per_node.push_back({fabric.vertices[static_cast<size_t>(n.node)].name, n.mean_w, n.peak_w, n.dc_j});
  p.network_rule = choice_name(*s.network_rule);
  auto shares = shares_by_rule(fabric, jobs);
  for (const auto& [rule, of_rule] : shares)
    p.network_w_by_rule[rule] = of_rule ? Maybe(network_power_w(fabric, *of_rule)) : std::nullopt;
  p.switches = std::move(shares[p.network_rule].value());
  p.network_w = p.network_w_by_rule[p.network_rule];
  p.network_w_per_node = *p.network_w / static_cast<double>(jobs.front().nodes.size());
  p.peak_bus_w = power.peak_bus_w;
  p.shelf_headroom = power.headroom_share;
}

// Amounts in another currency than dollars stand under names that say so.
void move_cost(Result& r, const LoadedScenario& loaded) {
  const std::optional<Price>& price = loaded.scenario.site.price;
  std::string currency = price ? price->currency : loaded.site_series.currency;
  if (currency.empty() || currency == "USD") return;
  for (char& c : currency) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto move = [&](const std::string& name, Maybe& amount) {
    if (amount) r.cost[name + "_" + currency] = std::exchange(amount, std::nullopt);
  };
  move("energy", r.cost["energy_usd"]);
  if (!r.grid.hourly) return;
  move("hourly", r.grid.hourly->cost_usd);
  move("hourly_least", r.grid.hourly->least_cost_usd);
  move("hourly_most", r.grid.hourly->most_cost_usd);
}

// The scenario's measured figures beside the predicted ones.
void fill_reference(Result& result, const Reference& reference) {
  result.reference.source = reference.source;
  for (const Measured& m : reference.rows) {
    ReferenceRow row{m.quantity, m.unit, m.kind, m.value, result_quantity(result, m.quantity), {}};
    row.error_pct = error_pct(row.predicted, m.value);
    result.reference.rows.push_back(std::move(row));
  }
}

// Over all runs; of one alone, what its power says.
void fill_energies(Result& r, const LoadedScenario& loaded, const PlayedRuns& played, const SimulatedRun& run,
                   const PowerRun& power, const RunModel& model) {
  const Scenario& s = loaded.scenario;
  const MlperfWindow& m = s.run.mlperf_v4_0;
  const bool several = played.samples.size() > 1;
  r.series_of_runs = series_result(s, played, r.power.network_w);
  const double rcp = r.series_of_runs.rcp_factor.value_or(1);
  r.run.time_to_train_s = time_distribution(s, played, rcp);
  const EnergyWindow window = several ? mean_window(played, r.power.network_w) : run_window(power, r.power.network_w);
  const FacilityEnergy facility = facility_energy(s.site, window);
  r.energy = energy_of(window, facility);
  r.carbon = {facility.kg_co2e, {}, s.site.carbon_intensity.value() * joules_per_kwh};
  if (played.finished()) {
    const EnergyWindow scored = several ? mean_mlperf_window(s, played, r.power.network_w, rcp)
                                        : mlperf_window(s.cluster, power, r.power.network_w, m.meter_before.value(),
                                                        m.meter_after.value(), rcp);
    const FacilityEnergy scored_facility = facility_energy(s.site, scored);
    r.energy_mlperf_v4_0 = energy_of(scored, scored_facility);
    r.carbon.kg_co2e_mlperf_v4_0 = scored_facility.kg_co2e;
  }
  r.cost["energy_usd"] = facility.cost;
  r.grid = grid_view(loaded, run, power, model, r.energy, r.power.network_w.value_or(0),
                     r.series_of_runs.samples.mean.value_or(run.samples), run.step_s);
  if (facility.kg_co2e_market) r.grid.kg_co2e_market = facility.kg_co2e_market;
  if (several) take_means(r, played);
}

// A figure needs no more than some ten thousand readings, however long the run.
void fill_series(Result& r, const PowerRun& power) {
  Meter meter = dc_meter;
  meter.interval_s = std::max(meter.interval_s, (power.run_end_s - power.run_begin_s) / 50000);
  const NodeSeries series = node_series(power, meter, power.run_begin_s, power.run_end_s);
  r.series = {series.time_s, series.mean_w, series.p5_w, series.p95_w, series.p50_w};
}

// What level 3 does not play one by one, each once.
std::set<std::string> joined_rounds(const StepNetwork& network, const Fabric& fabric) {
  std::set<std::string> all;
  for (const network::ClassParts& parts : network.parts)
    for (const network::ClassPart& part : parts) all.insert(network::joined_rounds(fabric, part));
  all.erase("");
  return all;
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
  const int replicas = options.level >= 2 && s.network ? s.plan.dp : 1;
  check_level(s, options.level);
  check_size(s, replicas);  // first of all: memory counts micro-batches in flight from the schedule's visits
  int stage = 0;
  r.memory = memory_of(s, stage);

  if (s.run.checkpoints) check_capacity(run_inputs(s).step, *s.run.checkpoints, s.name);
  RunInputs in = run_inputs(s);
  const Fabric fabric = build_fabric(s.cluster);
  // The nodes that train, then those that only evaluate.
  const std::vector<int> placed = place(fabric, s.placement, s.plan.nodes + s.plan.evaluation_nodes);
  if (s.run.reliability) in.switches = static_cast<double>(switches_reached(fabric, {placed, {}}).size());
  const Neighbours others{s.jobs, s.traffic};
  std::vector<network::LoadClass> loads =
      neighbour_loads(others, fabric, library_of(s.software, s.cluster.node.accelerator), &r.warnings);
  // Others and single messages name all of their links.
  const auto collectives = step_collectives(in.step, fabric, loads.empty() && options.level != 3);
  StepNetwork network = build_step_network(in.step, collectives, {placed.begin(), placed.begin() + s.plan.nodes},
                                           replicas, std::move(loads), options.level == 3);
  for (const std::string& joined : joined_rounds(network, fabric)) r.warnings.push_back(joined);
  const std::vector<network::Neighbour> neighbours = neighbours_of(others, network);
  // With neighbours on its links, and so always something to share, a job runs on SimGrid.
  const auto links = options.level == 3   ? message_engine(network, in.step, fabric)
                     : neighbours.empty() ? network::fluid_engine(network.links, network.classes)
                                          : network::open_engine(network.links, network.classes);
  network::MeteredEngine metered(*links, network.classes.size());
  network::BusyEngine shared(metered, neighbours);
  network::Engine* const engine = neighbours.empty() ? static_cast<network::Engine*>(&metered) : &shared;
  double alone_s = 0;
  if (!neighbours.empty()) {
    shared.let_neighbours_run(false);
    alone_s = build_run_model(in, *engine, network, options.level).quiet.time_s;
    shared.let_neighbours_run(true);
  }
  metered.reset();
  RunModel model = build_run_model(in, *engine, network, options.level);
  if (!s.run.slow_nodes.empty() || !s.run.slow_cables.empty())
    model.slow_pace = slow_pace(in, model, {placed.begin(), placed.begin() + s.plan.nodes});
  r.step_detail = step_detail(s, model, fabric, metered, stage);
  const std::vector<NetworkJob> jobs = network_jobs(s, fabric, placed, network, metered);
  if (!neighbours.empty())
    r.jobs = job_results(s.name, alone_s, model.quiet.time_s, neighbours, shared.turns(), network, fabric);
  const int runs = options.runs > 0 ? options.runs : planned_runs(s.run);
  in.placed = &placed;
  NoisePools pools;
  const RunSeries whole{&s, &in, &model, engine, options.seed, runs, &pools};
  SimulatedRun run = play_one(whole, 0);

  r.step = step_of(s, run);
  r.run = run_result(s, in, model, run, r.step);
  const PowerRun power = integrate_power(s.cluster, run.timeline, run.power);
  fill_power(r, s, power, fabric, jobs);
  // All runs, the first one included: times, scores, energies and the power of nodes are taken over them.
  PlayedRuns played;
  add_sample(played, s, run);
  play_series(played, whole, options.workers);
  fill_energies(r, loaded, played, run, power, model);
  fill_series(r, power);
  r.timeline = std::move(run.timeline);
  r.power_options = run.power;
  move_cost(r, loaded);
  r.warnings.insert(r.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  warn_about(r, loaded, power);
  for (std::string& warning : run_warnings(s, r, run)) r.warnings.push_back(std::move(warning));
  for (std::string& warning : shape_warnings(in.step)) r.warnings.push_back(std::move(warning));
  r.warnings.insert(r.warnings.end(), collectives->remarks().begin(), collectives->remarks().end());
  fill_reference(r, s.reference);
  return r;
}

Outcome outcome_of(const ChildResult& answer) {
  Outcome o;
  if (answer.error.empty()) o.result = from_bytes(answer.value);
  o.result.error = answer.error;
  o.exit_code = static_cast<int>(answer.code);
  return o;
}

std::vector<Outcome> simulate_all(const std::vector<LoadedScenario>& scenarios, const SimulationOptions& options,
                                  int jobs, double deadline_s, const std::function<void(size_t, size_t)>& progress) {
  const auto answers =
      in_children(scenarios.size(), [&](size_t i) { return to_bytes(simulate(scenarios[i], options)); },
                  {jobs, deadline_s, {}, progress});
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < answers.size(); ++i) {
    Outcome& o = outcomes.emplace_back(outcome_of(answers[i]));
    if (!o.result.error.empty())
      o.result.scenario = scenarios[i].scenario.name;
    else if (o.result.series_of_runs.finished < o.result.series_of_runs.count)  // its row says so
      o.exit_code = static_cast<int>(ExitCode::simulation_failed);
  }
  return outcomes;
}

}  // namespace tw
