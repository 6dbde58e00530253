#include "study/plan_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/gpu_power.hpp"
#include "power/node_power.hpp"
#include "step/step_model.hpp"
#include "step/step_network.hpp"

namespace tw {
namespace {

double transfer_s(const StepNetwork& net, int load_class, double bytes) {
  if (load_class < 0 || bytes <= 0) return 0;
  const network::LoadClass& c = net.classes[static_cast<size_t>(load_class)];
  double slowest = 0;
  for (const network::LinkUse& use : c.uses)
    slowest = std::max(slowest, use.weight / net.links[static_cast<size_t>(use.link)].capacity_Bps);
  return c.latency_s + bytes * slowest;
}

int class_of(const std::vector<int>& classes, int stage) {
  return classes.empty() ? -1 : classes[static_cast<size_t>(stage)];
}

struct Shape {
  double step_s = 0;
  ActivityTimes busy;  // of a GPU of the mean stage
};

Shape shape_of(const StepPlan& p, const StepNetwork& net) {
  Shape out;
  double slowest_s = 0, all_s = 0, tail_s = 0;
  for (int s = 0; s < p.stages; ++s) {
    double stage_s = 0, backward_s = 0, gradients_s = 0;
    SharedSum weights;
    for (int c = 0; c < p.chunks; ++c) {
      const auto k = static_cast<size_t>(c * p.stages + s);
      const PassCost& cost = p.cost[k];
      const double forward = std::max(cost.forward.device_s() + p.hand_over_exposed_s, cost.forward.host_s);
      const double backward = std::max(cost.backward.device_s() + p.hand_over_exposed_s, cost.backward.host_s);
      stage_s += forward + backward;
      backward_s += backward;
      const SharedSum& gradients = p.gradient_bytes[k];
      gradients_s +=
          gradient_buckets * (transfer_s(net, class_of(net.gradient_exchange, s), gradients.dense / gradient_buckets) +
                              transfer_s(net, class_of(net.expert_exchange, s), gradients.experts / gradient_buckets));
      if (!p.weight_bytes.empty())
        weights.dense += p.weight_bytes[k].dense, weights.experts += p.weight_bytes[k].experts;
      for (const TaskCost* t : {&cost.forward, &cost.backward}) {
        ActivityTimes did = t->busy;
        did[Activity::collective] += t->tp_s + t->cp_s + t->ep_s + t->dp_s + p.hand_over_exposed_s;
        out.busy += did.scaled(static_cast<double>(p.micro_batches) / p.stages);
      }
    }
    slowest_s = std::max(slowest_s, stage_s);
    all_s += stage_s;
    const double gather_s = transfer_s(net, class_of(net.weight_gather, s), weights.dense * (1 - p.gradient_overlap)) +
                            transfer_s(net, class_of(net.expert_gather, s), weights.experts * (1 - p.gradient_overlap));
    const double exposed_s = std::max(gradients_s - p.gradient_overlap * backward_s, gradients_s / gradient_buckets);
    const double end_s = (gradients_s > 0 ? exposed_s : 0) + gather_s;
    tail_s = std::max(tail_s, end_s);
  }
  const double fill_s = (p.stages - 1.0) * (all_s / p.stages / p.chunks + 2 * net.hand_over_s);
  out.step_s = p.micro_batches * slowest_s + fill_s + tail_s + p.optimizer.device_s() + p.fixed_s;
  out.busy += p.optimizer.busy;
  out.busy[Activity::collective] += tail_s;
  return out;
}

}  // namespace

StepEstimate estimate_step(const StepInputs& in, const Fabric& fabric, const std::vector<int>& nodes) {
  const StepNetwork net = build_step_network(in, fabric, nodes, 1);
  const NodeType& node = in.cluster->node;
  const Shape burst = shape_of(plan_step(in, net, {}), net);
  const Power limit = effective_limit(node, std::nullopt);
  const double slowdown = board_power(node.accelerator, burst.busy.scaled(1 / burst.step_s), limit).slowdown;
  const Shape held = slowdown > 1 ? shape_of(plan_step(in, net, {slowdown, slowdown}), net) : burst;
  NodeState state;
  state.over_fabric = nodes.size() > 1;
  state.in_step = true;
  return {held.step_s, node_parts(node, held.busy.scaled(1 / held.step_s), limit, state).total()};
}

}  // namespace tw
