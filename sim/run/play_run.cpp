// Plays one seeded run: start-up, steps, evaluations, checkpoints, failures, slow nodes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "run/horizon.hpp"
#include "run/lanes.hpp"
#include "run/step_source.hpp"

namespace tw {
namespace {

constexpr double kShortestPhase_s = 0.25;  // steps shorter than this share a phase
constexpr double kMostPhases = 20000;      // long runs take coarser phases: memory does not grow with steps
constexpr double kIdleAround_s = 120;      // idle before and after, for meters whose file reaches beyond the run
constexpr double kNever = std::numeric_limits<double>::infinity();

// When the slowest of all data loaders is ready, after run_start: each process spawns its own, and the run goes on when
// the last one is there, so that more processes wait longer.
double loaders_ready_s(const RunInputs& in, uint64_t seed) {
  const Software& software = *in.step.software;
  const double speed = in.step.cluster->hosts.spawn_speed;
  if (software.phases.loader_start.value() <= 0) return 0;
  const MemberNoise spread{software.phases.loader_start_sigma.value() / speed, 0, 0};
  if (spread.silent()) return software.phases.loader_start.value() / speed;
  auto stream = random_stream(seed, "loader start", 0);
  const double processes = static_cast<double>(in.step.plan->nodes) * in.step.cluster->node.gpus;
  return std::max(0.0, software.phases.loader_start.value() / speed + draw_maximum(spread, processes, stream));
}

// Samples to the target of one run of a series, before rounding to whole steps.
double target_samples(const RunInputs& in, const SeriesRun& series) {
  const RunPlan& run = *in.run;
  const double gbs = in.step.plan->gbs;
  if (run.convergence)
    return draw_samples(*run.convergence, gbs, run.first_evaluation_at, run.evaluation_interval, series.seed);
  if (!run.samples_by_run.empty()) return run.samples_by_run[series.index % run.samples_by_run.size()];
  if (run.tokens) return std::ceil(*run.tokens / (gbs * static_cast<double>(in.step.training->sequence)) - 1e-9) * gbs;
  return run.samples.value_or(run.steps.value_or(100) * gbs);
}

// Noise may make the mean step a little shorter than the quiet one, and differences leave a hair below 0: what a part
// lacks is taken from the others in proportion.
void no_part_below_zero(Breakdown& b) {
  double* const parts[] = {&b.compute, &b.host,   &b.tp,        &b.cp,     &b.pp,   &b.dp,
                           &b.ep,      &b.bubble, &b.optimizer, &b.jitter, &b.other};
  const double total = b.total();
  double positive = 0;
  for (const double* part : parts) positive += std::max(0.0, *part);
  if (!(positive > total) || !(total > 0)) return;
  for (double* part : parts) *part = std::max(0.0, *part) * (total / positive);
}

class Player {
 public:
  Player(const RunInputs& in, const RunModel& model, network::Engine& engine, const SeriesRun& series)
      : in_(in),
        model_(model),
        run_(*in.run),
        software_(*in.step.software),
        seed_(series.seed),
        gbs_(in.step.plan->gbs),
        source_(model, engine, series),
        busy_(mean_activity(model.quiet)),
        failures_(job_failure_rates(in), series.seed),
        lanes_(in, model, -in.step.software->phases.init.value() - kIdleAround_s) {
    out_.target_samples = target_samples(in, series);
    const Horizon horizon = horizon_of(in, model, out_.target_samples);
    all_steps_ = horizon.steps;
    shortest_phase_s_ = std::max(kShortestPhase_s, horizon.expected_s / kMostPhases);
    evaluation_batches_s_ = evaluation_batches(in) * model.evaluation_batch_s;
    evaluation_fixed_s_ =
        software_.phases.evaluation_fixed.value() + (in.step.workload ? in.step.workload->evaluation_fixed.value() : 0);
    evaluates_ = run_.evaluation_interval > 0 && run_.evaluation_samples > 0 && evaluation_s() > 0;
    if (evaluates_)
      next_evaluation_ = run_.first_evaluation_at > 0 ? run_.first_evaluation_at : run_.evaluation_interval;
    if (run_.checkpoints) cost_ = checkpoint_cost(in.step, *run_.checkpoints);
    safe_ = {{0, next_evaluation_, 0, 0}};
    failure_at_ = failures_.next_gap_s();
  }

  SimulatedRun play() {
    start_up();
    while (done_ < all_steps_)
      if (step()) after_step();
    flush();
    finish();
    return std::move(out_);
  }

 private:
  // A state that a failure can go back to.
  struct State {
    long steps = 0;
    double next_evaluation = kNever;
    double reached_s = 0;
    double safe_s = 0;  // from then on
  };

