#include <algorithm>
#include <map>
#include <string>

#include "hardware/gpu_power.hpp"
#include "step/step_model.hpp"

namespace tw {
namespace {

// Adds `time_s` of work with a mix of activities to one direction of a step. The profile's times are sustained ones,
// and its mixes stay under the board limit that it was measured with: only a lower limit lengthens clock-bound kernels.
void add_mix(TaskCost& task, const std::map<std::string, double>& shares, double time_s, double slowdown) {
  double gap_s = time_s;
  for (const auto& [name, activity] : Choices<Activity>::table()) {
    const auto share = shares.find(name);
    if (share == shares.end()) continue;
    task.busy[activity] += share->second * time_s * (clock_bound(activity) ? slowdown : 1);
    gap_s -= share->second * time_s;
  }
  // Shares below 1 leave gaps in which the device waits for its host or its input.
  task.gap_s += std::max(0.0, gap_s);
}

// A benchmark known only by its step time: one forward and backward of given length and activity mix.
PassCost profiled_cost(const StepInputs& in, const StepNetwork& net, const Slowdown& slowdown) {
  const ProfiledWorkload& w = *in.workload;
  const double batch = static_cast<double>(in.plan->gbs) / in.plan->dp, speed = in.cluster->hosts.device_speed;
  // With tp > 1 that many accelerators share each sample.
  const double fixed_s = w.fixed.value(), samples_s = w.per_sample.value() * batch / in.plan->tp;
  const auto& fixed_mix = w.fixed_activities.empty() ? w.activities : w.fixed_activities;
  PassCost cost;
  // Backward is about two thirds of a step.
  add_mix(cost.forward, fixed_mix, fixed_s / 3, slowdown.forward / speed);
  add_mix(cost.forward, w.activities, samples_s / 3, slowdown.forward / speed);
  add_mix(cost.backward, fixed_mix, fixed_s * 2 / 3, slowdown.backward / speed);
  add_mix(cost.backward, w.activities, samples_s * 2 / 3, slowdown.backward / speed);
  // A halo: a face of the first layers' volumes, 128 x 128 with 32 channels in FP16.
  constexpr double halo_bytes = 128.0 * 128 * 32 * 2;
  const double split_s = in.plan->tp > 1 ? w.split_exchanges * net.exchange(Exchange::tp_all_reduce, halo_bytes) : 0;
  cost.forward.tp_s += split_s / 2;
  cost.backward.tp_s += split_s / 2;
  cost.forward.ep_s += net.sample_exchange_s;
  cost.backward.ep_s += net.sample_exchange_s;
  return cost;
}

// Costs of model chunks where the schedule places them.
std::vector<PassCost> placed(const std::vector<PassCost>& chunks, const ChunkPlacement& placement, int stages) {
  std::vector<PassCost> slots(static_cast<size_t>(placement.slots * stages));
  for (const auto& way : placement.way)
    for (size_t c = 0; c < way.size(); ++c) slots[static_cast<size_t>(way[c].slot * stages + way[c].stage)] = chunks[c];
  return slots;
}

StepPlan profiled_step(StepPlan s, const StepInputs& in, const StepNetwork& net, const Slowdown& slowdown) {
  PassCost cost = profiled_cost(in, net, slowdown);
  cost.last_backward = cost.backward;
  // A share of the gradients may travel while backward runs: of one bucket a part.
  const double each = 1.0 / gradient_buckets, early = in.workload->overlap;
  for (int b = 0; b < gradient_buckets; ++b) {
    const double part = std::clamp(early * gradient_buckets - b, 0.0, 1.0);
    const double bytes = in.workload->gradients.value() * each;
    if (part > 0) cost.buckets.push_back({std::min(early, (b + 1) * each), {bytes * part, 0}, 1});
    if (part < 1) cost.buckets.push_back({1, {bytes * (1 - part), 0}, 1});
  }
  s.cost = {cost};
  // Asynchronous engines and graphs queue whole steps ahead, so that a stall of the host seldom reaches the device.
  s.host_lead_s = 1;
  return s;
}

// Both ends of a pipeline hold a tied table. When all gradients are there, theirs meet (Megatron-Core's
// finalize_model_grads): a rank and its mate send each other half of what they hold, and the sum of the other half
// back.
double tied_table_s(const StepInputs& in, const StepNetwork& net) {
  if (!in.network->tied_embeddings || in.plan->pp < 2 || net.forward_hand_over.empty()) return 0;
  double bytes = 0;
  for (const ParameterGroup& g : groups_of(in))
    if (g.repeated && g.trained)
      bytes += g.held * in.software->memory.gradient_bytes_per_parameter /
               (in.plan->sharding == Sharding::zero3 ? g.shards : 1);
  return transfer_s(net, net.forward_hand_over.front().front(), bytes);
}

}  // namespace

double transfer_s(const StepNetwork& net, int load_class, double bytes) {
  if (load_class < 0 || bytes <= 0) return 0;
  const network::LoadClass& c = net.classes[static_cast<size_t>(load_class)];
  double slowest = 0;
  for (const network::LinkUse& use : c.uses)
    slowest = std::max(slowest, use.weight / net.links[static_cast<size_t>(use.link)].capacity_Bps);
  return c.latency_s + bytes * slowest;
}

StepPlan plan_step(const StepInputs& in, const StepNetwork& net, const Slowdown& slowdown, Pass pass) {
  const Plan& plan = *in.plan;
  const Software& software = *in.software;
  StepPlan s;
  s.stages = plan.pp;
  s.chunks = plan.vp;
  s.schedule = plan.schedule;
  s.members = plan.dp;
  s.nodes_per_member = static_cast<double>(plan.nodes) / plan.dp;
  s.fixed_s = software.phases.step_fixed.value();
  s.noise = in.cluster->hosts.noise;
  if (in.workload != nullptr) return profiled_step(std::move(s), in, net, slowdown);
  const ChunkPlacement placement = rule_of(plan.schedule, plan.vp).placement(plan.pp, plan.vp);
  s.micro_batches = plan.ga();
  s.cost = placed(chunk_costs(in, net.exchange, slowdown, pass, net.shared), placement, plan.pp);
  s.optimizer = optimizer_cost(in);
  s.fixed_s += tied_table_s(in, net);
  s.meet_every_visit = software.streams.amax_every_micro_batch && in.training->precision.scaled;
  s.reduce_every_visit = plan.sharding == Sharding::zero2;
  s.gradients_beside = software.streams.gradients_beside_backward;
  s.queued_hand_over = software.streams.paired_hand_over;
  const double hidden = static_cast<double>(in.network->hidden);
  // Without sequence parallelism, too, a rank of a tensor-parallel group sends its slice of what all of them hold; the
  // next stage gathers it over NVLink (Megatron-LM's scatter-gather, DeepSpeed's partitioned activations).
  s.hand_over_bytes = 2 * local_tokens(*in.training, plan) * hidden / plan.tp;
  if (plan.sharding == Sharding::none || software.streams.tensors_have_owners)  // all-reduced in buckets
    s.bucket_copy_s_per_byte = 0.5 * software.kernels.gradient_copy_passes /
                               (in.cluster->node.accelerator.copy_bandwidth.value() *
                                software.kernels.memory_efficiency * in.cluster->hosts.device_speed);
  // Updated BF16 weights come back from the shards: beside the next forward (chunk_costs), or at once. ZeRO-3 gathers
  // them in the passes.
  const bool gathers =
      (plan.sharding == Sharding::zero1 || plan.sharding == Sharding::zero2) && !software.streams.gather_beside_forward;
  if (!gathers) return s;
  const auto groups = groups_of(in);
  s.weight_bytes.resize(s.cost.size());
  const double weight = 2 / software.memory.gradient_bytes_per_parameter;
  for (const auto& way : placement.way)
    for (size_t c = 0; c < way.size(); ++c) {
      const SharedSum bytes = exchanged_gradients(in, groups, static_cast<int>(c));
      s.weight_bytes[static_cast<size_t>(way[c].slot * plan.pp + way[c].stage)] = {bytes.dense * weight,
                                                                                   bytes.experts * weight};
    }
  return s;
}

}  // namespace tw
