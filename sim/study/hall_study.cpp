#include "study/hall_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "core/random.hpp"
#include "network/process.hpp"
#include "power/bus.hpp"
#include "power/network_rule.hpp"
#include "power/node_power.hpp"
#include "study/simulate.hpp"
#include "topology/placement.hpp"

namespace tw {
namespace {

size_t at(int i) {
  return static_cast<size_t>(i);
}

double idle_node_w(const Cluster& cluster) {
  return idle_node(cluster.node, cluster.node.accelerator.board_limit).total();
}

// Steps of a run that are played one by one, twice as many at most.
constexpr double kPlayedSteps = 2000;

// A run of very many steps goes on as it does between its first kPlayedSteps and as many more, with whole intervals of
// evaluations in both: their time and energy, drawn step by step, are as sure as anybody could want.
Result play_long_run(const LoadedScenario& loaded, uint64_t seed) {
  const RunPlan& run = loaded.scenario.run;
  const double gbs = loaded.scenario.plan.gbs;
  double samples = run.samples.value_or(0);
  if (run.steps) samples = static_cast<double>(*run.steps) * gbs;
  if (run.tokens && loaded.scenario.training)
    samples = *run.tokens / static_cast<double>(loaded.scenario.training->sequence);
  double part = kPlayedSteps * gbs;
  const double interval = static_cast<double>(run.evaluation_interval);
  if (interval > 0) part = std::ceil(part / interval) * interval;
  if (!(samples > 2 * part)) return simulate(loaded, {seed, 1, 1});
  const auto of = [&](double length) {
    LoadedScenario shorter = loaded;
    RunPlan& r = shorter.scenario.run;
    r.steps.reset(), r.tokens.reset();
    r.samples = static_cast<std::decay_t<decltype(*r.samples)>>(length);
    return simulate(shorter, {seed, 1, 1});
  };
  const Result first = of(part);
  Result whole = of(2 * part);
  Maybe &time_s = whole.run.time_to_train_s.mean, &mean_w = whole.power.mean;
  if (!time_s || !mean_w || !first.run.time_to_train_s.mean || !first.power.mean) return whole;
  const double more = (samples - 2 * part) / part, first_s = *first.run.time_to_train_s.mean;
  const double all_s = *time_s + more * (*time_s - first_s);
  const double all_j = *time_s * *mean_w + more * (*time_s * *mean_w - first_s * *first.power.mean);
  time_s = all_s, mean_w = all_j / all_s;
  whole.run.steps = std::ceil(samples / gbs);
  return whole;
}

// Of many nodes one, with the mean of their peaks.
void keep_mean_node(PowerResult& power) {
  if (power.per_node.empty()) return;
  double sum_w = 0;
  for (const NodePowerResult& node : power.per_node) sum_w += node.peak_w;
  NodePowerResult mean = power.per_node.front();
  mean.peak_w = sum_w / static_cast<double>(power.per_node.size());
  power.per_node = {mean};
}

// What a hall takes from the run of a scenario. Equal scenarios are simulated once; the run itself, phase by phase,
// stays in the child.
std::vector<Outcome> simulate_each(const LoadedHall& loaded, const HallOptions& options,
                                   const std::function<void(size_t, size_t)>& progress) {
  std::vector<const LoadedScenario*> once;
  std::map<std::string, size_t> place;
  for (const HallKind& kind : loaded.kinds)
    for (const LoadedScenario& one : kind.scenario)
      if (place.emplace(one.sha256, once.size()).second) once.push_back(&one);
  const auto answers = in_children(once.size(),
                                   [&](size_t i) {
                                     Result r = play_long_run(*once[i], options.seed);
                                     r.timeline = {}, r.series = {}, r.power_options = {};
                                     keep_mean_node(r.power), r.power.switches.clear();
                                     return to_bytes(r);
                                   },
                                   {options.jobs, options.deadline_s, {}, progress});
  std::vector<Outcome> outcomes;
  for (const HallKind& kind : loaded.kinds)
    for (const LoadedScenario& one : kind.scenario) outcomes.push_back(outcome_of(answers[place.at(one.sha256)]));
  return outcomes;
}

double work_of(const Outcome& o, const std::string& where) {
  if (!o.result.error.empty() && o.exit_code == static_cast<int>(ExitCode::does_not_fit))
    throw DoesNotFit(fmt::format("{}: {}", where, o.result.error));
  if (!o.result.error.empty()) throw SimulationError(fmt::format("{}: {}", where, o.result.error));
  if (!o.result.run.time_to_train_s.mean || !o.result.power.mean)
    throw SimulationError(fmt::format("{}: the run stops before its target", where));
  return *o.result.run.time_to_train_s.mean;
}

// A narrower uplink makes nothing faster; what looks so is rounding.
std::vector<hall::LinkPoint> link_law(const HallKind& kind, const Outcome* outcomes, const std::string& where) {
  std::vector<hall::LinkPoint> law;
  for (size_t q = 0; q < kind.squeeze.size() && kind.squeeze.size() > 1; ++q) {
    const double work_s = work_of(outcomes[q], where), base_s = *outcomes[0].result.run.time_to_train_s.mean;
    law.push_back({kind.squeeze[q], std::max(law.empty() ? 1 : law.back().slowdown, work_s / base_s),
                   *outcomes[q].result.power.mean});
  }
  return law;
}

// What each kind does under each of its caps.
std::vector<HallKindResult> simulate_kinds(const LoadedHall& loaded, const HallOptions& options,
                                           const std::function<void(size_t, size_t)>& progress) {
  const std::vector<Outcome> outcomes = simulate_each(loaded, options, progress);
  std::vector<HallKindResult> results;
  size_t next = 0;
  for (const HallKind& kind : loaded.kinds) {
    const hall::HallJob& job = loaded.input.jobs[kind.entry];
    // The batteries of buses carry phases above the mean.
    const bool shaved = loaded.input.clusters[at(kind.cluster)].cluster.power_delivery.battery.has_value();
    HallKindResult r;
    r.name = job.name, r.scenario = job.scenario, r.nodes = job.nodes, r.tokens = job.tokens;
    r.start_up_w = idle_node_w(loaded.input.clusters[at(kind.cluster)].cluster);
    if (job.scenario.empty()) {
      r.caps.push_back({0, job.duration.value(), 1, job.node_power.value(), {}, {}});
      for (const hall::GivenPoint& p : job.points)
        r.caps.push_back({p.cap.value(), job.duration.value() * p.slowdown, p.slowdown, p.node_power.value(), {}, {}});
    }
    for (const double cap_w : kind.cap_w) {
      if (job.scenario.empty()) break;
      const Outcome& o = outcomes[next];
      next += kind.squeeze.size();
      const std::string where = fmt::format("{}{}", job.name, cap_w > 0 ? fmt::format(" at {} W", cap_w) : "");
      const double work_s = work_of(o, where), base_s = r.caps.empty() ? work_s : r.caps.front().work_s;
      const HallLaw law{cap_w,
                        work_s,
                        std::max(1.0, work_s / base_s),
                        *o.result.power.mean,
                        o.result.step.time_s,
                        link_law(kind, &o, where),
                        shaved || o.result.power.per_node.empty() ? 0 : o.result.power.per_node.front().peak_w};
      // A cap that takes no less power does nothing.
      if (!r.caps.empty() && law.node_w >= r.caps.back().node_w * (1 - 1e-6)) continue;
      r.caps.push_back(law);
      r.step.push_back(o.result.grid.step);
      if (cap_w > 0) continue;
      r.nodes = o.result.plan.nodes;
      r.start_up_s = o.result.run.init_s.value_or(0);
      if (o.result.power.wait) r.start_up_w = *o.result.power.wait;
      if (o.result.step.tokens_per_s && o.result.step.time_s && o.result.run.steps)
        r.tokens = *o.result.step.tokens_per_s * *o.result.step.time_s * *o.result.run.steps;
    }
    if (job.start_up) r.start_up_s = job.start_up->value();
    if (job.start_up_power) r.start_up_w = job.start_up_power->value();
    results.push_back(std::move(r));
  }
  return results;
}

hall::Cluster cluster_of(const hall::HallCluster& in, const Fabric& fabric) {
  hall::Cluster c;
  c.name = in.name;
  c.nodes = in.cluster.nodes();
  c.spares = in.spares;
  for (int node = 0; node < c.nodes; ++node) c.unit.push_back(std::max(0, unit_of(fabric, node)));
  c.uplink_nodes = uplink_nodes(in.cluster);
  c.idle_w = idle_node_w(in.cluster);
  for (size_t v = 0; v < fabric.vertices.size(); ++v)
    if (fabric.vertices[v].kind == VertexKind::network_switch) {
      const double w = switch_watts(fabric, static_cast<int>(v));
      c.network_w += w;
      c.switches += w > 0 ? 1 : 0;
    }
  for (const Cable& cable : fabric.cables) c.cables += cable.kind == CableKind::nvlink ? 0 : 1;
  // All units of a stage carry the same load: their law together.
  const PowerDelivery& delivery = in.cluster.power_delivery;
  int units = 0;
  c.rated.push_back({"bus", bus_rating_w(delivery), rectifier_law(delivery), {}});
  for (int node = 0; node < c.nodes; ++node) c.rated.front().unit_of.push_back(bus_of(in.cluster, node));
  for (const int bus : c.rated.front().unit_of) units = std::max(units, bus + 1);
  c.rectifiers = rectifier_law(delivery).times(units);
  for (const PowerStage& stage : delivery.upstream) {
    c.rated.push_back({stage.kind, stage.rating.value(), stage_law(stage), {}});
    for (int unit = 0; unit < units; ++unit) c.rated.back().unit_of.push_back(unit / stage.feeds);
    units = (units + stage.feeds - 1) / stage.feeds;
    c.upstream.push_back(stage_law(stage).times(units));
  }
  if (in.node_mtbf.value() > 0) c.node_mtbf_s = in.node_mtbf.value();
  c.repair_s = in.repair.value();
  return c;
}

hall::Cooling cooling_of(const LoadedHall& loaded) {
  hall::Cooling c;
  c.dc_base = loaded.input.site.pue_base == PueBase::dc;
  if (!loaded.input.cooling) {
    c.proportional = loaded.input.site.pue - 1;
    c.of_pue = true;
    return c;
  }
  const hall::CoolingInput& in = *loaded.input.cooling;
  c.fixed_w = in.fixed.value(), c.proportional = in.proportional, c.per_degree = in.per_degree;
  c.above_c = in.above.value(), c.water_l_per_kwh = in.water_l_per_kwh;
  if (in.water_above) c.water_above_c = in.water_above->value();
  return c;
}

void add_jobs(const LoadedHall& loaded, const HallKind& kind, const HallKindResult& law, uint64_t seed,
              std::vector<hall::Job>& jobs) {
  const hall::HallJob& in = loaded.input.jobs[kind.entry];
  // By name: another entry before it does not move its arrivals.
  SplitMix64 dice = random_stream(seed, "hall arrivals of " + in.name);
  double arrival_s = in.arrival.value();
  for (int n = 0; n < in.count; ++n) {
    hall::Job job;
    job.kind = in.name;
    job.name = in.count > 1 ? fmt::format("{}-{}", in.name, n + 1) : in.name;
    job.cluster = kind.cluster, job.nodes = law.nodes, job.arrival_s = arrival_s, job.priority = in.priority;
    if (in.deadline) job.deadline_s = arrival_s + in.deadline->value();
    job.work_s = law.caps.front().work_s;
    job.start_up_s = law.start_up_s, job.start_up_w = law.start_up_w;
    job.checkpoint_s = in.checkpoint.value(), job.write_s = in.checkpoint_write.value();
    for (const HallLaw& cap : law.caps)
      job.points.push_back({cap.cap_w, cap.slowdown, cap.node_w, cap.links, cap.highest_w});
    if (in.carbon_below) job.carbon_below = in.carbon_below->value();
    if (in.price_below) job.price_below = in.price_below->value();
    job.tokens = law.tokens;
    jobs.push_back(std::move(job));
    arrival_s += in.every.value() * (in.random ? -std::log(uniform(dice)) : 1);
  }
}

// Above so many switches times jobs, asking for all jobs at every start takes seconds in all: each is then asked for by
// itself, once for each set of nodes, and scaled down where jobs that share switches would pay more than there is.
constexpr size_t kSharedSwitches = 20000;

class NetworkMeter {
 public:
  NetworkMeter(const LoadedHall& loaded, std::vector<Fabric> fabrics) : fabrics_(std::move(fabrics)) {
    for (const hall::HallCluster& c : loaded.input.clusters) rules_.push_back(*c.network_rule);
    for (const Fabric& fabric : fabrics_) {
      double sum = 0;
      for (size_t v = 0; v < fabric.vertices.size(); ++v)
        if (fabric.vertices[v].kind == VertexKind::network_switch) sum += switch_watts(fabric, static_cast<int>(v));
      all_w_.push_back(sum);
    }
    alone_.resize(fabrics_.size());
  }

