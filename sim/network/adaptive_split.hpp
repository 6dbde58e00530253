// Adaptive routing taken to its end: what goes between two switches is split over its shortest paths so that the
// fullest cable is as empty as it can be.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "topology/routing.hpp"

namespace tw::network {

// Bytes that go between switches: destination -> (source, bytes).
using SwitchDemands = std::map<int, std::vector<std::pair<int, double>>>;

// How the loads of links change (link, bytes) when `demands`, which are part of `load` and split by the next cable's
// capacity there, are split so that the largest bytes / capacity is least. Empty when nothing is gained: an
// adapter or NVLink takes longer than any cable between switches, or every other split takes as long. The ways do not
// depend on capacities and the least of all is taken, so a cable that gets slower never makes it less (to 1e-10). A
// linear program over the ways to each destination (columns by their price, rows as links fill up); beyond a few
// million links of all ways together nothing is changed.
std::vector<LinkShare> balanced_split(const Fabric& fabric, Router& router, const SwitchDemands& demands,
                                      const std::vector<double>& load);

}  // namespace tw::network