  double evaluation_s() const { return evaluation_fixed_s_ + evaluation_batches_s_; }
  double now_s() const { return lanes_.now_s() + pending_s_; }

  // A stretch of one kind on all nodes. False when a failure cut it off; the run has then gone back.
  bool pass(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps = 0,
            std::vector<PhasePart> parts = {}) {
    if (length_s <= 0) return true;
    if (lanes_.now_s() + length_s <= failure_at_) {
      lanes_.add(kind, length_s, shares, steps, std::move(parts));
      return true;
    }
    lanes_.add(kind, failure_at_ - lanes_.now_s(), shares);
    recover();
    return false;
  }

  // Training steps that wait for their phase.
  void flush() {
    if (pending_s_ > 0) lanes_.train(pending_, pending_s_, busy_);
    pending_ = 0;
    pending_s_ = 0;
  }

  void start_up() {
    out_.init_s = software_.phases.init.value();
    const double warm_up_s = std::min(software_.phases.init_warm_up.value(), out_.init_s);
    lanes_.add(PhaseKind::before, kIdleAround_s, idle_);
    lanes_.add(PhaseKind::init, out_.init_s - warm_up_s, loaded_);
    lanes_.add(PhaseKind::init, warm_up_s, shares_of(busy_, model_.quiet.time_s), 0,
               training_parts(model_, 1, model_.quiet.time_s));
  }

  // One step. False when a failure cut it off.
  bool step() {
    if (lanes_.changes_by(now_s())) {
      flush();
      lanes_.set_pace(lanes_.now_s());
    }
    const double jitter_s = source_.jitter_s(executed_++);
    const double own_s = std::max(0.2 * model_.quiet.time_s, model_.quiet.time_s + jitter_s);
    const double paced_s = own_s * lanes_.pace();
    const double step_s = std::max(paced_s, model_.input.batch_s);
    if (executed_ == 1) return first_step(step_s);
    if (now_s() + step_s > failure_at_) {
      // The part of the step that was done ran as any other; it counts for nothing.
      pending_ += std::max(0.0, (failure_at_ - now_s()) / step_s);
      pending_s_ = failure_at_ - lanes_.now_s();
      flush();
      recover();
      return false;
    }
    pending_s_ += step_s;
    ++pending_;
    step_sum_ += step_s;
    out_.slow_s += paced_s - own_s;
    input_sum_ += step_s - paced_s;
    slow_sum_ += paced_s - own_s;
    useful_s_ += step_s;
    ++done_;
    if (pending_s_ >= shortest_phase_s_) flush();
    return true;
  }

  bool first_step(double step_s) {
    // Kernels are warm by then; what is set up in the first step are the communicators over the fabric.
    out_.first_step_s = step_s + software_.phases.first_step_extra.value();
    if (!pass(PhaseKind::first_step, out_.first_step_s, shares_of(busy_, out_.first_step_s), 1,
              training_parts(model_, 1, out_.first_step_s)))
      return false;
    // The first batch is prefetched; the loaders of the others start with the run, so the step hides part of it.
    const double wait_s =
        software_.phases.wait_after_first_step.value() + std::max(0.0, loaders_ready_s(in_, seed_) - out_.first_step_s);
    if (!pass(PhaseKind::wait, wait_s, waiting_)) return false;
    out_.wait_s += wait_s;
    useful_s_ += step_s;
    ++done_;
    return true;
  }

  void after_step() {
    const double samples = static_cast<double>(done_) * gbs_;
    if (evaluates_ && (samples + 1e-9 >= next_evaluation_ || done_ == all_steps_) && !evaluate(samples)) return;
    if (!run_.checkpoints || done_ == all_steps_) return;
    const double interval_s = run_.checkpoints->interval.value();
    const bool due = interval_s > 0 ? now_s() - last_checkpoint_s_ >= interval_s
                                    : std::fmod(static_cast<double>(done_), run_.checkpoints->every_steps) < 0.5;
    if (due) checkpoint();
  }

