#include "power/failure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "power/bus.hpp"
#include "power/throttle.hpp"

namespace tw {
namespace {

bool runs_kernels(const Phase& phase) {
  return phase.kind == PhaseKind::train || phase.kind == PhaseKind::first_step || phase.kind == PhaseKind::evaluation;
}

// Phases of a group, cut at `at_s`.
std::vector<Phase> cut_at(const std::vector<Phase>& phases, double at_s) {
  std::vector<Phase> result;
  for (const Phase& phase : phases) {
    if (phase.begin_s < at_s && at_s < phase.end_s) {
      Phase first = phase, second = phase;
      first.end_s = second.begin_s = at_s;
      const double share = (at_s - phase.begin_s) / (phase.end_s - phase.begin_s);
      first.steps = static_cast<int>(std::floor(phase.steps * share));
      second.steps = phase.steps - first.steps;
      result.push_back(first);
      result.push_back(second);
    } else {
      result.push_back(phase);
    }
  }
  return result;
}

// Time of a phase under a lower limit, over its time under the present one.
double phase_stretch(const Cluster& cluster, const Phase& phase, Power present, Power lower) {
  return runs_kernels(phase) ? stretch_of(cluster.node.accelerator, phase.shares, present, lower) : 1;
}

// Monotone map of old times to new ones.
class TimeMap {
 public:
  void add(double from_s, double to_s, double stretch) {
    if (old_.empty()) {
      old_.push_back(from_s);
      new_.push_back(from_s);
    }
    new_.push_back(new_.back() + (to_s - from_s) * stretch);
    old_.push_back(to_s);
  }
  double operator()(double t) const {
    if (old_.empty() || t <= old_.front()) return t;
    if (t >= old_.back()) return new_.back() + (t - old_.back());
    const auto next = std::upper_bound(old_.begin(), old_.end(), t);
    const auto k = static_cast<size_t>(next - old_.begin()) - 1;
    return new_[k] + (t - old_[k]) * (new_[k + 1] - new_[k]) / (old_[k + 1] - old_[k]);
  }

