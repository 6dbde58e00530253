#include "step/step_model.hpp"

namespace tw {
namespace {

// A benchmark known only by its step time: one forward and backward of given length and activity mix.
PassCost profiled_cost(const StepInputs& in, const Slowdown& slowdown) {
  const ProfiledWorkload& w = *in.workload;
  const double batch = static_cast<double>(in.plan->gbs) / in.plan->dp;
  // The profile's times are sustained ones: the board limit is in them already.
  (void)slowdown;
  const double time_s = (w.fixed.value() + w.per_sample.value() * batch) / in.cluster->hosts.device_speed;
  PassCost cost;
  for (const auto& [name, activity] : Choices<Activity>::table()) {
    const auto share = w.activities.find(name);
    if (share == w.activities.end()) continue;
    // Backward is about two thirds of a step.
    cost.forward.busy[activity] += share->second * time_s / 3;
    cost.backward.busy[activity] += share->second * time_s * 2 / 3;
  }
  // Shares below 1 leave gaps in which the device waits for its host or its input.
  cost.forward.gap_s = time_s / 3 - cost.forward.busy.total();
  cost.backward.gap_s = time_s * 2 / 3 - cost.backward.busy.total();
  return cost;
}

}  // namespace

StepPlan plan_step(const StepInputs& in, const StepNetwork& net, const Slowdown& slowdown) {
  const Plan& plan = *in.plan;
  StepPlan s;
  s.stages = plan.pp;
  s.chunks = plan.vp;
  s.schedule = plan.schedule;
  s.members = plan.dp;
  s.nodes_per_member = static_cast<double>(plan.nodes) / plan.dp;
  s.fixed_s = in.software->step_fixed.value();
  s.noise = in.cluster->hosts.noise;
  if (in.workload != nullptr) {
    s.cost = {profiled_cost(in, slowdown)};
    s.gradient_bytes = {in.workload->gradients.value()};
    s.gradient_overlap = in.workload->overlap;
    // Asynchronous engines and graphs queue whole steps ahead, so that a stall of the host seldom reaches the device.
    s.run_ahead_s = 1;
    return s;
  }
  s.micro_batches = plan.ga();
  s.cost = chunk_costs(in, net.exchange, slowdown, Pass::training);
  s.optimizer = optimizer_cost(in);
  s.meet_every_visit = in.software->amax_every_micro_batch && in.training->precision == Precision::fp8;
  s.gradient_overlap = in.software->dp_overlap;
  const double hidden = static_cast<double>(in.network->hidden);
  s.hand_over_bytes = 2 * local_tokens(*in.training, plan) * hidden / (plan.sequence_parallel ? plan.tp : 1);
  s.hand_over_exposed_s = (1 - in.software->pp_overlap) * net.hand_over_s;
  for (size_t c = 0; c < s.cost.size(); ++c) {
    s.gradient_bytes.push_back(chunk_gradient_bytes(in, static_cast<int>(c)));
    // Updated BF16 weights come back from the shards.
    s.weight_bytes.push_back(
        plan.sharding == Sharding::none ? 0 : s.gradient_bytes.back() / in.software->gradient_bytes_per_parameter * 2);
  }
  return s;
}

}  // namespace tw
