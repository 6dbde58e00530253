// From the energy of a run to that of the building, its carbon and its cost.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "facility/hourly_series.hpp"
#include "facility/site.hpp"
#include "power/energy_window.hpp"

namespace tw {

// Of one energy window. Null where the network's share is undefined.
struct FacilityEnergy {
  std::optional<double> base_j;          // the side that the site's PUE is stated on, network included
  std::optional<double> facility_j;      // base * PUE
  std::optional<double> ppue_j;          // of which tank cooling: base * (pPUE - 1)
  std::optional<double> hall_j;          // and the rest of the overhead: base * (PUE - pPUE)
  std::optional<double> kg_co2e;         // location-based
  std::optional<double> kg_co2e_market;  // market-based; null when the site does not know
  std::optional<double> cost;            // in the currency of the site's price; null without a price
};

// A PUE stated on DC takes the rectifier loss as part of the overhead, as the published page of the reference cluster
// does; one stated on AC has it in the base. Constant carbon intensity and price of the site.
FacilityEnergy facility_energy(const Site& site, const EnergyWindow& window);

// Watts of the whole building for the job, through time: (nodes, network and, on an AC base, rectifiers) * PUE.
PiecewiseWatts facility_power(const Cluster& cluster, const Site& site, const PowerRun& run, double network_w);

// Carbon and cost of window `run` hour by hour, when it starts at `start_utc_s`. A quantity without a series takes the
// site's constant. Throws InputError when a series does not cover the run (unless the site's policy is hold: the last
// or first value is then held).
struct TimedFacility {
  double facility_j = 0, kg_co2e = 0;
  std::optional<double> kg_co2e_market, cost;  // null where neither a series nor the site knows
};
TimedFacility facility_over_time(const Site& site, const SiteSeries& series, const PiecewiseWatts& facility_w,
                                 double run_begin_s, double run_end_s, int64_t start_utc_s);

// The start among all full hours of the series from which the run is covered, with the least of one quantity.
enum class StartObjective { carbon, cost };
struct StartChoice {
  int64_t start_utc_s = 0;
  std::string start;  // text, in the series' zone
  TimedFacility best;
  TimedFacility first;  // at the first possible hour
  TimedFacility worst;
  size_t candidates = 0;
};
StartChoice best_start(const Site& site, const SiteSeries& series, const PiecewiseWatts& facility_w, double run_begin_s,
                       double run_end_s, StartObjective objective);

// What was filled into the site's series, and whether a run that starts then reaches beyond one that is held.
std::vector<std::string> series_remarks(const Site& site, const SiteSeries& series, std::optional<int64_t> start_utc_s,
                                        double length_s);

// pPUE is inside PUE. Faults name /ppue of the site block that `at` stands on.
void check_site(const Site& site, const ReadContext& at);

}  // namespace tw
