#include "study/power_study.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "facility/facility.hpp"
#include "hardware/activity.hpp"

namespace tw {
namespace {

constexpr double kRampWindows_s[] = {1, 10, 60};  // of frequency response, of regulation, of dispatch

std::optional<HourlyResult> hourly_view(const LoadedScenario& loaded, const PowerRun& power,
                                        const PiecewiseWatts& facility_w) {
  const SiteSeries& series = loaded.site_series;
  if (!series.location_kg_per_kwh && !series.usd_per_kwh) return std::nullopt;
  const Site& site = loaded.scenario.site;
  HourlyResult r;
  if (const auto start = parse_time(loaded.scenario.run.start, parse_utc_offset(site.utc_offset))) {
    const TimedFacility f =
        facility_over_time(site, series, facility_w, power.run_begin_s, power.run_end_s, start->utc_s);
    r.start = loaded.scenario.run.start;
    r.kg_co2e = f.kg_co2e, r.kg_co2e_market = f.kg_co2e_market, r.cost_usd = f.cost_usd;
  }
  if (series.location_kg_per_kwh) {
    const StartChoice c =
        best_start(site, series, facility_w, power.run_begin_s, power.run_end_s, StartObjective::carbon);
    r.least_carbon_start = c.start, r.least_kg_co2e = c.best.kg_co2e, r.most_kg_co2e = c.worst.kg_co2e;
  }
  if (series.usd_per_kwh) {
    const StartChoice c =
        best_start(site, series, facility_w, power.run_begin_s, power.run_end_s, StartObjective::cost);
    r.least_cost_start = c.start, r.least_cost_usd = c.best.cost_usd, r.most_cost_usd = c.worst.cost_usd;
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

}  // namespace

SuppliedRun supply(const Scenario& scenario, Timeline timeline, uint64_t seed) {
  SuppliedRun run;
  run.timeline = std::move(timeline);
  run.options.seed = seed;
  std::vector<PowerFailure> failures = scenario.run.power_failures;
  std::stable_sort(failures.begin(), failures.end(),
                   [](const PowerFailure& a, const PowerFailure& b) { return a.at < b.at; });
  for (const PowerFailure& failure : failures) {
    if (run.stopped) break;
    FailureOutcome outcome = fail_power(scenario.cluster, run.timeline, failure, run.options);
    run.timeline = std::move(outcome.timeline);
    run.options = outcome.options;
    run.stopped = outcome.tripped;
    run.lost_s += outcome.lost_s;
    run.failures.push_back(outcome.text());
  }
  return run;
}

GridResult grid_view(const LoadedScenario& loaded, const SuppliedRun& supplied, const PowerRun& power,
                     const RunModel& model, const EnergyResult& energy, double network_w, double samples) {
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
  g.failures = supplied.failures, g.stopped = supplied.stopped, g.lost_s = supplied.lost_s;

  const double tokens = s.training ? samples * static_cast<double>(s.training->sequence) : 0;
  g.dc_per_sample_j = per(energy.total_dc_j, samples), g.dc_per_token_j = per(energy.total_dc_j, tokens);
  g.facility_per_sample_j = per(energy.facility_j, samples);
  g.facility_per_token_j = per(energy.facility_j, tokens);

  g.step = step_power(s.cluster.node, model.spans, model.quiet, effective_limit(s.cluster.node, std::nullopt),
                      power.nodes.size() > 1, limiter_sees_directions(model));
  // All nodes that train swing together; losses and cooling follow in proportion.
  const double base = s.site.pue_base == PueBase::ac ? 1 + s.cluster.power_delivery.rectifier.proportional_loss : 1;
  g.facility.step_swing_w = (g.step.most_w() - g.step.least_w()) * s.plan.nodes * base * s.site.pue;
  g.hourly = hourly_view(loaded, power, facility_w);
  return g;
}

}  // namespace tw
