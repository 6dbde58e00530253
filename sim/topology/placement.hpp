// Which nodes a job gets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/fabric.hpp"

namespace tw {

enum class Placement { packed, spread };
template <>
struct Choices<Placement> {
  static std::vector<std::pair<std::string, Placement>> table() {
    return {{"packed", Placement::packed}, {"spread", Placement::spread}};
  }
};
std::vector<int> place(const Fabric& fabric, Placement placement, int nodes);

// The first n nodes, unit by unit. Throws InputError when the cluster has fewer.
std::vector<int> place_packed(const Fabric& fabric, int nodes);

// n nodes dealt out over all units in turn, so that the job touches as many units as it can. Fabrics without units are
// strided evenly.
std::vector<int> place_spread(const Fabric& fabric, int nodes);

// Node indices by name ("node-3"). Throws InputError naming the one that does not exist or comes twice.
std::vector<int> place_named(const Fabric& fabric, const std::vector<std::string>& names);

// The unit a node stands in: that of the switch its first adapter is cabled to; -1 = none.
int unit_of(const Fabric& fabric, int node);

}  // namespace tw
