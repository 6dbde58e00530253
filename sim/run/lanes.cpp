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
      run_(*in.run),
      nodes_(static_cast<size_t>(in.step.plan->nodes)),
      node_(in.step.cluster->node),
      board_limit_(effective_limit(node_, std::nullopt)),
      steady_(shares_of(mean_activity(model.quiet), model.quiet.time_s)),
      over_fabric_(in.step.plan->nodes + in.step.plan->evaluation_nodes > 1) {
  const Accelerator& accelerator = node_.accelerator;
  std::map<int, std::vector<Event>> slow;  // by node
  for (const SlowNode& s : in.run->slow_nodes) {
    Event e{s.from.value(), s.to ? s.to->value() : std::numeric_limits<double>::infinity(), s.slowdown.value_or(1),
            s.slowdown.value_or(1), 0};
    if (s.gpu_limit) {
      limit(e, std::min(s.gpu_limit->value(), board_limit_.value()));
    } else if (s.cause == SlowCause::clock && e.stretch > 1) {
      e.limit_w = limit_for_stretch(accelerator, steady_, board_limit_, e.stretch).value();
    }
    for (const int node : s.nodes) slow[node].push_back(e);
  }
  // The first lane is never empty of meaning: it carries the clock, even when every node is slow at some time.
  lanes_.push_back({{}, {}, {}, {}, false, Script(begin_s)});
  for (int n = 0; n < in.step.plan->nodes; ++n) {
    const auto found = slow.find(n);
    if (found == slow.end())
      lanes_.front().nodes.push_back(n);
    else
      lanes_.push_back({{n}, found->second, {}, {}, false, Script(begin_s)});
  }
  set_pace(0);
}

void Lanes::limit(Event& event, double limit_w) const {
  event.limit_w = limit_w;
  event.stretch = stretch_of(node_.accelerator, steady_, board_limit_, tw::watts(limit_w));
  event.evaluation = stretch_of(node_.accelerator, model_.evaluation_shares, board_limit_, tw::watts(limit_w));
}

void Lanes::set_pace(double time_s) {
  for (double* pace : {pace_, free_pace_}) pace[0] = pace[1] = 1;
  const auto follow = [](double* pace, const Event& e) {
    pace[0] = std::max(pace[0], e.stretch);
    pace[1] = std::max(pace[1], e.evaluation);
  };
  next_change_s_ = std::numeric_limits<double>::infinity();
  for (Lane& lane : lanes_) {
    lane.active = {};
    bool any = false;
    for (const Event& e : lane.events) {
      if (e.from_s <= time_s && time_s < e.to_s && (!any || e.stretch > lane.active.stretch))
        lane.active = e, any = true;
      for (const double change : {e.from_s, e.to_s})
        if (change > time_s) next_change_s_ = std::min(next_change_s_, change);
    }
    follow(free_pace_, lane.active);
    const double free_stretch = lane.active.stretch;
    if (lane.held.limit_w > 0 && (lane.active.limit_w <= 0 || lane.held.limit_w < lane.active.limit_w)) {
      lane.active.limit_w = lane.held.limit_w;
      lane.active.stretch = std::max(lane.active.stretch, lane.held.stretch);
      lane.active.evaluation = std::max(lane.active.evaluation, lane.held.evaluation);
    }
    follow(pace_, lane.active);
    lane.free_stretch = free_stretch;
  }
  for (const SlowCable& c : run_.slow_cables)
    for (const double change : {c.from.value(), c.to ? c.to->value() : next_change_s_})
      if (change > time_s) next_change_s_ = std::min(next_change_s_, change);
  if (!model_.slow_pace) return;
  free_pace_[0] = slow_pace(false, time_s);
  pace_[0] = slow_pace(true, time_s);
}

double Lanes::slow_pace(bool held, double time_s) const {
  std::vector<double> nodes(nodes_, 1);
  for (const Lane& lane : lanes_)
    for (const int node : lane.nodes) nodes[static_cast<size_t>(node)] = held ? lane.active.stretch : lane.free_stretch;
  std::vector<bool> cables;
  for (const SlowCable& c : run_.slow_cables)
    cables.push_back(c.from.value() <= time_s && (!c.to || time_s < c.to->value()));
  return model_.slow_pace(nodes, cables);
}

