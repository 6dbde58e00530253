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

namespace {

constexpr int kNoisyPipelineSteps = 8;     // simulated with noise; later steps draw one of them
constexpr double kShortestPhase_s = 0.25;  // steps shorter than this share a phase
constexpr double kMostPhases = 20000;      // long runs take coarser phases: memory does not grow with steps
constexpr double kMostSteps = 2e7;
constexpr double kLongestRun_s = 10 * 365.25 * 86400;

ActivityTimes shares_of(const ActivityTimes& seconds, double time_s) {
  return time_s > 0 ? seconds.scaled(1 / time_s) : ActivityTimes{};
}

ActivityTimes mean_activity(const StepOutcome& step) {
  ActivityTimes sum;
  for (const ActivityTimes& a : step.stage_activity) sum += a;
  return sum.scaled(1 / static_cast<double>(step.stage_activity.size()));
}

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

// The training time of `steps` steps that took `time_s`, cut into what the limiter tells apart.
std::vector<PhasePart> training_parts(const RunModel& model, double steps, double time_s) {
  if (!limiter_sees_directions(model) || time_s <= 0) return {};
  const StepOutcome& q = model.quiet;
  ActivityTimes rest = mean_activity(q);
  rest += q.forward.activity.scaled(-1);
  rest += q.backward.activity.scaled(-1);
  const double rest_s = time_s - steps * (q.forward.time_s + q.backward.time_s);
  std::vector<PhasePart> parts{{steps * q.forward.time_s / time_s, shares_of(q.forward.activity, q.forward.time_s)},
                               {steps * q.backward.time_s / time_s, shares_of(q.backward.activity, q.backward.time_s)}};
  if (rest_s > 0) parts.push_back({rest_s / time_s, shares_of(rest.scaled(steps), rest_s)});
  return parts;
}

double evaluation_batches(const RunInputs& in) {
  const Plan& plan = *in.step.plan;
  const double per_node = in.step.cluster->node.gpus;
  const double ranks = in.step.workload != nullptr
                           ? per_node * (plan.evaluation_nodes > 0 ? plan.evaluation_nodes : plan.nodes)
                           : static_cast<double>(plan.dp) * plan.mbs;
  return std::ceil(in.run->evaluation_samples / ranks);
}

// One evaluated batch on one replica: forward passes through all chunks.
void evaluate_batch(const RunInputs& in, const StepNetwork& net, double slowdown, double& time_s, ActivityTimes& busy) {
  if (in.step.workload != nullptr) {
    const ProfiledWorkload& w = *in.step.workload;
    time_s = w.evaluation_per_sample.value();
    busy = ActivityTimes{};
    for (const auto& [name, activity] : Choices<Activity>::table())
      if (const auto share = w.activities.find(name); share != w.activities.end())
        busy[activity] = share->second * time_s;
    return;
  }
  TaskCost sum;
  double slowest = 0;
  for (const PassCost& c : chunk_costs(in.step, net.exchange, {slowdown, slowdown}, Pass::evaluation)) {
    sum += c.forward;
    slowest = std::max(slowest, std::max(c.forward.device_s(), c.forward.host_s));
  }
  // Batches follow one another through the pipeline: each takes the slowest stage's time.
  const double stages = in.step.plan->pp;
  // What is done once a call is shared by the ga micro-batches that a pipeline takes in one call.
  const double per_call_s = in.step.software->evaluation_per_batch.value();
  time_s = stages > 1 ? slowest * in.step.plan->vp + per_call_s / in.step.plan->ga()
                      : std::max(sum.device_s(), sum.host_s) + per_call_s;
  busy = sum.busy;
  busy[Activity::collective] += sum.tp_s + sum.cp_s + sum.ep_s;
  busy = busy.scaled(1 / stages);
}

}  // namespace

RunModel build_run_model(const RunInputs& in, network::Engine& engine, const StepNetwork& network, int level) {
  RunModel model;
  model.network = network;
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
  model.evaluation_batch_s = time_s;
  model.evaluation_shares = shares_of(busy, time_s);
  return model;
}

