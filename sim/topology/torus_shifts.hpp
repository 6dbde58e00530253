// A whole torus, twisted or not, looks the same from each of its routers: shifts along its dimensions move it onto
// itself. What loads an exchange makes need then be found for one of the destinations that shifts move to each other.
#pragma once

#include <optional>
#include <vector>

#include "topology/tree_levels.hpp"

namespace tw {

class TorusShifts {
 public:
  // Nothing when the fabric is no torus, or a cable of it failed or is slow.
  static std::optional<TorusShifts> of(const Fabric& fabric, const SwitchArcs& arcs);

  // For each switch the first of those that shifts move it to which leave `weight`, by vertex, as it is.
  std::vector<int> alike(const std::vector<double>& weight) const;

  // `loads`, by link, are what the first of all that are alike make: adds up what they make together.
  void sum(const SwitchArcs& arcs, const std::vector<int>& alike, std::vector<double>& loads) const;

 private:
  std::vector<std::vector<int>> next_;  // [dimension][vertex]; -1 where there is no router
  std::vector<int> way_;                // [arc]: along which dimension, and which way
  std::vector<int> parallel_;           // [way]: arcs of a switch
};

}  // namespace tw
