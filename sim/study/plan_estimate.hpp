// The time of a step and the power of a node in closed form: what a search for plans sorts thousands of them by.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "step/inputs.hpp"
#include "step/step_network.hpp"
#include "topology/fabric.hpp"
#include "topology/placement.hpp"
#include "workload/plan.hpp"

namespace tw {

struct StepEstimate {
  double step_s = 0;
  double node_w = 0;  // mean of a training step, on the DC bus
};

// The same kernels, exchanges and board limit as the simulation. In place of its events: the slowest stage works
// through all micro-batches, fill and drain of the pipeline are one visit of each other stage (Narayanan et al. 2021,
// section 2.2), gradients hide behind the last backward as far as the software overlaps them; no noise, and no
// transfers that meet. The job gets the nodes that `placement` says.
//
// Routes are found once, and links once for plans in a row that differ in micro-batch and recomputation only. All calls
// are of one cluster, network and release.
class PlanEstimator {
 public:
  PlanEstimator(const Fabric& fabric, const NodePlacement& placement) : fabric_(fabric), placement_(placement) {}
  StepEstimate operator()(const StepInputs& in);
  // A lower bound of its time: as if no exchange took any, and no board limit slowed kernels down.
  static double least_s(const StepInputs& in);

 private:
  // What decides links: nodes, tp, pp, vp, cp, ep, etp, shard group, sharding, context, layout.
  using Grid = std::tuple<int, int, int, int, int, int, int, int, Sharding, ContextExchange, std::string>;
  const Fabric& fabric_;
  const NodePlacement& placement_;
  std::shared_ptr<network::Collectives> collectives_;
  std::optional<StepNetwork> net_;
  Grid grid_;
};

}  // namespace tw