namespace {

// Draws the length of each step.
class StepSource {
 public:
  StepSource(const RunModel& model, network::Engine& engine, uint64_t seed)
      : model_(model), engine_(engine), seed_(seed) {}

  // Total jitter of step `index`, in seconds.
  double jitter_s(uint64_t index) {
    const StepPlan& plan = model_.step;
    if (silent()) return 0;
    if (plan.stages > 1 || model_.replicas > 1) {
      if (noisy_.size() < kNoisyPipelineSteps || model_.replicas > 1)
        noisy_.push_back(simulate_step(plan, model_.network, engine_, model_.replicas, seed_, index).time_s -
                         model_.quiet.time_s);
      if (index < noisy_.size()) return noisy_[index];
      auto stream = random_stream(seed_, "replayed step", index);
      return noisy_[static_cast<size_t>(uniform(stream) * static_cast<double>(noisy_.size()))];
    }
    return replay(index);
  }

 private:
  bool silent() const {
    const HostNoise& n = model_.step.noise;
    return n.device_sigma <= 0 && n.host_sigma <= 0 && n.stalls_per_hour <= 0;
  }
  // One stage: every meeting adds its own draw, in the order of the visits (see simulate_step).
  double replay(uint64_t index) const {
    const StepPlan& plan = model_.step;
    auto stream = random_stream(seed_, "step noise", index << 24U);
    const PassCost& c = plan.cost.front();
    if (!plan.meet_every_visit) {
      const double n = plan.micro_batches;
      const MemberNoise noise =
          noise_of(plan.noise, n * (c.forward.device_s() + c.backward.device_s()),
                   n * (c.forward.host_s + c.backward.host_s) - plan.run_ahead_s, plan.nodes_per_member);
      return draw_maximum(noise, plan.members, stream);
    }
    const MemberNoise forward =
        noise_of(plan.noise, c.forward.device_s(), c.forward.host_s - plan.run_ahead_s, plan.nodes_per_member);
    const MemberNoise backward =
        noise_of(plan.noise, c.backward.device_s(), c.backward.host_s - plan.run_ahead_s, plan.nodes_per_member);
    double sum = 0;
    for (int m = 0; m < plan.micro_batches; ++m) {
      sum += draw_maximum(forward, plan.members, stream);
      sum += draw_maximum(backward, plan.members, stream);
    }
    return sum;
  }

  const RunModel& model_;
  network::Engine& engine_;
  uint64_t seed_;
  std::vector<double> noisy_;
};

// Lays phases one after the other.
class Script {
 public:
  explicit Script(double begin_s) : now_s_(begin_s) {}
  void add(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps = 0,
           std::vector<PhasePart> parts = {}) {
    if (length_s <= 0) return;
    phases_.push_back({kind, now_s_, now_s_ + length_s, shares, steps, std::move(parts)});
    now_s_ += length_s;
  }
  double now_s() const { return now_s_; }
  std::vector<Phase> take() { return std::move(phases_); }

 private:
  double now_s_;
  std::vector<Phase> phases_;
};

// When the slowest of all data loaders is ready, after run_start: each process spawns its own, and the run goes on when
// the last one is there, so that more processes wait longer.
double loaders_ready_s(const RunInputs& in, uint64_t seed) {
  const Software& software = *in.step.software;
  const double speed = in.step.cluster->hosts.spawn_speed;
  if (software.loader_start.value() <= 0) return 0;
  const MemberNoise spread{software.loader_start_sigma.value() / speed, 0, 0};
  if (spread.silent()) return software.loader_start.value() / speed;
  auto stream = random_stream(seed, "loader start", 0);
  const double processes = static_cast<double>(in.step.plan->nodes) * in.step.cluster->node.gpus;
  return std::max(0.0, software.loader_start.value() / speed + draw_maximum(spread, processes, stream));
}

constexpr double kIdleAround_s = 120;  // idle before and after, for meters whose file reaches beyond the run

}  // namespace

