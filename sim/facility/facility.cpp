#include "facility/facility.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/sum.hpp"
#include "power/bus.hpp"

namespace tw {

FacilityEnergy facility_energy(const Site& site, const EnergyWindow& window) {
  FacilityEnergy energy;
  energy.base_j = site.pue_base == PueBase::dc ? window.total_dc_j : window.total_ac_j;
  if (!energy.base_j) return energy;
  const double base_j = *energy.base_j;
  energy.ppue_j = base_j * (site.ppue - 1);
  energy.hall_j = base_j * (site.pue - site.ppue);
  energy.facility_j = base_j * site.pue;
  energy.kg_co2e = *energy.facility_j * site.carbon_intensity.value();
  if (site.market_carbon_intensity) energy.kg_co2e_market = *energy.facility_j * site.market_carbon_intensity->value();
  energy.cost_usd = *energy.facility_j * site.price.value();
  return energy;
}

PiecewiseWatts facility_power(const Cluster& cluster, const Site& site, const PowerRun& run, double network_w) {
  std::vector<const PiecewiseWatts*> parts;
  for (const BusPowerRun& bus : run.buses) parts.push_back(bus.dc.get());
  const PiecewiseWatts dc = PiecewiseWatts::sum(parts);
  if (site.pue_base == PueBase::dc) return dc.affine(network_w * site.pue, site.pue);
  // Failed rectifiers change the fixed loss in steps, so each bus's loss is a function of its own.
  std::vector<PiecewiseWatts> losses;
  const double one_w = cluster.power_delivery.rectifier.fixed_loss.value();
  const double all = cluster.power_delivery.shelves_per_bus * cluster.power_delivery.rectifiers_per_shelf;
  for (const BusPowerRun& bus : run.buses) {
    double on = all;
    std::vector<RectifierFailure> failures = bus.failures;
    std::sort(failures.begin(), failures.end(),
              [](const RectifierFailure& a, const RectifierFailure& b) { return a.at_s < b.at_s; });
    for (const RectifierFailure& failure : failures) on -= failure.count;
    PiecewiseWatts loss(one_w * std::max(0.0, on));
    double before = all;
    loss.begin(std::min(dc.begin_s(), run.run_begin_s));
    for (const RectifierFailure& failure : failures) {
      loss.append(failure.at_s, one_w * before);
      before = std::max(0.0, before - failure.count);
    }
    loss.append(std::max(dc.end_s(), run.run_end_s), one_w * before);
    losses.push_back(std::move(loss));
  }
  const PiecewiseWatts ac = dc.affine(0, 1 + cluster.power_delivery.rectifier.proportional_loss);
  parts = {&ac};
  for (const PiecewiseWatts& loss : losses) parts.push_back(&loss);
  return PiecewiseWatts::sum(parts).affine(network_w * site.pue, site.pue);
}

namespace {

constexpr int64_t kHour = 3600;

// Value of a series at an hour; beyond its ends the nearest value (only asked for where the policy allows).
double value_at(const HourlySeries& series, int64_t utc_s) {
  const auto last = static_cast<int64_t>(series.values.size()) - 1;
  const int64_t hour = utc_s < series.begin_utc_s ? 0 : (utc_s - series.begin_utc_s) / kHour;
  return series.values[static_cast<size_t>(std::min(hour, last))];
}

void check_cover(const Site& site, const std::optional<HourlySeries>& series, const char* what, int64_t start_utc_s,
                 double seconds) {
  if (!series || series->covers(start_utc_s, seconds) || site.series_gaps == SeriesGaps::hold) return;
  throw InputError({{site.name, "",
                     fmt::format("the {} series does not cover the run: {} to {}, the run needs {:.2f} h from {}", what,
                                 format_time(series->begin_utc_s, series->offset_s),
                                 format_time(series->end_utc_s(), series->offset_s), seconds / 3600,
                                 format_time(start_utc_s, series->offset_s)),
                     "take a longer series, another start, or set series_gaps to hold"}});
}

}  // namespace

TimedFacility facility_over_time(const Site& site, const SiteSeries& series, const PiecewiseWatts& facility_w,
                                 double run_begin_s, double run_end_s, int64_t start_utc_s) {
  const double length_s = run_end_s - run_begin_s;
  check_cover(site, series.location_kg_per_kwh, "carbon", start_utc_s, length_s);
  check_cover(site, series.market_kg_per_kwh, "market carbon", start_utc_s, length_s);
  check_cover(site, series.usd_per_kwh, "price", start_utc_s, length_s);
  Sum joules, kg, market_kg, usd;
  const bool market = series.market_kg_per_kwh.has_value() || site.market_carbon_intensity.has_value();
  double from_s = 0;
  while (from_s < length_s) {
    const auto now_utc_s = start_utc_s + static_cast<int64_t>(std::floor(from_s + 1e-9));
    const int64_t next_hour = (now_utc_s / kHour + 1) * kHour - start_utc_s;
    const double to_s = std::min(length_s, static_cast<double>(next_hour));
    const double part_j = facility_w.integral(run_begin_s + from_s, run_begin_s + to_s);
    joules.add(part_j);
    kg.add(part_j * (series.location_kg_per_kwh ? value_at(*series.location_kg_per_kwh, now_utc_s) / joules_per_kwh
                                                : site.carbon_intensity.value()));
    if (market)
      market_kg.add(part_j * (series.market_kg_per_kwh ? value_at(*series.market_kg_per_kwh, now_utc_s) / joules_per_kwh
                                                       : site.market_carbon_intensity->value()));
    usd.add(part_j *
            (series.usd_per_kwh ? value_at(*series.usd_per_kwh, now_utc_s) / joules_per_kwh : site.price.value()));
    from_s = to_s;
  }
  TimedFacility result{joules.value(), kg.value(), usd.value(), std::nullopt};
  if (market) result.kg_co2e_market = market_kg.value();
  return result;
}

StartChoice best_start(const Site& site, const SiteSeries& series, const PiecewiseWatts& facility_w, double run_begin_s,
                       double run_end_s, StartObjective objective) {
  const std::optional<HourlySeries>& lead =
      objective == StartObjective::carbon ? series.location_kg_per_kwh : series.usd_per_kwh;
  if (!lead)
    throw InputError({{site.name, "", "a start cannot be chosen without an hourly series",
                       objective == StartObjective::carbon ? "name a carbon_series" : "name a price_series"}});
  const double length_s = run_end_s - run_begin_s;
  const auto wanted = [&](const TimedFacility& f) {
    return objective == StartObjective::carbon ? f.kg_co2e : f.cost_usd;
  };
  StartChoice choice;
  for (size_t hour = 0; hour < lead->values.size(); ++hour) {
    const int64_t start = lead->begin_utc_s + static_cast<int64_t>(hour) * kHour;
    if (!lead->covers(start, length_s)) break;
    bool others = true;
    for (const auto* other : {&series.location_kg_per_kwh, &series.market_kg_per_kwh, &series.usd_per_kwh})
      if (*other && !(*other)->covers(start, length_s)) others = false;
    if (!others) continue;
    const TimedFacility now = facility_over_time(site, series, facility_w, run_begin_s, run_end_s, start);
    if (choice.candidates++ == 0) {
      choice.first = choice.best = choice.worst = now;
      choice.start_utc_s = start;
    }
    if (wanted(now) < wanted(choice.best)) {  // of equal hours the earliest
      choice.best = now;
      choice.start_utc_s = start;
    }
    if (wanted(now) > wanted(choice.worst)) choice.worst = now;
  }
  if (choice.candidates == 0) {  // every series must cover the run
    Site strict = site;
    strict.series_gaps = SeriesGaps::refuse;
    facility_over_time(strict, series, facility_w, run_begin_s, run_end_s, lead->begin_utc_s);
  }
  choice.start = format_time(choice.start_utc_s, lead->offset_s);
  return choice;
}

void check_site(const Site& site, const ReadContext& at) {
  if (site.ppue > site.pue)
    at.at("ppue").fault(fmt::format("{} is above the PUE of {}", site.ppue, site.pue),
                        "the partial PUE of tank cooling is a part of the PUE");
}

}  // namespace tw
