#include "run/run_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "hardware/gpu_power.hpp"

namespace tw {

// The limiter acts within 60 to 120 ms (reference/gpu_lab_2/burst_length.csv): visits longer than that are held to the
// limit one by one, shorter ones on the average.
static constexpr double kLimiterWindow_s = 0.1;

bool limiter_sees_directions(const RunModel& model) {
  const double visits = model.step.micro_batches * model.step.chunks;
  return model.quiet.backward.time_s / visits > kLimiterWindow_s;
}

ActivityTimes shares_of(const ActivityTimes& seconds, double time_s) {
  return time_s > 0 ? seconds.scaled(1 / time_s) : ActivityTimes{};
}

ActivityTimes mean_activity(const StepOutcome& step) {
  ActivityTimes sum;
  for (const ActivityTimes& a : step.stage_activity) sum += a;
  return sum.scaled(1 / static_cast<double>(step.stage_activity.size()));
}

double SimulatedRun::failed() const {
  double sum = 0;
  for (const double count : failures) sum += count;
  return sum;
}

namespace {

// Shares at burst speed: clock-bound kernels shortened back, waits kept.
ActivityTimes burst_shares(const ActivityTimes& seconds, double time_s, double slowdown) {
  ActivityTimes burst = seconds;
  double saved = 0;
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    if (!clock_bound(a)) continue;
    saved += seconds[a] * (1 - 1 / slowdown);
    burst[a] = seconds[a] / slowdown;
  }
  return burst.scaled(1 / (time_s - saved));
}

// One evaluated batch on one replica: forward passes through all chunks.
void evaluate_batch(const RunInputs& in, const StepNetwork& net, double slowdown, double& time_s, ActivityTimes& busy) {
  if (in.step.workload != nullptr) {
    const ProfiledWorkload& w = *in.step.workload;
    time_s = w.evaluation_per_sample.value();
    busy = ActivityTimes{};
    const auto& mix = w.evaluation_activities.empty() ? w.activities : w.evaluation_activities;
    for (const auto& [name, activity] : Choices<Activity>::table())
      if (const auto share = mix.find(name); share != mix.end()) busy[activity] = share->second * time_s;
    return;
  }
  // The host's own work for a call: it is beside the device where that is what takes longer, and shared by the ga
  // micro-batches that a pipeline takes in one call.
  const double stages = in.step.plan->pp, chunks = in.step.plan->vp;
  const double per_call_s = in.step.software->phases.evaluation_per_batch.value() /
                            in.step.cluster->hosts.launch_speed / (stages > 1 ? in.step.plan->ga() : 1);
  TaskCost sum;
  double slowest = 0;
  for (const PassCost& c : chunk_costs(in.step, net.exchange, {slowdown, slowdown}, Pass::evaluation)) {
    sum += c.forward;
    slowest = std::max(slowest, std::max(c.forward.device_s(), c.forward.host_s + per_call_s / chunks));
  }
  // Batches follow one another through the pipeline: each takes the slowest stage's time.
  time_s = stages > 1 ? slowest * chunks : std::max(sum.device_s(), sum.host_s + per_call_s);
  busy = sum.busy;
  busy[Activity::collective] += sum.tp_s + sum.cp_s + sum.ep_s;
  busy = busy.scaled(1 / stages);
}

}  // namespace

RunModel build_run_model(const RunInputs& in, network::Engine& engine, const StepNetwork& network, int level) {
  RunModel model;
  model.network = network;
  model.level = level;
  model.replicas = level >= 2 && in.step.workload == nullptr ? in.step.plan->dp : 1;
  const Accelerator& accelerator = in.step.cluster->node.accelerator;
  const auto slowdown_of = [&](const ActivityTimes& seconds, double time_s, double now) {
    return board_power(accelerator, burst_shares(seconds, time_s, now), accelerator.board_limit).slowdown;
  };
  // The board limit changes the clock, the clock the shares, and they the power: a few rounds settle it.
  for (int round = 0; round < 8; ++round) {
    model.step = plan_step(in.step, network, model.slowdown);
    StepPlan quiet = model.step;
    quiet.noise = HostNoise{};
    model.spans.clear();
    model.quiet = simulate_step(quiet, network, engine, model.replicas, 0, 0, &model.spans);
    const StepOutcome& q = model.quiet;
    Slowdown next;
    if (limiter_sees_directions(model)) {
      next = {slowdown_of(q.forward.activity, q.forward.time_s, model.slowdown.forward),
              slowdown_of(q.backward.activity, q.backward.time_s, model.slowdown.backward)};
    } else {
      next.forward = next.backward = slowdown_of(mean_activity(q), q.time_s, model.slowdown.forward);
    }
    const bool settled =
        std::abs(next.forward - model.slowdown.forward) + std::abs(next.backward - model.slowdown.backward) < 1e-6;
    if (settled) break;
    model.slowdown = next;
  }
  double slowdown = 1, time_s = 0;
  ActivityTimes busy;
  for (int round = 0; round < 6; ++round) {
    evaluate_batch(in, network, slowdown, time_s, busy);
    const double next = time_s > 0 ? slowdown_of(busy, time_s, slowdown) : 1;
    if (std::abs(next - slowdown) < 1e-6) break;
    slowdown = next;
  }
  model.input = input_time(in.step, in.run->data);
  model.evaluation_batch_s = time_s;
  model.evaluation_shares = shares_of(busy, time_s);
  return model;
}

FailureRates job_failure_rates(const RunInputs& in) {
  if (!in.run->reliability) return {};
  const NodeType& node = in.step.cluster->node;
  return failure_rates(*in.run->reliability, in.step.plan->nodes, node.gpus, node.nics, in.switches);
}

double restart_s(const RunInputs& in, double read_s) {
  if (!in.run->reliability) return 0;
  const Software& software = *in.step.software;
  return in.run->reliability->detect.value() + in.run->reliability->reschedule.value() + software.phases.init.value() +
         read_s + software.phases.first_step_extra.value();
}

}  // namespace tw
