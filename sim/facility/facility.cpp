#include "facility/facility.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/sum.hpp"
#include "power/loss_law.hpp"

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
  if (site.price) energy.cost = *energy.facility_j * site.price->value.value();
  return energy;
}

PiecewiseWatts facility_power(const Cluster& cluster, const Site& site, const PowerRun& run, double network_w) {
  const PowerDelivery& delivery = cluster.power_delivery;
  const bool at_ac = site.pue_base == PueBase::ac;
  std::vector<const PiecewiseWatts*> whole, parts;
  std::vector<PiecewiseWatts> own;  // of buses whose rectifiers stop: their loss changes in steps
  for (const BusPowerRun& bus : run.buses)
    if (!at_ac || bus.failures.empty())
      whole.push_back(bus.supply.get());
    else
      own.push_back(bus.ac(delivery));
  // Buses whose rectifiers are all on lose as one that is so many times as large.
  const LossLaw law = at_ac ? rectifier_law(delivery).times(static_cast<double>(whole.size())) : LossLaw{};
  const PiecewiseWatts rest = PiecewiseWatts::sum(whole).affine(law.fixed_w, 1 + law.proportional);
  if (!whole.empty()) parts.push_back(&rest);
  for (const PiecewiseWatts& ac : own) parts.push_back(&ac);
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

// The series of a site with their names.
std::vector<std::pair<const HourlySeries*, const char*>> named(const SiteSeries& series) {
  std::vector<std::pair<const HourlySeries*, const char*>> list;
  for (const auto& [one, name] :
       {std::pair{&series.location_kg_per_kwh, "carbon"}, std::pair{&series.market_kg_per_kwh, "market carbon"},
        std::pair{&series.price_per_kwh, "price"}})
    if (*one) list.emplace_back(&**one, name);
  return list;
}

std::string uncovered(const HourlySeries& series, const char* what, int64_t start_utc_s, double seconds) {
  return fmt::format("the {} series does not cover the run: {} to {}, the run needs {:.2f} h from {}", what,
                     series.text(series.begin_utc_s), series.text(series.end_utc_s()), seconds / 3600,
                     series.text(start_utc_s));
}

void check_cover(const Site& site, const SiteSeries& series, int64_t start_utc_s, double seconds) {
  for (const auto& [one, name] : named(series))
    if (!one->covers(start_utc_s, seconds))
      throw InputError(
          {{site.name, "", uncovered(*one, name, start_utc_s, seconds),
            site.series_gaps == SeriesGaps::hold ? "a longer series or another start"
                                                 : "take a longer series, another start, or set series_gaps to hold"}});
}

}  // namespace

TimedFacility facility_over_time(const Site& site, const SiteSeries& series, const PiecewiseWatts& facility_w,
                                 double run_begin_s, double run_end_s, int64_t start_utc_s) {
  const double length_s = run_end_s - run_begin_s;
  if (site.series_gaps != SeriesGaps::hold) check_cover(site, series, start_utc_s, length_s);
  Sum joules, kg, market_kg, money;
  const bool priced = series.price_per_kwh.has_value() || site.price.has_value();
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
    if (priced)
      money.add(part_j * (series.price_per_kwh ? value_at(*series.price_per_kwh, now_utc_s) / joules_per_kwh
                                               : site.price->value.value()));
    from_s = to_s;
  }
  TimedFacility result{joules.value(), kg.value(), std::nullopt, std::nullopt};
  if (priced) result.cost = money.value();
  if (market) result.kg_co2e_market = market_kg.value();
  return result;
}

StartChoice best_start(const Site& site, const SiteSeries& series, const PiecewiseWatts& facility_w, double run_begin_s,
                       double run_end_s, StartObjective objective) {
  const std::optional<HourlySeries>& lead =
      objective == StartObjective::carbon ? series.location_kg_per_kwh : series.price_per_kwh;
  if (!lead)
    throw InputError({{site.name, "", "a start cannot be chosen without an hourly series",
                       objective == StartObjective::carbon ? "name a carbon_series" : "name a price_series"}});
  const double length_s = run_end_s - run_begin_s;
  const auto wanted = [&](const TimedFacility& f) {
    return objective == StartObjective::carbon ? f.kg_co2e : f.cost.value();
  };
  const auto covered = [&](int64_t start) {
    const auto all = named(series);
    return std::all_of(all.begin(), all.end(), [&](const auto& one) { return one.first->covers(start, length_s); });
  };
  StartChoice choice;
  for (size_t hour = 0; hour < lead->values.size(); ++hour) {
    const int64_t start = lead->begin_utc_s + static_cast<int64_t>(hour) * kHour;
    if (!lead->covers(start, length_s)) break;
    if (!covered(start)) continue;
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
  if (choice.candidates == 0)
    check_cover(site, series, lead->begin_utc_s, length_s);  // every series must cover the run
  choice.start = lead->text(choice.start_utc_s);
  return choice;
}

std::vector<std::string> series_remarks(const Site& site, const SiteSeries& series, std::optional<int64_t> start_utc_s,
                                        double length_s) {
  std::vector<std::string> remarks;
  for (const auto& [one, name] : named(series)) {
    remarks.insert(remarks.end(), one->remarks.begin(), one->remarks.end());
    if (start_utc_s && site.series_gaps == SeriesGaps::hold && !one->covers(*start_utc_s, length_s))
      remarks.push_back(uncovered(*one, name, *start_utc_s, length_s) + "; its nearest value is held");
  }
  return remarks;
}

void check_site(const Site& site, const ReadContext& at) {
  if (site.ppue > site.pue)
    at.at("ppue").fault(fmt::format("{} is above the PUE of {}", site.ppue, site.pue),
                        "the partial PUE of tank cooling is a part of the PUE");
}

}  // namespace tw
