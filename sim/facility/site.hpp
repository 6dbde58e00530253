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

// What to do about hours that an hourly series does not have.
enum class SeriesGaps { refuse, hold, interpolate };

// A price of energy in any currency of ISO 4217.
struct Price {
  EnergyPrice value;  // in units of the currency
  std::string currency = "USD";
};

struct Site {
  std::string name;
  double pue = 1;
  double ppue = 1;
  PueBase pue_base = PueBase::ac;
  CarbonIntensity carbon_intensity;
  std::optional<Price> price;
  std::optional<CarbonIntensity> market_carbon_intensity;
  std::string carbon_series, price_series;  // CSV files; empty: constant
  std::string utc_offset;                   // of times that carry none, "+08:00"
  SeriesGaps series_gaps = SeriesGaps::refuse;
  std::string source;
  static void describe(Description<Site>& d);
};

}  // namespace tw