 private:
  std::vector<double> old_, new_;
};

// Splits groups so that `nodes` fill groups of their own.
void split_groups(Timeline& timeline, const std::vector<int>& nodes) {
  std::vector<NodeGroup> groups;
  for (const NodeGroup& group : timeline.groups) {
    NodeGroup hit = group, rest = group;
    hit.nodes.clear();
    rest.nodes.clear();
    for (const int node : group.nodes)
      (std::find(nodes.begin(), nodes.end(), node) != nodes.end() ? hit : rest).nodes.push_back(node);
    if (!rest.nodes.empty()) groups.push_back(rest);
    if (!hit.nodes.empty()) groups.push_back(hit);
  }
  timeline.groups = std::move(groups);
}

// The job ends at `at_s`: what follows did not happen. Work since the last checkpoint is lost.
void stop_at(FailureOutcome& outcome, double at_s) {
  double kept_s = outcome.timeline.run_begin_s;
  for (NodeGroup& group : outcome.timeline.groups) {
    group.phases = cut_at(group.phases, at_s);
    std::erase_if(group.phases, [&](const Phase& p) { return p.begin_s >= at_s; });
    for (const Phase& phase : group.phases)
      if (phase.kind == PhaseKind::checkpoint && phase.end_s < at_s) kept_s = std::max(kept_s, phase.end_s);
  }
  outcome.timeline.run_end_s = std::min(outcome.timeline.run_end_s, at_s);
  outcome.lost_s = std::max(0.0, at_s - kept_s);
}

std::vector<int> nodes_on_buses(const Cluster& cluster, const Timeline& timeline, int first, int last) {
  std::vector<int> nodes;
  for (const NodeGroup& group : timeline.groups)
    for (const int node : group.nodes) {
      const int bus = bus_of(cluster, node);
      if (bus >= first && bus < last) nodes.push_back(node);
    }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

FailureOutcome fail_stage(const Cluster& cluster, FailureOutcome outcome, const PowerFailure& failure, double at_s) {
  int buses = 1;
  std::vector<std::string> kinds;
  for (const PowerStage& stage : cluster.power_delivery.upstream) {
    buses *= stage.feeds;
    kinds.push_back(stage.kind);
    if (stage.kind != failure.stage) continue;
    const std::vector<int> nodes =
        nodes_on_buses(cluster, outcome.timeline, failure.unit * buses, (failure.unit + 1) * buses);
    if (nodes.empty())
      throw InputError(
          {{"power failure", "/unit", fmt::format("{} {} feeds no node of the job", stage.kind, failure.unit),
            "name a unit that does"}});
    if (stage.redundancy != Redundancy::n) return outcome;  // the spare part or the other side carries on
    outcome.overload = outcome.tripped = true;
    outcome.overload_at_s = at_s;
    outcome.nodes_off = nodes;
    stop_at(outcome, at_s);
    return outcome;
  }
  throw InputError({{"power failure", "/stage", fmt::format("\"{}\" is no stage of {}", failure.stage, cluster.name),
                     kinds.empty() ? "the cluster declares none" : fmt::format("stages: {}", fmt::join(kinds, ", "))}});
}

// Nothing comes from the grid for a while: batteries carry their buses, or the first that is empty stops the job.
FailureOutcome fail_feed(const Cluster& cluster, FailureOutcome outcome, const PowerFailure& failure, double at_s) {
  const PowerDelivery& delivery = cluster.power_delivery;
  if (!(failure.lasts.value() > 0))
    throw InputError(
        {{"power failure", "/lasts", "an outage of the feed has no length", "such as \"lasts\": \"10 s\""}});
  const PowerRun before = integrate_power(cluster, outcome.timeline, outcome.options);
  outcome.options.outages.push_back({at_s, at_s + failure.lasts.value()});
  double dark_s = std::numeric_limits<double>::infinity();
  if (!delivery.battery) dark_s = at_s;
  std::map<const PiecewiseWatts*, double> known;  // buses with the same load
  for (const BusPowerRun& bus : before.buses) {
    if (!delivery.battery || !known.try_emplace(bus.dc.get(), 0).second) continue;
    std::vector<std::unique_ptr<Stage>> stages;
    stages.push_back(
        std::make_unique<BatteryShelf>("battery", battery_of_bus(*delivery.battery, bus_rating_w(delivery))));
    const ChainRun chain = run_chain(stages, *bus.dc, bus.dc->begin_s(), bus.dc->end_s(), outcome.options.outages);
    if (!chain.dark.empty()) dark_s = std::min(dark_s, chain.dark_at_s);
  }
  if (dark_s >= outcome.timeline.run_end_s) return outcome;
  outcome.overload = outcome.tripped = true;
  outcome.overload_at_s = dark_s;
  for (const NodePowerRun& node : before.nodes) outcome.nodes_off.push_back(node.node);
  stop_at(outcome, dark_s);
  return outcome;
}

}  // namespace

std::string FailureOutcome::text() const {
  if (tripped)
    return fmt::format("node{} {} go dark at {:.3f} s; the job stops and loses {:.3f} s of work",
                       nodes_off.size() == 1 ? "" : "s", fmt::join(nodes_off, ", "), overload_at_s, lost_s);
  if (overload)
    return fmt::format("node{} {} are held at {:.0f} W a board from {:.3f} s; the job takes {:.3f} s longer",
                       nodes_capped.size() == 1 ? "" : "s", fmt::join(nodes_capped, ", "), gpu_limit_w.value_or(0),
                       overload_at_s, lost_s);
  return "what is left carries the load; the job goes on unchanged";
}

FailureOutcome fail_power(const Cluster& cluster, const Timeline& timeline, const PowerFailure& failure,
                          const PowerOptions& options) {
  const PowerDelivery& delivery = cluster.power_delivery;
  const double at_s = timeline.run_begin_s + failure.at.value();
  FailureOutcome outcome;
  outcome.timeline = timeline;
  outcome.options = options;
  if (failure.part == FailedPart::feed) return fail_feed(cluster, std::move(outcome), failure, at_s);
  if (failure.part == FailedPart::stage) return fail_stage(cluster, std::move(outcome), failure, at_s);

  const std::vector<int> nodes = nodes_on_buses(cluster, timeline, failure.unit, failure.unit + 1);
  if (nodes.empty())
    throw InputError({{"power failure", "/unit", fmt::format("bus {} feeds no node of the job", failure.unit),
                       "name the bus of a node that runs"}});
  const int all = delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
  const int failed =
      std::min(all, failure.count * (failure.part == FailedPart::shelf ? delivery.rectifiers_per_shelf : 1));
  outcome.options.failures.push_back({failure.unit, failed, at_s});
  const double left_w = (all - failed) * delivery.rectifier.rating.value();

  // First moment at which the bus asks for more than is left.
  PowerOptions before = options;
  const PowerRun run = integrate_power(cluster, timeline, before);
  const auto bus =
      std::find_if(run.buses.begin(), run.buses.end(), [&](const BusPowerRun& b) { return b.bus == failure.unit; });
  bool over = false;
  for (size_t i = 0; i < bus->dc->pieces() && !over; ++i)
    if (bus->dc->piece_w(i) > left_w && bus->dc->piece_end_s(i) > at_s &&
        bus->dc->piece_begin_s(i) < timeline.run_end_s) {
      over = true;
      outcome.overload_at_s = std::max(at_s, bus->dc->piece_begin_s(i));
    }
  if (!over) return outcome;
  outcome.overload = true;

  const Power present = effective_limit(cluster.node, options.gpu_limit);
  const NodePower& profile = cluster.node.power;
  const double others_w =
      profile.host_base.value() + profile.nvswitch_load.value() + profile.nic_load.value() + profile.fan_full.value();
  // A hair below what is left, so that rounding cannot put the bus above it.
  const double board_w = ((1 - 1e-9) * left_w / static_cast<double>(nodes.size()) - others_w) / cluster.node.gpus /
                         (1 + profile.conversion_loss) / (1 + 3 * profile.spread);
  const GpuPower& gpu = cluster.node.accelerator.power;
  const double limit_w = board_w / gpu.held_share;
  const double least_w =
      std::max({gpu.spin.value(), gpu.context.value(), profile.gap_power.value_or(gpu.spin).value()});
  if (failure.policy == OverloadPolicy::trip || limit_w <= least_w * 1.05) {
    outcome.tripped = true;
    outcome.nodes_off = nodes;
    outcome.options.failures.back().at_s = at_s;
    stop_at(outcome, outcome.overload_at_s);
    return outcome;
  }

  // The job is synchronous, so all groups go at the pace of the capped nodes.
  const Power lower = watts(limit_w);
  outcome.nodes_capped = nodes;
  outcome.gpu_limit_w = limit_w;
  outcome.options.caps.push_back({nodes, at_s, lower});
  split_groups(outcome.timeline, nodes);
  const auto capped = [&](const NodeGroup& g) {
    return std::find(nodes.begin(), nodes.end(), g.nodes.front()) != nodes.end();
  };
  TimeMap map;
  double slowed_s = 0, plain_s = 0;
  for (NodeGroup& group : outcome.timeline.groups) group.phases = cut_at(group.phases, at_s);
  for (const NodeGroup& group : outcome.timeline.groups) {
    if (!capped(group)) continue;
    for (const Phase& phase : group.phases) {
      const bool after = phase.begin_s >= at_s;
      const double stretch = after ? phase_stretch(cluster, phase, present, lower) : 1;
      map.add(phase.begin_s, phase.end_s, stretch);
      if (after && phase.kind == PhaseKind::train) {
        plain_s += phase.end_s - phase.begin_s;
        slowed_s += (phase.end_s - phase.begin_s) * stretch;
      }
    }
    break;
  }
  if (plain_s > 0) outcome.slowdown = slowed_s / plain_s;
  for (NodeGroup& group : outcome.timeline.groups) {
    const bool held = capped(group);
    for (Phase& phase : group.phases) {
      const double length_s = phase.end_s - phase.begin_s;
      const double begin_s = map(phase.begin_s), end_s = map(phase.end_s);
      const double stretch = length_s > 0 ? (end_s - begin_s) / length_s : 1;
      if (phase.begin_s >= at_s && stretch > 1 && held) {
        phase.shares = lengthened(cluster.node.accelerator, phase.shares, present, lower, stretch);
        phase.parts.clear();  // of other lengths now; the mean mix goes on
      } else if (phase.begin_s >= at_s && stretch > 1) {
        // The others work as before, at their own limit, and then wait for the capped ones.
        if (phase.parts.empty()) phase.parts.push_back({1, phase.shares});
        for (PhasePart& part : phase.parts) part.share /= stretch;
        phase.parts.push_back({1 - 1 / stretch, ActivityTimes::only(Activity::spin)});
        phase.shares = phase.shares.scaled(1 / stretch);
      }
      phase.begin_s = begin_s;
      phase.end_s = end_s;
    }
  }
  outcome.timeline.run_end_s = map(timeline.run_end_s);
  outcome.lost_s = outcome.timeline.run_end_s - timeline.run_end_s;
  return outcome;
}

void PowerFailure::describe(Description<PowerFailure>& d) {
  d.object("power_failure", "A part of the power delivery that fails during the run.");
  d.optional("part", &PowerFailure::part, "what fails");
  d.optional("unit", &PowerFailure::unit, "the bus, or the unit of the stage", between(0, 1e6));
  d.optional("count", &PowerFailure::count, "rectifiers or shelves of the bus that fail", between(1, 1e4));
  d.optional("stage", &PowerFailure::stage, "kind of the upstream stage, as named in power_delivery");
  d.required("at", &PowerFailure::at, "time from run_start");
  d.optional("lasts", &PowerFailure::lasts, "how long a feed is gone");
  d.optional("policy", &PowerFailure::policy, "lower the board limits of the bus's nodes, or let it go dark");
}

}  // namespace tw
