#include "run/run_clock.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "power/node_power.hpp"

namespace tw {

namespace {

// Of the cluster, in the order of the job: those that train, then those that only evaluate.
std::vector<int> nodes_of(const RunInputs& in) {
  if (in.placed != nullptr) return *in.placed;
  std::vector<int> nodes(static_cast<size_t>(in.step.plan->nodes + in.step.plan->evaluation_nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

}  // namespace

RunClock::RunClock(const RunInputs& in, const RunModel& model, uint64_t seed, double begin_s,
                   std::function<double()> beside_w)
    : busy_(mean_activity(model.quiet)),
      training_(static_cast<size_t>(in.step.plan->nodes)),
      beside_w_(std::move(beside_w)),
      lanes_(in, model, begin_s),
      supply_(*in.step.cluster, nodes_of(in), training_, in.run->power_failures) {
  if (supply_.watches())
    for (const int node : nodes_of(in)) factors_.push_back(spread_factor(in.step.cluster->node, seed, node));
}

RunClock::Cut RunClock::pass(PhaseKind kind, const Stint& work, const ActivityTimes& shares, int steps,
                             const std::vector<PhasePart>& parts) {
  passed_ = {};
  for (double left = 1; left > 0 && work.length_s(1) > 0;) {
    if (!draw(kind, work, shares, parts)) return Cut::dark;
    const double pace = lanes_.pace(kind), free_pace = lanes_.free_pace(kind);
    const double whole_s = work.length_s(pace), length_s = left * whole_s, begin_s = now_s();
    const double until_s = std::min(failure_at_s, lanes_.next_change_s());
    const bool ends = begin_s + length_s <= until_s && !supply_acts(begin_s + length_s);
    if (!ends && begin_s + length_s > until_s) supply_acts(until_s);
    const double cut_s = ends ? 0 : std::max(begin_s, std::min(until_s, supply_s_));
    const double part = ends ? left : std::clamp((cut_s - begin_s) / whole_s, 0.0, left);
    passed_.time_s += ends ? length_s : cut_s - begin_s;
    passed_.slow_s += part * work.paced_s * (free_pace - 1);
    passed_.input_s += part * (whole_s - work.after_s - (work.own_s + work.paced_s * (pace - 1)));
    const double held_s = part * (whole_s - work.length_s(free_pace));
    passed_.held_s += held_s;
    if (held_s > 0) supply_.lost(held_s, false);
    if (kind == PhaseKind::train) {
      pending_ += part;
      pending_s_ = ends ? pending_s_ + length_s : cut_s - lanes_.now_s();
      pending_steps_ += ends ? 1 : 0;
    } else {
      const double stretch = whole_s / work.length_s(1);
      lanes_.add(kind, ends ? length_s : cut_s - begin_s, shares, ends ? steps : 0,
                 ends ? parts : std::vector<PhasePart>{}, stretch);
    }
    if (ends) break;
    left -= part;
    flush();
    if (supply_s_ <= cut_s && !obey()) return Cut::dark;
    if (failure_at_s <= cut_s) return Cut::failure;
    if (lanes_.next_change_s() <= cut_s) lanes_.set_pace(cut_s);
  }
  return Cut::none;
}

void RunClock::flush() {
  if (pending_s_ > 0) lanes_.train(pending_, pending_steps_, pending_s_, busy_);
  pending_ = pending_s_ = 0;
  pending_steps_ = 0;
}

void RunClock::begin_step() {
  if (now_s() < lanes_.next_change_s()) return;
  flush();
  lanes_.set_pace(lanes_.now_s());
}

// Tells the supply what the nodes draw from now on, and takes its answer. False when nodes go dark.
bool RunClock::draw(PhaseKind kind, const Stint& work, const ActivityTimes& shares,
                    const std::vector<PhasePart>& parts) {
  while (supply_.watches()) {
    node_w_.assign(factors_.size(), 0);
    const double length_s = work.length_s(lanes_.pace(kind));
    lanes_.watts(kind, length_s, shares, parts, length_s / work.length_s(1), node_w_);
    for (size_t i = training_; i < node_w_.size(); ++i) node_w_[i] = beside_w_();
    for (size_t i = 0; i < node_w_.size(); ++i) node_w_[i] *= factors_[i];
    if (!supply_.load(node_w_)) break;
    flush();
    if (!obey()) return false;
  }
  return true;
}

// Whether the supply has something to say before `end_s`, at supply_s_; until then it goes along.
bool RunClock::supply_acts(double end_s) {
  supply_s_ = kNever;
  if (!supply_.watches()) return false;
  for (double next_s = supply_.next_s(); next_s < end_s; next_s = supply_.next_s()) {
    supply_.pass(next_s);
    if (!supply_.load(node_w_)) continue;
    supply_s_ = next_s;
    return true;
  }
  supply_.pass(end_s);
  return false;
}

// What the supply leaves the nodes. False where it cuts the job off.
bool RunClock::obey() {
  lanes_.supply(supply_.limits_w(), supply_.dark());
  lanes_.set_pace(lanes_.now_s());
  went_dark |= !supply_.dark().empty();
  return supply_.dark().empty() || down;
}

}  // namespace tw
