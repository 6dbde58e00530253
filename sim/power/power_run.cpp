#include "power/power_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/sum.hpp"
#include "power/bus.hpp"
#include "power/loss_law.hpp"

namespace tw {
namespace {

struct Span {
  double begin_s = 0, end_s = 0;
};

bool trains(const NodeGroup& group) {
  return std::any_of(group.phases.begin(), group.phases.end(),
                     [](const Phase& p) { return p.kind == PhaseKind::train; });
}

// Training steps of the group, or those before its first evaluation; neighbours joined.
std::vector<Span> train_spans(const NodeGroup& group, bool before_evaluation) {
  std::vector<Span> spans;
  for (const Phase& phase : group.phases) {
    if (before_evaluation && phase.kind == PhaseKind::evaluation && !spans.empty()) break;
    if (phase.kind != PhaseKind::train || !(phase.end_s > phase.begin_s)) continue;
    if (!spans.empty() && spans.back().end_s == phase.begin_s)
      spans.back().end_s = phase.end_s;
    else
      spans.push_back({phase.begin_s, phase.end_s});
  }
  return spans;
}

// What the phases of one group draw.
struct GroupPower {
  PiecewiseWatts dc;
  NodeParts parts_j;  // one node, inside the run
  Sum wait_j, evaluation_j, steady_gpu_j;
  double wait_s = 0, evaluation_s = 0, steady_s = 0;
};

GroupPower group_power(const Cluster& cluster, const Timeline& timeline, const NodeGroup& group, Power board_limit,
                       bool over_fabric) {
  GroupPower power;
  power.dc = PiecewiseWatts(idle_node(cluster.node, board_limit).total());
  if (!group.phases.empty()) power.dc.begin(group.phases.front().begin_s);
  const std::vector<Span> steady = train_spans(group, true);
  const double steady_end_s = steady.empty() ? -std::numeric_limits<double>::infinity() : steady.back().end_s;
  double covered_s = 0;
  for (const Phase& phase : group.phases) {
    const NodeParts parts = phase_node_parts(cluster.node, phase, board_limit, over_fabric);
    const double watts = parts.total();
    power.dc.append(phase.end_s, watts);
    const double inside_s = std::min(phase.end_s, timeline.run_end_s) - std::max(phase.begin_s, timeline.run_begin_s);
    if (!(inside_s > 0)) continue;
    covered_s += inside_s;
    power.parts_j.add(parts, inside_s);
    if (phase.kind == PhaseKind::wait) {
      power.wait_j.add(watts * inside_s);
      power.wait_s += inside_s;
    } else if (phase.kind == PhaseKind::evaluation) {
      power.evaluation_j.add(watts * inside_s);
      power.evaluation_s += inside_s;
    } else if (phase.kind == PhaseKind::train && phase.end_s <= steady_end_s) {
      power.steady_gpu_j.add(parts.gpus.total() / cluster.node.gpus * inside_s);
      power.steady_s += inside_s;
    }
  }
  const double bare_s = timeline.run_end_s - timeline.run_begin_s - covered_s;
  if (bare_s > 0) power.parts_j.add(idle_node(cluster.node, board_limit), bare_s);  // on, but nothing reported
  return power;
}

EnergyParts parts_of(const NodeParts& joules) {
  EnergyParts parts{joules.gpus, {}};
  for (size_t k = 0; k < kNodePartNames.size(); ++k)
    parts.others[std::string(kNodePartNames[k])] = other_parts(joules)[k];
  return parts;
}

std::optional<double> ratio(const Sum& energy, double time_s) {
  if (!(time_s > 0)) return std::nullopt;
  return energy.value() / time_s;
}

// With all its rectifiers: what becomes of a bus that has lost some is the run's to say.
void check_rating(const Cluster& cluster, const BusPowerRun& bus) {
  const PowerDelivery& delivery = cluster.power_delivery;
  const PiecewiseWatts& dc = *bus.supply;
  for (size_t i = 0; i < dc.pieces(); ++i) {
    if (dc.piece_w(i) <= bus_rating_w(delivery)) continue;
    throw DoesNotFit(fmt::format(
        "bus {} of {} (node{} {}) asks for {:.0f} W at {:.3f} s from run_start; its {} rectifiers of {} give {:.0f} W",
        bus.bus, cluster.name, bus.nodes.size() > 1 ? "s" : "", fmt::join(bus.nodes, ", "), dc.piece_w(i),
        dc.piece_begin_s(i), bus_rectifiers(delivery), to_text(delivery.rectifier.rating), bus_rating_w(delivery)));
  }
}

// What a failed part takes from a bus, in rectifiers.
int rectifiers_lost(const PowerDelivery& delivery, const FailedUnit& failure, int bus) {
  if (failure.part == "feed") return bus_rectifiers(delivery);
  if (failure.part == "rectifier") return failure.unit == bus ? failure.count : 0;
  int below = 1;
  for (const PowerStage& stage : delivery.upstream) {
    below *= stage.feeds;
    if (stage.kind == failure.part) return bus / below == failure.unit ? bus_rectifiers(delivery) : 0;
  }
  return 0;
}

// Fills run.buses from run.nodes.
void integrate_buses(const Cluster& cluster, const PowerOptions& options, PowerRun& run) {
  std::map<int, std::vector<size_t>> members;  // bus -> positions in run.nodes
  for (size_t i = 0; i < run.nodes.size(); ++i) members[bus_of(cluster, run.nodes[i].node)].push_back(i);
  // Buses with nodes of the same groups and factors carry the same load: summed once.
  std::map<std::vector<std::pair<int, double>>, std::shared_ptr<const PiecewiseWatts>> known;
  run.failures = options.failures;
  const double duration_s = run.duration_s();
  for (const auto& [index, positions] : members) {
    BusPowerRun bus;
    bus.bus = index;
    for (FailedUnit failure : options.failures)
      if ((failure.count = rectifiers_lost(cluster.power_delivery, failure, index)) > 0)
        bus.failures.push_back(failure);
    std::vector<std::pair<int, double>> key;
    Sum dc_j;
    for (const size_t i : positions) {
      bus.nodes.push_back(run.nodes[i].node);
      key.emplace_back(run.nodes[i].group, run.nodes[i].factor);
      run.nodes[i].bus = static_cast<int>(run.buses.size());
      dc_j.add(run.nodes[i].dc_j);
    }
    std::sort(key.begin(), key.end());
    auto& dc = known[key];
    if (!dc) {
      std::vector<PiecewiseWatts> scaled;
      for (const auto& [group, factor] : key)
        scaled.push_back(run.group_dc[static_cast<size_t>(group)].affine(0, factor));
      std::vector<const PiecewiseWatts*> parts;
      for (const PiecewiseWatts& part : scaled) parts.push_back(&part);
      dc = std::make_shared<PiecewiseWatts>(PiecewiseWatts::sum(parts));
    }
    bus.dc = dc;
    bus.supply = supply_through_battery(cluster.power_delivery, bus);
    check_rating(cluster, bus);
    const PiecewiseWatts::Peak peak = dc->peak(run.run_begin_s, run.run_end_s);
    bus.peak_w = peak.watts;
    bus.peak_at_s = peak.time_s;
    bus.dc_j = dc_j.value();
    bus.mean_w = duration_s > 0 ? bus.dc_j / duration_s : peak.watts;
    bus.loss_j = bus.loss_between_j(cluster.power_delivery, run.run_begin_s, run.run_end_s);
    bus.battery_j = bus.supply == bus.dc ? 0
                                         : bus.supply->integral(run.run_begin_s, run.run_end_s) -
                                               bus.dc->integral(run.run_begin_s, run.run_end_s);
    bus.ac_j = bus.dc_j + bus.battery_j + bus.loss_j;
    run.buses.push_back(std::move(bus));
  }
}

// Of all nodes, group by group.
struct GroupSums {
  NodeParts parts_j;
  Sum wait_j, evaluation_j, any_evaluation_j, gpu_j;
  double wait_s = 0, evaluation_s = 0, any_evaluation_s = 0, gpu_s = 0;
  std::vector<Span> steady, training;  // of the first group that trains

