// Sites: what stands in models/sites/*.json.
#pragma once

#include <string>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

enum class PueBase { dc, ac };
template <>
struct Choices<PueBase> {
  static std::vector<std::pair<std::string, PueBase>> table() { return {{"dc", PueBase::dc}, {"ac", PueBase::ac}}; }
};

struct Site {
  std::string name;
  double pue = 1;
  double ppue = 1;
  PueBase pue_base = PueBase::ac;
  CarbonIntensity carbon_intensity;
  EnergyPrice price;
  std::string source;
  static void describe(Description<Site>& d) {
    d.object("site", "Where the cluster stands: cooling overhead, carbon, price.");
    d.required("name", &Site::name, "name of the site");
    d.required("pue", &Site::pue, "power usage effectiveness", at_least(1));
    d.optional("ppue", &Site::ppue, "partial PUE of the tank cooling alone, inside the PUE", at_least(1));
    d.optional("pue_base", &Site::pue_base, "the side that PUE is stated on: DC at the bus or AC at the rectifiers");
    d.required("carbon_intensity", &Site::carbon_intensity, "CO2e of the grid");
    d.optional("price", &Site::price, "price of electric energy");
    d.optional("source", &Site::source, "where the numbers come from");
  }
};

}  // namespace tw