SimulatedRun play_run(const RunInputs& in, const RunModel& model, network::Engine& engine, uint64_t seed,
                      size_t index) {
  const Software& software = *in.step.software;
  const Plan& plan = *in.step.plan;
  const RunPlan& run = *in.run;
  const ActivityTimes waiting = ActivityTimes::only(Activity::spin), loaded = ActivityTimes::only(Activity::context),
                      idle = ActivityTimes::only(Activity::idle);
  const ActivityTimes busy = mean_activity(model.quiet);
  const ActivityTimes steady = shares_of(busy, model.quiet.time_s);
  StepSource source(model, engine, seed);

  SimulatedRun out;
  out.slowdown = model.slowdown;
  out.fabric_bytes_per_step = model.quiet.fabric_bytes;
  const double samples_wanted = run.samples_by_run.empty() ? run.samples.value_or(run.steps.value_or(100) * plan.gbs)
                                                           : run.samples_by_run[index % run.samples_by_run.size()];
  const double gbs = plan.gbs;
  const double evaluation_s = software.evaluation_fixed.value() +
                              (in.step.workload ? in.step.workload->evaluation_fixed.value() : 0) +
                              evaluation_batches(in) * model.evaluation_batch_s;
  // What the first evaluation takes longer, it waits at its front; the fixed cost of each is spread between its
  // batches.
  const double batches_s = evaluation_batches(in) * model.evaluation_batch_s;
  const auto evaluate = [&](Script& to, double length_s, double wait_s) {
    to.add(PhaseKind::evaluation, wait_s, waiting);
    to.add(PhaseKind::evaluation, length_s - wait_s, model.evaluation_shares.scaled(batches_s / (length_s - wait_s)));
  };
  out.init_s = software.init.value();
  const double warm_up_s = std::min(software.init_warm_up.value(), out.init_s);

  Script script(-out.init_s - kIdleAround_s);
  script.add(PhaseKind::before, kIdleAround_s, idle);
  script.add(PhaseKind::init, out.init_s - warm_up_s, loaded);
  script.add(PhaseKind::init, warm_up_s, steady, 0, training_parts(model, 1, model.quiet.time_s));

  const double steps_wanted = std::ceil(samples_wanted / gbs - 1e-9);
  const double marks = run.evaluation_interval > 0 ? samples_wanted / run.evaluation_interval : 0;
  const double expected_s = steps_wanted * model.quiet.time_s + marks * evaluation_s;
  if (!(steps_wanted <= kMostSteps) || !(expected_s <= kLongestRun_s))
    throw DoesNotFit(
        fmt::format("a run of {:.3g} steps and {:.3g} days; at most {:.0g} steps and ten years are simulated",
                    steps_wanted, expected_s / 86400, kMostSteps));
  const double shortest_phase_s = std::max(kShortestPhase_s, expected_s / kMostPhases);
  const auto all_steps = static_cast<long>(steps_wanted);
  const bool evaluates = run.evaluation_interval > 0 && evaluation_s > 0;
  const bool blocking = evaluates && !run.asynchronous_evaluation;
  std::vector<double> evaluation_begins;  // asynchronous: when an evaluation's weights were ready
  double next_evaluation =
      evaluates ? (run.first_evaluation_at > 0 ? run.first_evaluation_at : run.evaluation_interval) : 1e300;
  double pending_s = 0, jitter_sum = 0, step_sum = 0;
  int pending = 0;
  const auto flush = [&] {
    if (pending > 0)
      script.add(PhaseKind::train, pending_s, shares_of(busy.scaled(pending), pending_s), pending,
                 training_parts(model, pending, pending_s));
    pending = 0;
    pending_s = 0;
  };
  for (long step = 0; step < all_steps; ++step) {
    const double jitter_s = source.jitter_s(static_cast<uint64_t>(step));
    const double step_s = std::max(0.2 * model.quiet.time_s, model.quiet.time_s + jitter_s);
    if (step == 0) {
      // Kernels are warm by then; what is set up in the first step are the communicators over the fabric.
      out.first_step_s = step_s + software.first_step_extra.value();
      script.add(PhaseKind::first_step, out.first_step_s, shares_of(busy, out.first_step_s), 1,
                 training_parts(model, 1, out.first_step_s));
      // The first batch is prefetched; the loaders of the others start with the run, so the step hides part of it.
      const double wait_s =
          software.wait_after_first_step.value() + std::max(0.0, loaders_ready_s(in, seed) - out.first_step_s);
      script.add(PhaseKind::wait, wait_s, waiting);
      out.wait_s += wait_s;
    } else {
      pending_s += step_s;
      ++pending;
      step_sum += step_s;
      jitter_sum += jitter_s;
      if (pending_s >= shortest_phase_s) flush();
    }
    const double samples = static_cast<double>(step + 1) * gbs;
    if (samples + 1e-9 < next_evaluation && step + 1 < all_steps) continue;
    if (!evaluates) continue;
    flush();
    ++out.evaluations;
    // Evaluations fall on whole steps: a mark that lies inside one counts at its end.
    while (next_evaluation <= samples + 1e-9) next_evaluation += run.evaluation_interval;
    if (!blocking) {
      evaluation_begins.push_back(script.now_s());
      continue;
    }
    const bool first = out.evaluations == 1;
    if (first) {
      const double wait_s = software.wait_before_first_evaluation.value() / in.step.cluster->hosts.spawn_speed;
      script.add(PhaseKind::wait, wait_s, waiting);
      out.wait_s += wait_s;
    }
    const double length_s = evaluation_s + (first ? software.first_evaluation_extra.value() : 0);
    (first ? out.eval_first_s : out.eval_s) = length_s;
    evaluate(script, length_s, length_s - evaluation_s);
  }
  flush();
  if (out.evaluations == 1) out.eval_s = out.eval_first_s;
  double end_s = script.now_s();
  if (!evaluation_begins.empty()) {
    out.eval_s = out.eval_first_s = evaluation_s;
    // The last evaluation tells that the target is met.
    end_s = evaluation_begins.back() + evaluation_s;
    script.add(PhaseKind::wait, end_s - script.now_s(), waiting);
  }
  out.time_s = end_s;
  script.add(PhaseKind::after, software.release.value(), waiting);
  script.add(PhaseKind::after, kIdleAround_s, idle);

  out.steps = static_cast<double>(all_steps);
  out.samples = out.steps * gbs;
  const double counted = std::max(1.0, out.steps - 1);
  out.step_s = out.steps > 1 ? step_sum / counted : model.quiet.time_s;
  out.breakdown = model.quiet.breakdown;
  out.breakdown.jitter += out.step_s - model.quiet.time_s;
  out.train_shares = shares_of(busy, out.step_s);
  out.timeline.run_begin_s = 0;
  out.timeline.run_end_s = end_s;
  NodeGroup train{"train", {}, script.take()};
  for (int n = 0; n < plan.nodes; ++n) train.nodes.push_back(n);
  out.timeline.groups.push_back(std::move(train));
  if (plan.evaluation_nodes > 0) {
    NodeGroup beside{"evaluate", {}, {}};
    for (int n = 0; n < plan.evaluation_nodes; ++n) beside.nodes.push_back(plan.nodes + n);
    Script s(-out.init_s - kIdleAround_s);
    s.add(PhaseKind::before, kIdleAround_s, idle);
    s.add(PhaseKind::init, out.init_s, loaded);
    for (const double begin : evaluation_begins) {
      s.add(PhaseKind::wait, begin - s.now_s(), waiting);
      evaluate(s, evaluation_s, 0);
    }
    s.add(PhaseKind::wait, end_s - s.now_s(), waiting);
    s.add(PhaseKind::after, software.release.value(), waiting);
    s.add(PhaseKind::after, kIdleAround_s, idle);
    beside.phases = s.take();
    out.timeline.groups.push_back(std::move(beside));
  }
  return out;
}

}  // namespace tw
