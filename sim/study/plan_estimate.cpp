#include "study/plan_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/gpu_power.hpp"
#include "power/node_power.hpp"
#include "step/step_model.hpp"
#include "step/step_network.hpp"

namespace tw {
namespace {

int class_of(const std::vector<int>& classes, int stage) {
  return classes.empty() ? -1 : classes[static_cast<size_t>(stage)];
}

struct Shape {
  double step_s = 0;
  ActivityTimes busy;  // of a GPU of the mean stage
};

// Sum of the same visits that the events play, without their waits for one another: filling and draining the pipeline,
// and the exchange that the last backward leaves over.
Shape shape_of(const StepPlan& p, const StepNetwork& net) {
  Shape out;
  double slowest_s = 0, all_s = 0, tail_s = 0;
  const int slots = static_cast<int>(p.cost.size()) / p.stages;
  for (int s = 0; s < p.stages; ++s) {
    double stage_s = 0, last_s = 0, gradients_s = 0, bucket_s = 0;
    SharedSum weights;
    for (int c = 0; c < slots; ++c) {
      const auto k = static_cast<size_t>(c * p.stages + s);
      const PassCost& cost = p.cost[k];
      const auto visit_s = [](const TaskCost& t) { return std::max(t.device_s(), t.host_s); };
      stage_s += visit_s(cost.forward) + visit_s(cost.backward);
      // Gradients have the links while the visit's own exchanges leave them alone.
      last_s += visit_s(cost.last_backward);
      for (const VisitExchange& x : cost.last_backward.shared) last_s -= x.alone_s;
      for (const Bucket& b : cost.buckets) {
        bucket_s = b.stretch * (transfer_s(net, class_of(net.gradient_exchange, s), b.bytes.dense) +
                                transfer_s(net, class_of(net.expert_exchange, s), b.bytes.experts));
        gradients_s += bucket_s;
      }
      if (!p.weight_bytes.empty())
        weights.dense += p.weight_bytes[k].dense, weights.experts += p.weight_bytes[k].experts;
      for (const TaskCost* t : {&cost.forward, &cost.backward}) {
        ActivityTimes did = t->busy;
        did[Activity::collective] += t->tp_s + t->cp_s + t->ep_s + t->dp_s;
        out.busy += did.scaled(static_cast<double>(p.micro_batches) / p.stages);
      }
    }
    // Gradients that leave after every backward (ZeRO-2) hold a stage up where its work does not hide them.
    slowest_s = std::max({slowest_s, stage_s, p.reduce_every_visit ? gradients_s : 0});
    all_s += stage_s;
    const double gather_s = transfer_s(net, class_of(net.weight_gather, s), weights.dense) +
                            transfer_s(net, class_of(net.expert_gather, s), weights.experts);
    tail_s = std::max(tail_s, std::max(gradients_s - (p.gradients_beside ? last_s : 0), bucket_s) + gather_s);
  }
  // Zero-bubble schedules fill most of the bubble with gradients of weights.
  double hand_over_s = 0;
  for (const auto* table : {&net.forward_hand_over, &net.backward_hand_over})
    for (const auto& of_stage : *table)
      hand_over_s = std::max(hand_over_s, transfer_s(net, of_stage.front(), p.hand_over_bytes));
  const double bubble = rule_of(p.schedule, p.chunks).splits ? 1.0 / 3 : 1;
  const double fill_s = (p.stages - 1.0) * (bubble * all_s / p.stages / p.chunks + 2 * hand_over_s);
  out.step_s = p.micro_batches * slowest_s + fill_s + tail_s + p.optimizer.device_s() + p.fixed_s;
  out.busy += p.optimizer.busy;
  out.busy[Activity::collective] += tail_s;
  return out;
}

}  // namespace

double PlanEstimator::least_s(const StepInputs& in) {
  const StepNetwork none;
  return shape_of(plan_step(in, none, {}, Pass::estimate), none).step_s;
}

StepEstimate PlanEstimator::operator()(const StepInputs& in) {
  const Plan& plan = *in.plan;
  // What neither micro-batch nor recomputation changes: groups, their links, and the mean bucket of a chunk.
  const Grid grid{plan.nodes, plan.tp,          plan.pp,       plan.vp,      plan.cp,    plan.ep,
                  plan.etp,   plan.shard_group, plan.sharding, plan.context, plan.layout};
  if (!net_ || grid != grid_) {
    if (!collectives_) collectives_ = step_collectives(in, fabric_, true);
    net_ = build_step_network(in, collectives_, place(fabric_, placement_, plan.nodes), 1);
    grid_ = grid;
    // The slowest link of each exchange is all that an estimate asks for.
    const auto slowness = [&](const network::LinkUse& use) {
      return use.weight / net_->links[static_cast<size_t>(use.link)].capacity_Bps;
    };
    for (network::LoadClass& c : net_->classes)
      if (!c.uses.empty())
        c.uses = {*std::max_element(c.uses.begin(), c.uses.end(),
                                    [&](const auto& a, const auto& b) { return slowness(a) < slowness(b); })};
  }
  const NodeType& node = in.cluster->node;
  const Shape burst = shape_of(plan_step(in, *net_, {}, Pass::estimate), *net_);
  const Power limit = effective_limit(node, std::nullopt);
  const double slowdown = board_power(node.accelerator, burst.busy.scaled(1 / burst.step_s), limit).slowdown;
  const Shape held = slowdown > 1 ? shape_of(plan_step(in, *net_, {slowdown, slowdown}, Pass::estimate), *net_) : burst;
  NodeState state;
  state.over_fabric = plan.nodes > 1;
  state.in_step = true;
  return {held.step_s, node_parts(node, held.busy.scaled(1 / held.step_s), limit, state).total()};
}

}  // namespace tw
