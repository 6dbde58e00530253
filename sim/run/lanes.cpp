#include "run/lanes.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "power/node_power.hpp"
#include "power/throttle.hpp"

namespace tw {

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

Lanes::Lanes(const RunInputs& in, const RunModel& model, double begin_s)
    : model_(model),
      accelerator_(in.step.cluster->node.accelerator),
      board_limit_(effective_limit(in.step.cluster->node, std::nullopt)) {
  const ActivityTimes steady = shares_of(mean_activity(model.quiet), model.quiet.time_s);
  std::map<int, std::vector<Event>> slow;  // by node
  for (const SlowNode& s : in.run->slow_nodes) {
    Event e{s.from.value(), s.to ? s.to->value() : std::numeric_limits<double>::infinity(), s.slowdown.value_or(1), 0};
    if (s.gpu_limit) {
      e.limit_w = std::min(s.gpu_limit->value(), board_limit_.value());
      e.stretch = stretch_of(accelerator_, steady, board_limit_, watts(e.limit_w));
    } else if (s.cause == SlowCause::clock && e.stretch > 1) {
      e.limit_w = limit_for_stretch(accelerator_, steady, board_limit_, e.stretch).value();
    }
    for (const int node : s.nodes) slow[node].push_back(e);
  }
  // The first lane is never empty of meaning: it carries the clock, even when every node is slow at some time.
  lanes_.push_back({{}, {}, nullptr, Script(begin_s)});
  for (int n = 0; n < in.step.plan->nodes; ++n) {
    const auto found = slow.find(n);
    if (found == slow.end())
      lanes_.front().nodes.push_back(n);
    else
      lanes_.push_back({{n}, found->second, nullptr, Script(begin_s)});
  }
  set_pace(0);
}

void Lanes::set_pace(double time_s) {
  pace_ = 1;
  next_change_s_ = std::numeric_limits<double>::infinity();
  for (Lane& lane : lanes_) {
    lane.active = nullptr;
    for (const Event& e : lane.events) {
      if (e.from_s <= time_s && time_s < e.to_s && (lane.active == nullptr || e.stretch > lane.active->stretch))
        lane.active = &e;
      for (const double change : {e.from_s, e.to_s})
        if (change > time_s) next_change_s_ = std::min(next_change_s_, change);
    }
    if (lane.active != nullptr) pace_ = std::max(pace_, lane.active->stretch);
  }
}

void Lanes::add(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps, std::vector<PhasePart> parts) {
  for (size_t i = 1; i < lanes_.size(); ++i)
    lanes_[i].script.add(kind, length_s, shares, steps, parts,
                         lanes_[i].active != nullptr ? lanes_[i].active->limit_w : 0);
  lanes_.front().script.add(kind, length_s, shares, steps, std::move(parts));
}

void Lanes::train(double steps, double length_s, const ActivityTimes& busy) {
  for (Lane& lane : lanes_) {
    if (lane.active == nullptr || lane.active->limit_w <= 0) {
      lane.script.add(PhaseKind::train, length_s, shares_of(busy.scaled(steps), length_s), static_cast<int>(steps),
                      training_parts(model_, steps, length_s));
      continue;
    }
    const double quiet_s = model_.quiet.time_s;
    const ActivityTimes longer =
        lengthened(accelerator_, shares_of(busy, quiet_s), board_limit_, watts(lane.active->limit_w), 1);
    lane.script.add(PhaseKind::train, length_s, shares_of(longer.scaled(steps * quiet_s), length_s),
                    static_cast<int>(steps), {}, lane.active->limit_w);
  }
}

void Lanes::move_to(Timeline& timeline) {
  for (Lane& lane : lanes_)
    if (!lane.nodes.empty()) timeline.groups.push_back({"train", std::move(lane.nodes), lane.script.take()});
}

}  // namespace tw
