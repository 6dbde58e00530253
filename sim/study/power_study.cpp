#include "study/power_study.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "facility/facility.hpp"
#include "hardware/activity.hpp"
#include "power/loss_law.hpp"
#include "power/step_limiter.hpp"

namespace tw {
namespace {

constexpr double kRampWindows_s[] = {1, 10, 60};  // of frequency response, of regulation, of dispatch

std::optional<HourlyResult> hourly_view(const LoadedScenario& loaded, const PowerRun& power,
                                        const PiecewiseWatts& facility_w) {
  const SiteSeries& series = loaded.site_series;
  if (!series.location_kg_per_kwh && !series.price_per_kwh) return std::nullopt;
  const Site& site = loaded.scenario.site;
  HourlyResult r;
  if (const auto start = parse_time(loaded.scenario.run.start, parse_utc_offset(site.utc_offset))) {
    const TimedFacility f =
        facility_over_time(site, series, facility_w, power.run_begin_s, power.run_end_s, start->utc_s);
    r.start = loaded.scenario.run.start;
    r.kg_co2e = f.kg_co2e, r.kg_co2e_market = f.kg_co2e_market, r.cost_usd = f.cost;
  }
  if (series.location_kg_per_kwh) {
    const StartChoice c =
        best_start(site, series, facility_w, power.run_begin_s, power.run_end_s, StartObjective::carbon);
    r.least_carbon_start = c.start, r.least_kg_co2e = c.best.kg_co2e, r.most_kg_co2e = c.worst.kg_co2e;
  }
  if (series.price_per_kwh) {
    const StartChoice c =
        best_start(site, series, facility_w, power.run_begin_s, power.run_end_s, StartObjective::cost);
    r.least_cost_start = c.start, r.least_cost_usd = c.best.cost, r.most_cost_usd = c.worst.cost;
  }
  return r;
}

// The busiest bus on all its rectifiers, without one of them (N+1), and without a shelf (2N).
void add_bus_headroom(const PowerDelivery& delivery, const PowerRun& power, std::vector<StageTotals>& stages) {
  const auto busiest = std::max_element(power.buses.begin(), power.buses.end(),
                                        [](const auto& a, const auto& b) { return a.peak_w < b.peak_w; });
  if (busiest == power.buses.end()) return;
  const int all = delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
  for (const auto& [name, left] : {std::pair{"bus, n", all}, std::pair{"bus, n+1", all - 1},
                                   std::pair{"bus, 2n", all - delivery.rectifiers_per_shelf}}) {
    StageTotals t;
    t.stage = name;
    t.units = static_cast<int>(power.buses.size());
    t.peak_w = busiest->peak_w;
    t.peak_unit = "bus-" + std::to_string(busiest->bus);
    t.peak_at_s = busiest->peak_at_s;
    t.rating_w = left * delivery.rectifier.rating.value();
    t.headroom_w = t.spare_headroom_w = t.rating_w - t.peak_w;
    t.redundant = t.headroom_w >= 0;
    stages.push_back(std::move(t));
  }
}

Maybe per(Maybe joules, double count) {
  return joules && count > 0 ? Maybe(*joules / count) : std::nullopt;
}

// Of a board, without limit: kernels of a millisecond are over before any limiter acts.
double densest_kernel_w(const GpuPower& power, const StepOutcome& step) {
  double most_w = power.spin.value();
  for (const ActivityTimes& stage : step.stage_activity)
    for (size_t i = 0; i < kActivities; ++i)
      if (const auto a = static_cast<Activity>(i); stage[a] > 0) most_w = std::max(most_w, power.of(a).value());
  return most_w;
}

// What a node draws beside its boards: host, network, fans.
double rest_w(const StepPower& step) {
  return step.watts.empty() ? 0 : step.watts.front()[5] + step.watts.front()[6];
}

// Watts inside a step, with the boards' limiters in time where they are known.
void add_step(const Scenario& s, const PowerRun& power, const RunModel& model, double step_s, GridResult& g) {
  const NodeType& node = s.cluster.node;
  const Power limit = effective_limit(node, std::nullopt);
  if (power.duration_s() > 0)
    g.node_ac_w = power.nodes_ac_j / power.duration_s() / static_cast<double>(power.nodes.size());
  const auto step = [&](Power held_at, bool each_alone) {
    return step_power(node, model.spans, model.quiet, held_at, power.nodes.size() > 1, each_alone, step_s);
  };
  g.step = step(limit, limiter_sees_directions(model));
  // All nodes that train swing together; losses and cooling follow in proportion.
  const LossLaw rectifiers = rectifier_law(s.cluster.power_delivery);
  const LossLaw law = s.site.pue_base == PueBase::ac ? rectifiers : LossLaw{};
  const auto site_w = [&](double node_w) { return law.input_w(node_w * s.plan.nodes) * s.site.pue; };
  if (node.accelerator.power.limiter && !power.buses.empty()) {
    const LimitedStep limited = limit_in_time(node, step(watts(1e9), true), g.step, limit);
    g.step = limited.steady;
    const double on_bus = static_cast<double>(power.nodes.size()) / static_cast<double>(power.buses.size());
    const double densest_w = densest_kernel_w(node.accelerator.power, model.quiet);
    g.node_peak_w = densest_w * node.gpus * (1 + node.power.conversion_loss) + rest_w(limited.steady);
    g.node_peak_ac_w = rectifiers.input_w(*g.node_peak_w * on_bus) / on_bus;
    g.facility.start_rise_w = site_w(limited.peak_w) - site_w(power.wait_w.value_or(power.idle_w));
  }
  g.facility.step_swing_w = site_w(g.step.most_w()) - site_w(g.step.least_w());
}

// A figure shows some ten thousand pieces at most: those of longer steps are joined, with their mean.
void thin_out(StepPower& step) {
  constexpr size_t kMost = 20000;
  const size_t each = step.begin_s.size() / kMost + 1;
  if (each == 1) return;
  StepPower thin;
  thin.end_s = step.end_s;
  for (size_t i = 0; i < step.begin_s.size(); i += each) {
    const size_t next = std::min(i + each, step.begin_s.size());
    const double end_s = next < step.begin_s.size() ? step.begin_s[next] : step.end_s;
    std::array<double, 7> mean{};
    for (size_t k = i; k < next; ++k) {
      const double part = ((k + 1 < step.begin_s.size() ? step.begin_s[k + 1] : step.end_s) - step.begin_s[k]) /
                          (end_s - step.begin_s[i]);
      for (size_t c = 0; c < mean.size(); ++c) mean[c] += part * step.watts[k][c];
    }
    thin.begin_s.push_back(step.begin_s[i]);
    thin.watts.push_back(mean);
  }
  step = std::move(thin);
}

}  // namespace

GridResult grid_view(const LoadedScenario& loaded, const SimulatedRun& run, const PowerRun& power,
                     const RunModel& model, const EnergyResult& energy, double network_w, double samples,
                     double step_s) {
  const Scenario& s = loaded.scenario;
  GridResult g;
  const PiecewiseWatts facility_w = facility_power(s.cluster, s.site, power, network_w);
  g.facility = power_swings(facility_w, power.run_begin_s, power.run_end_s,
                            {std::begin(kRampWindows_s), std::end(kRampWindows_s)});
  const DeliveryRun delivery = integrate_delivery(s.cluster, power);
  g.stages = delivery.stages;
  g.grid_j = delivery.grid_j;
  add_bus_headroom(s.cluster.power_delivery, power, g.stages);
  for (const auto& [name, activity] : Choices<Activity>::table())
    if (power.parts.gpus[activity] > 0) g.parts_j["gpu_" + name] = power.parts.gpus[activity];
  for (const auto& [name, joules] : power.parts.others) g.parts_j[name] = joules;
  g.failures = run.power_events, g.stopped = run.stopped, g.lost_s = run.supply_lost_s;

  const double tokens = s.training ? samples * static_cast<double>(s.training->sequence) : 0;
  g.dc_per_sample_j = per(energy.total_dc_j, samples), g.dc_per_token_j = per(energy.total_dc_j, tokens);
  g.facility_per_sample_j = per(energy.facility_j, samples);
  g.facility_per_token_j = per(energy.facility_j, tokens);

  add_step(s, power, model, step_s, g);
  g.hourly = hourly_view(loaded, power, facility_w);
  thin_out(g.step);
  return g;
}

}  // namespace tw
