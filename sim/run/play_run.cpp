// Plays one seeded run: start-up, steps, evaluations, checkpoints, failures, slow nodes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "power/node_power.hpp"
#include "run/horizon.hpp"
#include "run/run_clock.hpp"
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
        clock_(in, model, series.seed, -in.step.software->phases.init.value() - kIdleAround_s,
               [this] { return beside_w(); }) {
    out_.power.seed = series.seed;
    out_.target_samples = target_samples(in, series);
    const Horizon horizon = horizon_of(in, model, out_.target_samples);
    all_steps_ = horizon.steps;
    shortest_phase_s_ = std::max(kShortestPhase_s, horizon.expected_s / kMostPhases);
    evaluation_batches_s_ = evaluation_batches(in) * model.evaluation_batch_s;
    evaluation_pause_s_ = software_.phases.evaluation_fixed.value();
    evaluation_fixed_s_ = in.step.workload ? in.step.workload->evaluation_fixed.value() : 0;
    evaluates_ = run_.evaluation_interval > 0 && run_.evaluation_samples > 0 && evaluation_s() > 0;
    if (evaluates_)
      next_evaluation_ = run_.first_evaluation_at > 0 ? run_.first_evaluation_at : run_.evaluation_interval;
    if (run_.checkpoints) cost_ = checkpoint_cost(in.step, *run_.checkpoints);
    safe_ = {{0, next_evaluation_, 0, 0}};
    clock_.failure_at_s = failures_.next_gap_s();
  }

  SimulatedRun play() {
    start_up();
    while (done_ < all_steps_ && !stopped_)
      if (step()) after_step();
    clock_.flush();
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

  double evaluation_s() const { return evaluation_pause_s_ + evaluation_fixed_s_ + evaluation_batches_s_; }

  // Work of one kind on all nodes. False when an event cut it off: the run has then gone back, or ended.
  bool pass(PhaseKind kind, const Stint& work, const ActivityTimes& shares, int steps = 0,
            const std::vector<PhasePart>& parts = {}) {
    const RunClock::Cut cut = clock_.pass(kind, work, shares, steps, parts);
    if (cut == RunClock::Cut::dark) recover(Component::power, clock_.now_s());
    if (cut == RunClock::Cut::failure) recover(failures_.next_kind(), clock_.failure_at_s);
    return cut == RunClock::Cut::none;
  }
  bool wait(PhaseKind kind, double length_s, const ActivityTimes& shares) { return pass(kind, {length_s}, shares); }

  void start_up() {
    out_.init_s = software_.phases.init.value();
    const double warm_up_s = std::min(software_.phases.init_warm_up.value(), out_.init_s);
    lanes_.add(PhaseKind::before, kIdleAround_s, idle_);
    lanes_.add(PhaseKind::init, out_.init_s - warm_up_s, loaded_);
    lanes_.add(PhaseKind::init, warm_up_s, shares_of(busy_, model_.quiet.time_s), 0,
               training_parts(model_, 1, model_.quiet.time_s));
  }

  // One step. False when an event cut it off.
  bool step() {
    clock_.begin_step();
    const double jitter_s = source_.jitter_s(executed_++);
    const double own_s = std::max(0.2 * model_.quiet.time_s, model_.quiet.time_s + jitter_s);
    // Noise is a wait, which no clock makes longer.
    const Stint work{own_s, std::min(own_s, model_.quiet.time_s), model_.input.batch_s};
    if (executed_ == 1) return first_step(work);
    if (!pass(PhaseKind::train, work, busy_)) return false;
    const RunClock::Passed& passed = clock_.passed();
    step_sum_ += passed.time_s;
    out_.slow_s += passed.slow_s;
    input_sum_ += passed.input_s;
    slow_sum_ += passed.slow_s + passed.held_s;
    useful_s_ += passed.time_s;
    ++done_;
    if (clock_.pending_s() >= shortest_phase_s_) clock_.flush();
    return true;
  }

  bool first_step(Stint work) {
    const double pace = lanes_.pace(PhaseKind::train), step_s = work.length_s(pace);
    // Kernels are warm by then; what is set up in the first step are the communicators over the fabric.
    work.after_s = software_.phases.first_step_extra.value();
    out_.first_step_s = work.length_s(pace);
    const double free_s = work.length_s(1);
    if (!pass(PhaseKind::first_step, work, shares_of(busy_, free_s), 1, training_parts(model_, 1, free_s)))
      return false;
    // The first batch is prefetched; the loaders of the others start with the run, so the step hides part of it.
    const double wait_s =
        software_.phases.wait_after_first_step.value() + std::max(0.0, loaders_ready_s(in_, seed_) - out_.first_step_s);
    if (!wait(PhaseKind::wait, wait_s, waiting_)) return false;
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
    const bool due = interval_s > 0 ? clock_.now_s() - last_checkpoint_s_ >= interval_s
                                    : std::fmod(static_cast<double>(done_), run_.checkpoints->every_steps) < 0.5;
    if (due) checkpoint();
  }

  // False when a failure cut it off.
  bool evaluate(double samples) {
    clock_.flush();
    ++out_.evaluations;
    const bool off_mark = samples + 1e-9 < next_evaluation_;
    // Evaluations fall on whole steps: a mark that lies inside one counts at its end.
    while (next_evaluation_ <= samples + 1e-9) next_evaluation_ += run_.evaluation_interval;
    if (run_.asynchronous_evaluation) {
      // One waits for the one before. Samples given as a mean over runs end between two marks: that evaluation is the
      // mean one, and never waits.
      const double ready_s = lanes_.now_s();
      const bool free = evaluation_begins_.empty() || off_mark;
      evaluation_begins_.push_back(free ? ready_s : std::max(ready_s, evaluation_begins_.back() + evaluation_s()));
      out_.evaluations_queue |= evaluation_begins_.back() > ready_s;
      return true;
    }
    const bool first = out_.evaluations == 1;
    if (first) {
      const double wait_s = software_.phases.wait_before_first_evaluation.value() / in_.step.cluster->hosts.spawn_speed;
      if (!wait(PhaseKind::wait, wait_s, waiting_)) {
        out_.evaluations -= stopped_ ? 1 : 0;
        return false;
      }
      out_.wait_s += wait_s;
    }
    // What the release fixes for an evaluation, the devices wait at its front, where meters see it (smc_v4.0/README.md,
    // data quality 8), longer before the first. The workload's own fixed time is spread between its batches.
    const double pause_s = evaluation_pause_s_ + (first ? software_.phases.first_evaluation_extra.value() : 0);
    const Stint work{evaluation_fixed_s_ + evaluation_batches_s_, evaluation_batches_s_};
    const double own_s = work.length_s(lanes_.pace(PhaseKind::evaluation));
    (first ? out_.eval_first_s : out_.eval_s) = pause_s + own_s;
    if (wait(PhaseKind::evaluation, pause_s, waiting_) &&
        pass(PhaseKind::evaluation, work, model_.evaluation_shares.scaled(evaluation_batches_s_ / work.length_s(1))))
      return true;
    out_.evaluations -= stopped_ ? 1 : 0;
    return false;
  }

  void checkpoint() {
    clock_.flush();
    const CheckpointPlan& plan = *run_.checkpoints;
    last_checkpoint_s_ = lanes_.now_s();
    if (plan.asynchronous && write_ends_s_ > lanes_.now_s()) {
      const double wait_s = write_ends_s_ - lanes_.now_s();
      if (!wait(PhaseKind::checkpoint, wait_s, waiting_)) return;
      out_.checkpoint_s += wait_s;
      out_.checkpoint_wait_s += wait_s;
    }
    State state{done_, next_evaluation_, lanes_.now_s(), 0};
    const double blocked_s = plan.asynchronous ? cost_.snapshot_s : cost_.write_s;
    if (!wait(PhaseKind::checkpoint, blocked_s, waiting_)) return;
    state.safe_s = lanes_.now_s() + (plan.asynchronous ? cost_.write_s : 0);
    write_ends_s_ = state.safe_s;
    out_.checkpoint_s += blocked_s;
    ++out_.checkpoints;
    // The one before serves until this one is safe.
    if (safe_.size() > 1) safe_.erase(safe_.begin());
    safe_.push_back(state);
  }

  // The job is down from now on: detected, started again, restored to the last safe state. Where its power does not
  // come back, or nothing says how it starts again, it ends here.
  void recover(Component kind, double failed_s) {
    clock_.flush();
    const double back_s = kind == Component::power ? supply_.back_s() : 0;
    State state = safe_.front();
    for (const State& s : safe_)
      if (s.safe_s <= failed_s) state = s;
    if (!run_.reliability || back_s == kNever) {
      stopped_ = true;
      supply_.lost(failed_s - state.reached_s, true);
      return;
    }
    ++out_.failures[static_cast<size_t>(kind)];
    // Steps since then did not count.
    useful_s_ -= useful_since(state.steps);
    out_.rework_s += failed_s - state.reached_s;
    done_ = state.steps;
    // A job that is down does not fail; power that goes meanwhile makes it wait, and start again once more.
    const double running_s = clock_.failure_at_s - failed_s;
    clock_.failure_at_s = kNever;
    clock_.down = true;
    const double detect_s = run_.reliability->detect.value();
    wait(PhaseKind::restart, detect_s, waiting_);
    const double spare_s = takes_node(kind) ? spare_wait_s() : 0;
    wait(PhaseKind::restart, spare_s, idle_);
    out_.spare_s += spare_s;
    do {
      while (!supply_.dark().empty() && supply_.back_s() > lanes_.now_s() && !stopped_) {
        stopped_ = supply_.back_s() == kNever;
        wait(PhaseKind::restart, stopped_ ? 0 : supply_.back_s() - lanes_.now_s(), idle_);
      }
      clock_.went_dark = false;
      if (!stopped_) wait(PhaseKind::restart, restart_s(in_, state.steps > 0 ? cost_.read_s : 0) - detect_s, loaded_);
    } while (clock_.went_dark && !stopped_);
    if (stopped_) supply_.lost(0, true);
    clock_.down = false;
    out_.restart_s += lanes_.now_s() - failed_s;
    next_evaluation_ = state.next_evaluation;
    last_checkpoint_s_ = state.reached_s = state.safe_s = lanes_.now_s();
    write_ends_s_ = 0;
    safe_ = {state};
    clock_.failure_at_s = lanes_.now_s() + (kind == Component::power ? running_s : failures_.next_gap_s());
    // A run that its failures make much longer than it would be takes coarser phases as it goes on.
    shortest_phase_s_ = std::max(shortest_phase_s_, lanes_.now_s() / (2 * kMostPhases));
    if (lanes_.now_s() > kLongestRun_s || out_.failed() > kMostFailures)
      throw DoesNotFit(fmt::format("failures too frequent for its checkpoints: {:.0f} in {:.3g} days, {} of {} steps",
                                   out_.failed(), lanes_.now_s() / 86400, done_, all_steps_));
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
    if (!evaluation_begins_.empty()) {
      out_.eval_s = out_.eval_first_s = evaluation_s();
      const double last_s = evaluation_begins_.back() + evaluation_s();
      if (!stopped_) {
        // The last evaluation tells that the target is met.
        end_s = last_s;
        lanes_.add(PhaseKind::wait, end_s - lanes_.now_s(), waiting_);
      }
      for (const double begin_s : evaluation_begins_) out_.evaluations -= begin_s + evaluation_s() > end_s ? 1 : 0;
    }
    out_.time_s = end_s;
    if (!stopped_) {
      lanes_.add(PhaseKind::after, software_.phases.release.value(), waiting_);
      lanes_.add(PhaseKind::after, kIdleAround_s, idle_);
    }
    out_.stopped = stopped_;
    out_.supply_lost_s = supply_.lost_s();
    out_.power.failures = supply_.record();
    out_.power_events = supply_.texts();

    const auto executed = static_cast<double>(executed_);
    out_.steps = static_cast<double>(done_);
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
    if (in_.step.plan->evaluation_nodes > 0) add_evaluation_nodes(end_s);
  }

  // Watts of a node that evaluates beside, now.
  double beside_w() const {
    const double now_s = clock_.now_s();
    const auto next = std::upper_bound(evaluation_begins_.begin(), evaluation_begins_.end(), now_s);
    const bool busy = next != evaluation_begins_.begin() && now_s < *(next - 1) + evaluation_s();
    Phase phase;
    phase.kind = busy ? PhaseKind::evaluation : PhaseKind::wait;
    phase.shares = busy ? model_.evaluation_shares.scaled(evaluation_batches_s_ / evaluation_s()) : waiting_;
    const NodeType& node = in_.step.cluster->node;
    return phase_node_parts(node, phase, effective_limit(node, std::nullopt), true).total();
  }

  void add_evaluation_nodes(double end_s) {
    NodeGroup beside{"evaluate", {}, {}};
    for (int n = 0; n < in_.step.plan->evaluation_nodes; ++n) beside.nodes.push_back(in_.step.plan->nodes + n);
    Script s(-out_.init_s - kIdleAround_s);
    s.add(PhaseKind::before, kIdleAround_s, idle_);
    s.add(PhaseKind::init, out_.init_s, loaded_);
    for (const double begin : evaluation_begins_) {
      s.add(PhaseKind::wait, std::min(begin, end_s) - s.now_s(), waiting_);
      s.add(PhaseKind::evaluation, std::min(evaluation_s(), end_s - s.now_s()),
            model_.evaluation_shares.scaled(evaluation_batches_s_ / evaluation_s()));
    }
    s.add(PhaseKind::wait, end_s - s.now_s(), waiting_);
    if (!stopped_) {
      s.add(PhaseKind::after, software_.phases.release.value(), waiting_);
      s.add(PhaseKind::after, kIdleAround_s, idle_);
    }
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
  RunClock clock_;
  Lanes& lanes_ = clock_.lanes();
  Supply& supply_ = clock_.supply();
  bool stopped_ = false;
  SimulatedRun out_;
  long all_steps_ = 0, done_ = 0;
  uint64_t executed_ = 0;
  double shortest_phase_s_ = kShortestPhase_s;
  double evaluation_batches_s_ = 0, evaluation_fixed_s_ = 0, evaluation_pause_s_ = 0;
  bool evaluates_ = false;
  double next_evaluation_ = kNever;
  std::vector<double> evaluation_begins_;  // beside training
  CheckpointCost cost_;
  double last_checkpoint_s_ = 0, write_ends_s_ = 0;
  std::vector<State> safe_;
  std::vector<double> repaired_s_;
  double step_sum_ = 0, input_sum_ = 0, slow_sum_ = 0, useful_s_ = 0;
};

}  // namespace

SimulatedRun play_run(const RunInputs& in, const RunModel& model, network::Engine& engine, const SeriesRun& series) {
  return Player(in, model, engine, series).play();
}

}  // namespace tw
