// Power delivery as a graph, from the grid to the nodes: feed, stages (UPS, PDU ...), shelves, rectifiers, buses,
// nodes. Power flows along the edges; every vertex has a rating and a loss that depends on its load.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <string>
#include <vector>

#include "power/loss_law.hpp"
#include "power/power_run.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

enum class DeliveryKind { feed, stage, shelf, rectifier, bus, node };

struct DeliveryVertex {
  DeliveryKind kind = DeliveryKind::node;
  std::string name;           // "PDU-3", "bus-7 shelf-0", ...
  std::string stage;          // "feed", "UPS", "PDU", "shelf", "rectifier", "bus", "node"
  int index = 0;              // of the cluster: node or bus; else a running number of its stage
  double rating_w = 0;        // output; 0 = no limit of its own
  double spare_rating_w = 0;  // output that is left after the failure that its redundancy is to survive
  LossLaw law;
  bool failed = false;
  double battery_w = 0;  // of a bus: taken by its battery; negative: given
};

// Edges point from the source to the load. A load with several sources draws from them in equal parts.
using DeliveryGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, DeliveryVertex, boost::no_property>;

// The part of the cluster's power delivery that feeds `nodes`.
DeliveryGraph build_delivery(const Cluster& cluster, const std::vector<int>& nodes);

struct DeliveryFlow {
  double output_w = 0, loss_w = 0, battery_w = 0;
  double input_w() const { return output_w + loss_w + battery_w; }
};

// Flows for given watts of each node (in the order of the node vertices). Failed vertices carry nothing; a load whose
// sources have all failed gets nothing. Vertices in graph order.
std::vector<DeliveryFlow> deliver(const DeliveryGraph& graph, const std::vector<double>& node_w);

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

// Graphviz text, with the flows of a moment when given.
std::string delivery_dot(const DeliveryGraph& graph, const std::vector<DeliveryFlow>& flows = {});

}  // namespace tw