  void add(const NodeGroup& group, const GroupPower& power, double factors) {
    const auto n = static_cast<double>(group.nodes.size());
    parts_j.add(power.parts_j, factors);
    any_evaluation_j.add(power.evaluation_j.value() * factors);
    any_evaluation_s += power.evaluation_s * n;
    if (!trains(group)) return;
    wait_j.add(power.wait_j.value() * factors);
    wait_s += power.wait_s * n;
    evaluation_j.add(power.evaluation_j.value() * factors);
    evaluation_s += power.evaluation_s * n;
    gpu_j.add(power.steady_gpu_j.value() * factors);
    gpu_s += power.steady_s * n;
    if (!steady.empty()) return;
    steady = train_spans(group, true);
    training = train_spans(group, false);
  }
};

void sum_buses(const PowerDelivery& delivery, PowerRun& run) {
  Sum dc_j, loss_j, ac_j, battery_j;
  for (const BusPowerRun& bus : run.buses) {
    battery_j.add(bus.battery_j);
    dc_j.add(bus.dc_j);
    loss_j.add(bus.loss_j);
    ac_j.add(bus.ac_j);
    run.peak_bus_w = std::max(run.peak_bus_w, bus.peak_w);
  }
  run.nodes_dc_j = dc_j.value();
  run.rectifier_loss_j = loss_j.value();
  run.nodes_ac_j = ac_j.value();
  run.battery_j = battery_j.value();
  run.headroom_w = bus_rating_w(delivery) - run.peak_bus_w;
  run.headroom_share = run.headroom_w / bus_rating_w(delivery);
}

void compare_nodes(PowerRun& run) {
  if (run.nodes.empty()) return;
  Sum mean_w;
  run.min_w = run.max_w = run.nodes.front().mean_w;
  for (const NodePowerRun& node : run.nodes) {
    mean_w.add(node.mean_w);
    run.min_w = std::min(run.min_w, node.mean_w);
    run.max_w = std::max(run.max_w, node.mean_w);
    run.peak_w = std::max(run.peak_w, node.peak_w);
  }
  run.mean_w = mean_w.value() / static_cast<double>(run.nodes.size());
}

// Of a node, over spans; nothing where there are none.
std::optional<double> mean_over(const PowerRun& run, const std::vector<Span>& spans) {
  Sum joules;
  double node_s = 0;
  for (const Span& span : spans) {
    for (size_t i = 0; i < run.nodes.size(); ++i) joules.add(run.node_j(i, span.begin_s, span.end_s));
    node_s += (span.end_s - span.begin_s) * static_cast<double>(run.nodes.size());
  }
  return ratio(joules, node_s);
}

}  // namespace

double EnergyParts::total() const {
  Sum sum;
  sum.add(gpus.total());
  for (const auto& [name, joules] : others) sum.add(joules);
  return sum.value();
}

double PowerRun::node_w(size_t i, double time_s) const {
  return nodes[i].factor * group_dc[static_cast<size_t>(nodes[i].group)].at(time_s);
}

double PowerRun::node_j(size_t i, double from_s, double to_s) const {
  return nodes[i].factor * group_dc[static_cast<size_t>(nodes[i].group)].integral(from_s, to_s);
}

PowerRun integrate_power(const Cluster& cluster, const Timeline& timeline, const PowerOptions& options) {
  PowerRun run;
  run.run_begin_s = timeline.run_begin_s;
  run.run_end_s = timeline.run_end_s;
  const Power limit = effective_limit(cluster.node, options.gpu_limit);
  run.idle_w = idle_node(cluster.node, limit).total();
  size_t node_count = 0;
  for (const NodeGroup& group : timeline.groups) node_count += group.nodes.size();

  GroupSums sums;
  for (size_t g = 0; g < timeline.groups.size(); ++g) {
    const NodeGroup& group = timeline.groups[g];
    const GroupPower power = group_power(cluster, timeline, group, limit, node_count > 1);
    double factors = 0;
    for (const int node : group.nodes) {
      NodePowerRun one;
      one.node = node;
      one.group = static_cast<int>(g);
      one.factor = spread_factor(cluster.node, options.seed, node);
      one.dc_j = one.factor * power.dc.integral(run.run_begin_s, run.run_end_s);
      one.peak_w = one.factor * power.dc.peak(run.run_begin_s, run.run_end_s).watts;
      one.mean_w = run.duration_s() > 0 ? one.dc_j / run.duration_s() : one.peak_w;
      factors += one.factor;
      run.nodes.push_back(one);
    }
    sums.add(group, power, factors);
    run.group_dc.push_back(power.dc);
  }
  run.wait_w = ratio(sums.wait_j, sums.wait_s);
  run.evaluation_w = sums.evaluation_s > 0 ? ratio(sums.evaluation_j, sums.evaluation_s)
                                           : ratio(sums.any_evaluation_j, sums.any_evaluation_s);
  run.gpu_steady_w = ratio(sums.gpu_j, sums.gpu_s);
  std::sort(run.nodes.begin(), run.nodes.end(),
            [](const NodePowerRun& a, const NodePowerRun& b) { return a.node < b.node; });
  run.parts = parts_of(sums.parts_j);
  integrate_buses(cluster, options, run);
  sum_buses(cluster.power_delivery, run);
  compare_nodes(run);
  run.steady_w = mean_over(run, sums.steady);
  run.train_w = mean_over(run, sums.training);
  return run;
}

JobEnergy job_energy(const Cluster& cluster, const Timeline& timeline, const PowerOptions& options, double from_s,
                     double to_s) {
  const Power limit = effective_limit(cluster.node, options.gpu_limit);
  size_t node_count = 0;
  for (const NodeGroup& group : timeline.groups) node_count += group.nodes.size();
  Sum dc_j;
  JobEnergy energy;
  NodeParts parts_j;
  std::set<int> buses;
  for (const NodeGroup& group : timeline.groups) {
    const GroupPower power = group_power(cluster, timeline, group, limit, node_count > 1);
    const double group_j = power.dc.integral(from_s, to_s);
    double factors = 0;
    for (const int node : group.nodes) {
      const double factor = spread_factor(cluster.node, options.seed, node);
      factors += factor;
      energy.node_j[node] = group_j * factor;
      buses.insert(bus_of(cluster, node));
    }
    parts_j.add(power.parts_j, factors);
    dc_j.add(group_j * factors);
  }
  energy.parts = parts_of(parts_j);
  energy.nodes_dc_j = dc_j.value();
  const PowerDelivery& delivery = cluster.power_delivery;
  const LossLaw all = rectifier_law(delivery).times(static_cast<double>(buses.size()));
  energy.rectifier_loss_j = std::max(0.0, all.loss_j(energy.nodes_dc_j, to_s - from_s));
  if (options.failures.empty()) return energy;
  // Rectifiers are off, and a battery takes its part: that needs the curves.
  const PowerRun run = integrate_power(cluster, timeline, options);
  Sum exact_j;
  for (const BusPowerRun& bus : run.buses) exact_j.add(bus.loss_between_j(delivery, from_s, to_s));
  energy.rectifier_loss_j = exact_j.value() + run.battery_j;
  return energy;
}

}  // namespace tw