  std::vector<double> watts(int cluster, const std::vector<const std::vector<int>*>& nodes) {
    const Fabric& fabric = fabrics_[at(cluster)];
    std::vector<double> list;
    if (nodes.size() * fabric.vertices.size() <= kSharedSwitches) {
      std::vector<NetworkJob> jobs;
      for (const std::vector<int>* job : nodes) jobs.push_back({*job, {}});
      const auto shares = apportion(rules_[at(cluster)], fabric, jobs).value();
      for (const std::vector<SwitchShare>& one : shares) list.push_back(network_power_w(fabric, one));
      return list;
    }
    double sum = 0;
    for (const std::vector<int>* job : nodes) {
      const auto [place, fresh] = alone_[at(cluster)].try_emplace(*job, 0);
      if (fresh) place->second = network_power_w(rules_[at(cluster)], fabric, {{*job, {}}}).value();
      list.push_back(place->second);
      sum += list.back();
    }
    if (sum > all_w_[at(cluster)])
      for (double& w : list) w *= all_w_[at(cluster)] / sum;
    return list;
  }

 private:
  std::vector<Fabric> fabrics_;
  std::vector<NetworkRule> rules_;
  std::vector<double> all_w_;
  std::vector<std::map<std::vector<int>, double>> alone_;
};

}  // namespace

double uplink_nodes(const Cluster& cluster) {
  const FabricType& f = cluster.fabric;
  if (f.kind != "fat_tree" && f.kind != "scalable_units") return hall::kNever;
  const double adapters_Bps = cluster.node.nics * cluster.node.nic_bandwidth.value();
  const double nodes = f.leaves_per_unit * f.uplinks_per_leaf * f.uplink_bandwidth.value() / adapters_Bps;
  return nodes >= f.nodes_per_unit * (1 - 1e-9) ? hall::kNever : nodes;
}

hall::HallPlan hall_plan(const LoadedHall& loaded, const std::vector<HallKindResult>& kinds, uint64_t seed) {
  const hall::HallInput& in = loaded.input;
  hall::HallPlan plan;
  std::vector<Fabric> fabrics;
  for (const hall::HallCluster& cluster : in.clusters) {
    fabrics.push_back(build_fabric(cluster.cluster));
    plan.clusters.push_back(cluster_of(cluster, fabrics.back()));
  }
  const auto meter = std::make_shared<NetworkMeter>(loaded, std::move(fabrics));
  plan.network_shares = [meter](int cluster, const std::vector<const std::vector<int>*>& nodes) {
    return meter->watts(cluster, nodes);
  };
  for (size_t k = 0; k < kinds.size(); ++k) add_jobs(loaded, loaded.kinds[k], kinds[k], seed, plan.jobs);
  plan.queue = in.queue, plan.placing = in.placement, plan.preempt = in.preempt;
  plan.limit_w = loaded.limit_w;
  if (in.budget)
    for (const hall::Keep keep : in.budget->keep) (keep == hall::Keep::cap ? plan.cap : plan.pause) = true;
  if (in.battery) plan.battery = battery_of_bus(*in.battery, hall::kNever);
  plan.cooling = cooling_of(loaded);
  plan.outside_c = loaded.outside_c;
  plan.carbon_kg_per_j = loaded.carbon_kg_per_j, plan.price_per_j = loaded.price_per_j;
  for (const hall::MaintenanceInput& m : in.maintenance) {
    hall::Window w{0, std::vector<int>(at(m.count)), m.at.value(), m.at.value() + m.lasts.value()};
    for (size_t c = 0; c < in.clusters.size(); ++c)
      if (in.clusters[c].name == m.cluster) w.cluster = static_cast<int>(c);
    std::iota(w.nodes.begin(), w.nodes.end(), m.first);
    plan.maintenance.push_back(std::move(w));
  }
  for (const hall::OutageInput& o : in.outages) plan.outages.push_back({o.at.value(), o.at.value() + o.lasts.value()});
  if (in.lasts) plan.end_s = in.lasts->value();
  return plan;
}

HallAnswer simulate_hall(const LoadedHall& loaded, const HallOptions& options,
                         const std::function<void(size_t, size_t)>& progress) {
  HallAnswer answer;
  answer.hall = loaded.input.name;
  answer.inputs_sha256 = loaded.sha256;
  answer.currency = loaded.currency;
  answer.warnings = loaded.warnings;
  answer.kinds = simulate_kinds(loaded, options, progress);
  for (const hall::HallCluster& c : loaded.input.clusters)
    answer.rules["network " + c.name] =
        choice_name(*c.network_rule) + " (of many jobs in a large cluster each by itself)";
  answer.rules["loss"] = "by DC watts of nodes";
  answer.rules["cooling"] = "by watts before cooling";
  answer.rules["idle"] = "by node-seconds held";
  answer.rules["capital"] = "by node-seconds held";
  answer.rules["demand"] = "by energy";
  answer.runs = options.runs;
  std::vector<hall::HallOutcome> runs;
  for (int r = 0; r < options.runs; ++r) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(r);
    const hall::HallPlan plan = hall_plan(loaded, answer.kinds, seed);
    if (r == 0) check_hall(plan);
    runs.push_back(run_hall(plan, seed, r == 0));
    const std::vector<std::string> held = check_covers(loaded, runs.back().end_s);
    if (r == 0) answer.warnings.insert(answer.warnings.end(), held.begin(), held.end());
    if (const auto& late = runs.back().late_for_service; r == 0 && !late.empty())
      answer.warnings.push_back(
          fmt::format("{}{} ran on while nodes were due for maintenance: no checkpoint to stop at", late.front(),
                      late.size() > 1 ? fmt::format(" and {} more", late.size() - 1) : ""));
    count_money(loaded, plan, runs.back());
    if (r == 0) answer.grid = hall_grid_view(loaded, answer.kinds, plan, runs.back());
  }
  if (options.runs > 1) answer.series_of_runs = hall_spreads(runs);
  answer.outcome = std::move(runs.front());
  const std::vector<std::string> unseen = grid_remarks(loaded, answer.grid);
  answer.warnings.insert(answer.warnings.end(), unseen.begin(), unseen.end());
  if (!loaded.input.cooling && !loaded.input.battery &&
      answer.outcome.pue.value_or(0) > loaded.input.site.pue * (1 + 1e-9))
    answer.warnings.push_back(
        fmt::format("the power delivery loses more than a PUE of {} leaves room for: the hall's is {:.4f}",
                    loaded.input.site.pue, *answer.outcome.pue));
  if (!loaded.input.embodied) answer.warnings.push_back("no sourced value of embodied carbon: none is given");
  for (const hall::HallCluster& c : loaded.input.clusters) {
    const auto lacks = [&](const auto& part) { return part && !part->node.empty() && part->node.count(c.name) == 0; };
    if (lacks(loaded.input.embodied))
      answer.warnings.push_back(fmt::format("no value of embodied carbon for nodes of {}: none is given", c.name));
    if (lacks(loaded.input.money))
      answer.warnings.push_back(fmt::format("no price for nodes of {}: no capital cost is given", c.name));
  }
  return answer;
}

}  // namespace tw
