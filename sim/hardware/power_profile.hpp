// Power of the parts of a node beside its accelerators, and of rectifiers: what stands in models/power/*.json.
#pragma once

#include <string>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

struct NodePower {
  Power host_base;             // CPUs, memory, NVSwitches, NICs and drives of a node that is on
  double conversion_loss = 0;  // share of the accelerators' power lost between bus and board
  std::string source;
  static void describe(Description<NodePower>& d) {
    d.object("node_power", "Power of a node beside its accelerators.");
    d.required("host_base", &NodePower::host_base, "constant power of the host, its NICs, switches and drives");
    d.optional("conversion_loss", &NodePower::conversion_loss, "loss between the bus and the accelerators, as a share",
               between(0, 0.5));
    d.optional("source", &NodePower::source, "where the numbers come from");
  }
};

struct RectifierType {
  Power rating;
  Power fixed_loss;       // of one rectifier that is on
  double proportional_loss = 0;  // share of its DC output
  std::string source;
  static void describe(Description<RectifierType>& d) {
    d.object("rectifier", "An AC to DC rectifier.");
    d.required("rating", &RectifierType::rating, "rated DC output", above(0));
    d.required("fixed_loss", &RectifierType::fixed_loss, "loss at no load");
    d.required("proportional_loss", &RectifierType::proportional_loss, "loss as a share of the DC output", between(0, 1));
    d.optional("source", &RectifierType::source, "where the numbers come from");
  }
};

}  // namespace tw
