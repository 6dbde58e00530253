// Power delivery from the grid to the nodes: feed, stages (UPS, PDU ...), shelves, rectifiers, buses, nodes. Each unit
// has a rating and a loss that depends on its load.
#pragma once

#include <string>
#include <vector>

#include "power/power_run.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// Totals of a stage over the run.
struct StageTotals {
  std::string stage;
  int units = 0;
  double output_j = 0, loss_j = 0;
  double peak_w = 0;  // highest output of one unit
  std::string peak_unit;
  double peak_at_s = 0;
  double rating_w = 0;          // 0: none
  double headroom_w = 0;        // rating less peak
  double spare_headroom_w = 0;  // the same after the failure its redundancy is to survive; negative: not redundant
  bool redundant = true;
  static void describe(Outputs<StageTotals>& d);
};

struct DeliveryRun {
  std::vector<StageTotals> stages;  // from the nodes to the feed
  double nodes_j = 0, loss_j = 0, battery_j = 0, grid_j = 0;
};

// Exact integral over the run: flows are constant between changes of power. Throws DoesNotFit, with place and time,
// when a unit is loaded beyond its rating. Failures of rectifiers in `run` are taken into account.
DeliveryRun integrate_delivery(const Cluster& cluster, const PowerRun& run);

}  // namespace tw