  // False when a failure cut it off.
  bool evaluate(double samples) {
    flush();
    ++out_.evaluations;
    last_off_mark_ = samples + 1e-9 < next_evaluation_;
    // Evaluations fall on whole steps: a mark that lies inside one counts at its end.
    while (next_evaluation_ <= samples + 1e-9) next_evaluation_ += run_.evaluation_interval;
    if (run_.asynchronous_evaluation) {
      evaluation_begins_.push_back(lanes_.now_s());
      return true;
    }
    const bool first = out_.evaluations == 1;
    if (first) {
      const double wait_s = software_.phases.wait_before_first_evaluation.value() / in_.step.cluster->hosts.spawn_speed;
      if (!pass(PhaseKind::wait, wait_s, waiting_)) return false;
      out_.wait_s += wait_s;
    }
    const double extra_s = first ? software_.phases.first_evaluation_extra.value() : 0;
    const double batches_s = evaluation_batches_s_ * lanes_.pace();
    const double own_s = evaluation_fixed_s_ + batches_s;
    (first ? out_.eval_first_s : out_.eval_s) = own_s + extra_s;
    // What the first evaluation takes longer, it waits at its front; the fixed cost of each is spread between its
    // batches.
    return pass(PhaseKind::evaluation, extra_s, waiting_) &&
           pass(PhaseKind::evaluation, own_s, model_.evaluation_shares.scaled(evaluation_batches_s_ / own_s));
  }

  void checkpoint() {
    flush();
    const CheckpointPlan& plan = *run_.checkpoints;
    last_checkpoint_s_ = lanes_.now_s();
    if (plan.asynchronous && write_ends_s_ > lanes_.now_s()) {
      const double wait_s = write_ends_s_ - lanes_.now_s();
      if (!pass(PhaseKind::checkpoint, wait_s, waiting_)) return;
      out_.checkpoint_s += wait_s;
      out_.checkpoint_wait_s += wait_s;
    }
    State state{done_, next_evaluation_, lanes_.now_s(), 0};
    const double blocked_s = plan.asynchronous ? cost_.snapshot_s : cost_.write_s;
    if (!pass(PhaseKind::checkpoint, blocked_s, waiting_)) return;
    state.safe_s = lanes_.now_s() + (plan.asynchronous ? cost_.write_s : 0);
    write_ends_s_ = state.safe_s;
    out_.checkpoint_s += blocked_s;
    ++out_.checkpoints;
    // The one before serves until this one is safe.
    if (safe_.size() > 1) safe_.erase(safe_.begin());
    safe_.push_back(state);
  }

  // The job is down from failure_at_ on: detected, started again, restored to the last safe state.
  void recover() {
    flush();
    const double failed_s = failure_at_;
    State state = safe_.front();
    for (const State& s : safe_)
      if (s.safe_s <= failed_s) state = s;
    const Component kind = failures_.next_kind();
    ++out_.failures[static_cast<size_t>(kind)];
    const double detect_s = run_.reliability->detect.value();
    lanes_.add(PhaseKind::restart, detect_s, waiting_);
    const double spare_s = takes_node(kind) ? spare_wait_s() : 0;
    lanes_.add(PhaseKind::restart, spare_s, idle_);
    out_.spare_s += spare_s;
    lanes_.add(PhaseKind::restart, restart_s(in_, state.steps > 0 ? cost_.read_s : 0) - detect_s, loaded_);
    out_.restart_s += lanes_.now_s() - failed_s;
    out_.rework_s += failed_s - state.reached_s;
    out_.restarts.push_back({state.steps, kind, failed_s - state.reached_s, spare_s});
    // Steps since then did not count.
    useful_s_ -= useful_since(state.steps);
    done_ = state.steps;
    next_evaluation_ = state.next_evaluation;
    last_checkpoint_s_ = state.reached_s = state.safe_s = lanes_.now_s();
    write_ends_s_ = 0;
    safe_ = {state};
    failure_at_ = lanes_.now_s() + failures_.next_gap_s();
    if (lanes_.now_s() > kLongestRun_s || out_.failed() > kMostFailures)
      throw DoesNotFit(fmt::format(
          "the run does not end: in {:.3g} days and after {:.0f} failures, {} of {} steps are done; failures "
          "are too frequent for its checkpoints",
          lanes_.now_s() / 86400, out_.failed(), done_, all_steps_));
  }

  // Until a node can take the place of a failed one: none while a spare is left, else until the next is repaired.
  double spare_wait_s() {
    const double now = lanes_.now_s();
    std::erase_if(repaired_s_, [&](double t) { return t <= now; });
    repaired_s_.push_back(now + run_.reliability->repair.value());
    if (repaired_s_.size() <= static_cast<size_t>(run_.spare_nodes)) return 0;
    return std::max(0.0, *std::min_element(repaired_s_.begin(), repaired_s_.end()) - now);
  }

  // Time of the steps beyond the first `steps`, at the mean of all: single steps are not kept.
  double useful_since(long steps) const {
    return done_ > 0 ? useful_s_ * static_cast<double>(done_ - steps) / static_cast<double>(done_) : 0;
  }

