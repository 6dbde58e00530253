#include "facility/site.hpp"

#include "core/codec.hpp"

namespace tw {

std::vector<std::pair<std::string, PueBase>> Choices<PueBase>::table() {
  return {{"dc", PueBase::dc}, {"ac", PueBase::ac}};
}

std::vector<std::pair<std::string, SeriesGaps>> Choices<SeriesGaps>::table() {
  return {{"refuse", SeriesGaps::refuse}, {"hold", SeriesGaps::hold}, {"interpolate", SeriesGaps::interpolate}};
}

void Site::describe(Description<Site>& d) {
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

}  // namespace tw