void Lanes::supply(const std::vector<double>& limit_w, const std::vector<int>& dark) {
  const auto state = [&](int node) {
    return std::pair(limit_w[static_cast<size_t>(node)], std::binary_search(dark.begin(), dark.end(), node));
  };
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].nodes.empty()) continue;
    // Nodes that part from the others take what they have done along; the first lane keeps the clock.
    auto now = state(lanes_[i].nodes.front());
    if (i == 0 && (now.first > 0 || now.second)) now = {0, false};
    Lane apart = lanes_[i];
    const auto stays = [&](int node) { return state(node) == now; };
    std::erase_if(apart.nodes, stays);
    std::erase_if(lanes_[i].nodes, [&](int node) { return !stays(node); });
    if (!apart.nodes.empty()) lanes_.push_back(std::move(apart));
    lanes_[i].held = {};
    lanes_[i].dark = now.second;
    if (now.first > 0) limit(lanes_[i].held, now.first);
  }
}

Phase Lanes::phase(const Lane& lane, PhaseKind kind, const ActivityTimes& shares, std::vector<PhasePart> parts) const {
  Phase phase;
  phase.kind = lane.dark ? PhaseKind::off : kind;
  if (lane.dark) return phase;
  phase.shares = shares;
  phase.parts = std::move(parts);
  phase.gpu_limit_w = lane.active.limit_w;
  return phase;
}

Phase Lanes::stretched(const Lane& lane, PhaseKind kind, const ActivityTimes& shares, std::vector<PhasePart> parts,
                       double stretch) const {
  if (lane.active.limit_w > 0)
    return phase(lane, kind,
                 lengthened(node_.accelerator, shares, board_limit_, tw::watts(lane.active.limit_w), stretch), {});
  return phase(lane, kind, stretch == 1 ? shares : shares.scaled(1 / stretch),
               stretch == 1 ? std::move(parts) : std::vector<PhasePart>{});
}

void Lanes::add(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps, std::vector<PhasePart> parts,
                double stretch) {
  for (Lane& lane : lanes_) lane.script.add(stretched(lane, kind, shares, parts, stretch), length_s, steps);
}

Phase Lanes::training(const Lane& lane, double work, double length_s, const ActivityTimes& busy) const {
  if (lane.active.limit_w <= 0)
    return phase(lane, PhaseKind::train, shares_of(busy.scaled(work), length_s),
                 training_parts(model_, work, length_s));
  const double quiet_s = model_.quiet.time_s;
  const ActivityTimes longer =
      lengthened(node_.accelerator, shares_of(busy, quiet_s), board_limit_, tw::watts(lane.active.limit_w), 1);
  return phase(lane, PhaseKind::train, shares_of(longer.scaled(work * quiet_s), length_s), {});
}

void Lanes::train(double work, int steps, double length_s, const ActivityTimes& busy) {
  for (Lane& lane : lanes_) lane.script.add(training(lane, work, length_s, busy), length_s, steps);
}

void Lanes::watts(PhaseKind kind, double length_s, const ActivityTimes& shares, const std::vector<PhasePart>& parts,
                  double stretch, std::vector<double>& node_w) const {
  for (const Lane& lane : lanes_) {
    if (lane.nodes.empty()) continue;
    const Phase p =
        kind == PhaseKind::train ? training(lane, 1, length_s, shares) : stretched(lane, kind, shares, parts, stretch);
    const double one_w = phase_node_parts(node_, p, board_limit_, over_fabric_).total();
    for (const int node : lane.nodes) node_w[static_cast<size_t>(node)] = one_w;
  }
}

void Lanes::move_to(Timeline& timeline) {
  for (Lane& lane : lanes_)
    if (!lane.nodes.empty()) timeline.groups.push_back({"train", std::move(lane.nodes), lane.script.take()});
}

}  // namespace tw
