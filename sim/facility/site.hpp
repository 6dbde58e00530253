// Sites: what stands in models/sites/*.json.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

enum class PueBase { dc, ac };
template <>
struct Choices<PueBase> {
  static std::vector<std::pair<std::string, PueBase>> table() { return {{"dc", PueBase::dc}, {"ac", PueBase::ac}}; }
};

// What to do about hours that an hourly series does not have.
enum class SeriesGaps { refuse, hold, interpolate };
template <>
struct Choices<SeriesGaps> {
  static std::vector<std::pair<std::string, SeriesGaps>> table() {
    return {{"refuse", SeriesGaps::refuse}, {"hold", SeriesGaps::hold}, {"interpolate", SeriesGaps::interpolate}};
  }
};

struct Site {
  std::string name;
  double pue = 1;
  double ppue = 1;
  PueBase pue_base = PueBase::ac;
  CarbonIntensity carbon_intensity;
  EnergyPrice price;
  std::optional<CarbonIntensity> market_carbon_intensity;
  std::string carbon_series, price_series;  // CSV files; empty: constant
  std::string utc_offset;                   // of times that carry none, "+08:00"
  SeriesGaps series_gaps = SeriesGaps::refuse;
  std::string source;
  static void describe(Description<Site>& d) {
    d.object("site", "Where the cluster stands: cooling overhead, carbon, price.");
    d.required("name", &Site::name, "name of the site");
    d.required("pue", &Site::pue, "power usage effectiveness", between(1, 100));
    d.optional("ppue", &Site::ppue, "partial PUE of the tank cooling alone, inside the PUE", at_least(1));
    d.optional("pue_base", &Site::pue_base, "the side that PUE is stated on: DC at the bus or AC at the rectifiers");
    d.required("carbon_intensity", &Site::carbon_intensity, "CO2e of the grid");
    d.optional("price", &Site::price, "price of electric energy");
    d.optional("market_carbon_intensity", &Site::market_carbon_intensity,
               "CO2e by contract (market-based); carbon_intensity is that of the grid (location-based)");
    d.optional("carbon_series", &Site::carbon_series,
               "CSV with columns time, location_kg_per_kwh and, if known, market_kg_per_kwh, one row an hour");
    d.optional("price_series", &Site::price_series, "CSV with columns time and usd_per_kwh, one row an hour");
    d.optional("utc_offset", &Site::utc_offset,
               "offset from UTC of times in the series that carry none, such as \"+08:00\"");
    d.optional("series_gaps", &Site::series_gaps,
               "missing hours and clock changes: refuse, hold the last value, or interpolate");
    d.optional("source", &Site::source, "where the numbers come from");
  }
};

}  // namespace tw
