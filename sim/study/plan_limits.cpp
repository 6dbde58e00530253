#include "study/plan_limits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "power/network_rule.hpp"
#include "topology/placement.hpp"

namespace tw {

std::string broken_limit(const PlanAnswer& a, const PlanLimits& limits, const std::vector<PlanObjective>& objectives) {
  const Result& r = a.result;
  const auto over = [](const Maybe& value, const std::optional<double>& limit) {
    return value && limit && *value > *limit;
  };
  if (r.series_of_runs.finished < r.series_of_runs.count) return "the run stops before its target";
  if (over(r.run.time_to_train_s.mean, limits.deadline_s)) return "deadline";
  if (over(r.power.peak_bus_w, limits.bus_w)) return "shelf power";
  if (limits.facility_w && !r.power.network_w)
    return fmt::format("facility power unknown: rule {} leaves the switches open", r.power.network_rule);
  if (over(Maybe(r.grid.facility.peak_w), limits.facility_w)) return "facility power";
  for (const PlanObjective objective : objectives)
    if (!objective_value(objective, r)) return choice_name(objective) + " unknown";
  return "";
}

LimitPruning::LimitPruning(const Scenario& scenario, const PlanLimits& limits)
    : scenario_(scenario), limits_(limits), fabric_(build_fabric(scenario.cluster)) {}

std::string LimitPruning::beyond(const PlanCandidate& c) {
  if (limits_.deadline_s && c.time_s * time_.ratio > *limits_.deadline_s) return "deadline";
  if (limits_.bus_w && bus_w(c) * bus_.ratio > *limits_.bus_w) return "shelf power";
  if (limits_.facility_w && facility_w(c) * facility_.ratio > *limits_.facility_w) return "facility power";
  return "";
}

void LimitPruning::learn(const PlanAnswer& a) {
  const Result& r = a.result;
  if (limits_.facility_w && r.power.network_w) facility_.add(r.grid.facility.peak_w / facility_w(a.candidate));
  if (r.power.peak_bus_w) bus_.add(*r.power.peak_bus_w / bus_w(a.candidate));
  time_.add(*r.step.time_s / a.candidate.step_s);
}

void LimitPruning::Least::add(double one) {
  constexpr double margin = 0.97;  // the next may be a little lower than all so far
  ratio = known ? std::min(ratio, margin * one) : margin * one;
  known = true;
}

double LimitPruning::bus_w(const PlanCandidate& c) const {
  return c.node_w * std::min(c.plan.nodes, scenario_.cluster.power_delivery.nodes_per_bus);
}

double LimitPruning::facility_w(const PlanCandidate& c) {
  const auto [at, fresh] = network_w_.try_emplace(c.plan.nodes, 0.0);
  if (fresh) {
    // Before anything is simulated no traffic is known, which by_load asks for: then by ports.
    const std::vector<NetworkJob> job{{place(fabric_, scenario_.placement, c.plan.nodes), {}}};
    const auto w = network_power_w(*scenario_.network_rule, fabric_, job);
    at->second = w ? *w : network_power_w(NetworkRule::as_stated, fabric_, job).value();
  }
  return (c.plan.nodes * c.node_w + at->second) * scenario_.site.pue;
}

}  // namespace tw