  void finish() {
    if (out_.evaluations == 1) out_.eval_s = out_.eval_first_s;
    double end_s = lanes_.now_s();
    std::vector<double> begins;  // an evaluation waits for the one before
    for (const double ready : evaluation_begins_) {
      // Samples given as a mean over runs end between two marks: that evaluation is the mean one, and never waits.
      const bool free = begins.empty() || (last_off_mark_ && begins.size() + 1 == evaluation_begins_.size());
      const double begin = free ? ready : std::max(ready, begins.back() + evaluation_s());
      out_.evaluations_queue |= begin > ready;
      begins.push_back(begin);
    }
    if (!begins.empty()) {
      out_.eval_s = out_.eval_first_s = evaluation_s();
      // The last evaluation tells that the target is met.
      end_s = begins.back() + evaluation_s();
      lanes_.add(PhaseKind::wait, end_s - lanes_.now_s(), waiting_);
    }
    out_.time_s = end_s;
    lanes_.add(PhaseKind::after, software_.phases.release.value(), waiting_);
    lanes_.add(PhaseKind::after, kIdleAround_s, idle_);

    const auto executed = static_cast<double>(executed_);
    out_.steps = static_cast<double>(all_steps_);
    out_.samples = out_.steps * gbs_;
    const double counted = std::max(1.0, executed - 1);
    out_.step_s = executed > 1 ? step_sum_ / counted : model_.quiet.time_s;
    out_.input_s = input_sum_ / counted;
    out_.useful_s = useful_s_;
    const double other_s = out_.input_s + slow_sum_ / counted;  // waits for data and for slow nodes
    out_.breakdown = model_.quiet.breakdown;
    out_.breakdown.jitter += out_.step_s - model_.quiet.time_s - other_s;
    out_.breakdown.other += other_s;
    no_part_below_zero(out_.breakdown);
    out_.slowdown = model_.slowdown;
    out_.fabric_bytes_per_step = model_.quiet.fabric_bytes;
    out_.train_shares = shares_of(busy_, out_.step_s);
    out_.timeline.run_begin_s = 0;
    out_.timeline.run_end_s = end_s;
    lanes_.move_to(out_.timeline);
    if (in_.step.plan->evaluation_nodes > 0) add_evaluation_nodes(begins, end_s);
  }

  void add_evaluation_nodes(const std::vector<double>& begins, double end_s) {
    NodeGroup beside{"evaluate", {}, {}};
    for (int n = 0; n < in_.step.plan->evaluation_nodes; ++n) beside.nodes.push_back(in_.step.plan->nodes + n);
    Script s(-out_.init_s - kIdleAround_s);
    s.add(PhaseKind::before, kIdleAround_s, idle_);
    s.add(PhaseKind::init, out_.init_s, loaded_);
    for (const double begin : begins) {
      s.add(PhaseKind::wait, begin - s.now_s(), waiting_);
      s.add(PhaseKind::evaluation, evaluation_s(),
            model_.evaluation_shares.scaled(evaluation_batches_s_ / evaluation_s()));
    }
    s.add(PhaseKind::wait, end_s - s.now_s(), waiting_);
    s.add(PhaseKind::after, software_.phases.release.value(), waiting_);
    s.add(PhaseKind::after, kIdleAround_s, idle_);
    beside.phases = s.take();
    out_.timeline.groups.push_back(std::move(beside));
  }

  const RunInputs& in_;
  const RunModel& model_;
  const RunPlan& run_;
  const Software& software_;
  const uint64_t seed_;
  const double gbs_;
  StepSource source_;
  const ActivityTimes busy_;  // of a quiet step
  const ActivityTimes waiting_ = ActivityTimes::only(Activity::spin), loaded_ = ActivityTimes::only(Activity::context),
                      idle_ = ActivityTimes::only(Activity::idle);
  FailureSource failures_;
  Lanes lanes_;
  SimulatedRun out_;
  long all_steps_ = 0, done_ = 0;
  uint64_t executed_ = 0;
  double shortest_phase_s_ = kShortestPhase_s;
  double evaluation_batches_s_ = 0, evaluation_fixed_s_ = 0;
  bool evaluates_ = false, last_off_mark_ = false;
  double next_evaluation_ = kNever;
  std::vector<double> evaluation_begins_;  // asynchronous: when an evaluation's weights were ready
  CheckpointCost cost_;
  double last_checkpoint_s_ = 0, write_ends_s_ = 0;
  std::vector<State> safe_;
  double failure_at_ = kNever;
  std::vector<double> repaired_s_;
  double pending_ = 0;  // steps
  double pending_s_ = 0, step_sum_ = 0, input_sum_ = 0, slow_sum_ = 0, useful_s_ = 0;
};

}  // namespace

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

SimulatedRun play_run(const RunInputs& in, const RunModel& model, network::Engine& engine, const SeriesRun& series) {
  return Player(in, model, engine, series).play();
}

}  // namespace tw
