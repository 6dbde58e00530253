#include "facility/site.hpp"

#include <nlohmann/json.hpp>

#include "core/codec.hpp"

namespace tw {

// A quantity whose currency is kept.
template <>
struct Codec<Price> {
  static TypeInfo type() { return Codec<EnergyPrice>::type(); }
  static void read(Price& out, const nlohmann::json& j, const ReadContext& c) {
    Codec<EnergyPrice>::read(out.value, j, c);
    const std::string text = j.is_string() ? j.get<std::string>() : "";
    const size_t slash = text.find('/');
    if (slash != std::string::npos && slash >= 3)
      out.currency = text.substr(text.find_last_not_of(' ', slash - 1) - 2, 3);
  }
  static std::string default_text(const Price&) { return ""; }
};

void Site::describe(Description<Site>& d) {
  d.object("site", "Where the cluster stands: cooling overhead, carbon, price.");
  d.required("name", &Site::name, "name of the site");
  d.required("pue", &Site::pue, "power usage effectiveness", between(1, 100));
  d.optional("ppue", &Site::ppue, "partial PUE of the tank cooling alone, inside the PUE", at_least(1));
  d.optional("pue_base", &Site::pue_base, "the side that PUE is stated on: DC at the bus or AC at the rectifiers");
  d.required("carbon_intensity", &Site::carbon_intensity, "CO2e of the grid");
  d.optional("price", &Site::price,
             "price of electric energy, in any ISO 4217 currency: \"0.12 EUR/kWh\"; absent: no cost");
  d.optional("market_carbon_intensity", &Site::market_carbon_intensity,
             "CO2e by contract (market-based); carbon_intensity is that of the grid (location-based)");
  d.optional("carbon_series", &Site::carbon_series,
             "CSV with columns time, location_kg_per_kwh and, if known, market_kg_per_kwh, one row an hour");
  d.optional("price_series", &Site::price_series,
             "CSV with columns time and usd_per_kwh (or eur_per_kwh, any currency), one row an hour");
  d.optional("utc_offset", &Site::utc_offset,
             "offset from UTC of times in the series that carry none, such as \"+08:00\"");
  d.optional("series_gaps", &Site::series_gaps,
             "missing hours and clock changes: refuse, hold the last value, or interpolate");
  d.optional("source", &Site::source, "where the numbers come from");
}

}  // namespace tw
