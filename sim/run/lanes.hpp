// The nodes of a job through a run, those that behave alike on one lane: nodes that are slower for a while have lanes
// of their own, all others share the first.
#pragma once

#include <vector>

#include "run/run_model.hpp"

namespace tw {

// Lays phases one after the other.
class Script {
 public:
  explicit Script(double begin_s) : now_s_(begin_s) {}
  void add(PhaseKind kind, double length_s, const ActivityTimes& shares) {
    Phase phase;
    phase.kind = kind, phase.shares = shares;
    add(std::move(phase), length_s, 0);
  }
  void add(Phase phase, double length_s, int steps) {
    if (!(now_s_ + length_s > now_s_)) return;
    phase.begin_s = now_s_, phase.end_s = now_s_ += length_s;
    phase.steps = steps;
    phases_.push_back(std::move(phase));
  }
  double now_s() const { return now_s_; }
  std::vector<Phase> take() { return std::move(phases_); }

 private:
  double now_s_;
  std::vector<Phase> phases_;
};

// The training time of `steps` steps that took `time_s`, cut into what the limiter tells apart.
std::vector<PhasePart> training_parts(const RunModel& model, double steps, double time_s);

class Lanes {
 public:
  Lanes(const RunInputs& in, const RunModel& model, double begin_s);
  double now_s() const { return lanes_.front().script.now_s(); }
  // The same on every node that has power: `stretch` times as long as at full pace, where it has these shares. The
  // slowest nodes are busy all the time, the others wait for them.
  void add(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps = 0,
           std::vector<PhasePart> parts = {}, double stretch = 1);
  // Steps: each lane works in its own way and waits for the slowest. `busy`: of one step of a quiet node; `work`: as
  // many steps as that is, `steps` of them ended here.
  void train(double work, int steps, double length_s, const ActivityTimes& busy);
  // Time of a step, or of a batch that is evaluated, over that without slow nodes, now; free_pace: were no node held by
  // its supply.
  double pace(PhaseKind kind) const { return pace_[kind == PhaseKind::evaluation ? 1 : 0]; }
  double free_pace(PhaseKind kind) const { return free_pace_[kind == PhaseKind::evaluation ? 1 : 0]; }
  double next_change_s() const { return next_change_s_; }  // a node turns slow, or is so no more
  void set_pace(double time_s);
  // What their supply leaves the nodes, by number: a limit of each board (0: their own), and who has no power.
  void supply(const std::vector<double>& limit_w, const std::vector<int>& dark);
  // Watts of each node (by number, from the first) in such a phase; of training with its work, else with its shares.
  void watts(PhaseKind kind, double length_s, const ActivityTimes& shares, const std::vector<PhasePart>& parts,
             double stretch, std::vector<double>& node_w) const;
  void move_to(Timeline& timeline);

 private:
  struct Event {
    double from_s = 0, to_s = 0, stretch = 1, evaluation = 1;
    double limit_w = 0;  // 0: full clock, waits for its host
  };
  struct Lane {
    std::vector<int> nodes;
    std::vector<Event> events;
    Event active;  // the slowest of those in force
    Event held;    // by their supply, if it has a limit
    bool dark = false;
    Script script;
    double free_stretch = 1;  // were it not held by its supply
  };
  void limit(Event& event, double limit_w) const;
  double slow_pace(bool held, double time_s) const;
  Phase phase(const Lane& lane, PhaseKind kind, const ActivityTimes& shares, std::vector<PhasePart> parts) const;
  Phase stretched(const Lane& lane, PhaseKind kind, const ActivityTimes& shares, std::vector<PhasePart> parts,
                  double stretch) const;
  Phase training(const Lane& lane, double work, double length_s, const ActivityTimes& busy) const;

  const RunModel& model_;
  const RunPlan& run_;
  size_t nodes_ = 0;
  const NodeType& node_;
  Power board_limit_;
  ActivityTimes steady_;
  bool over_fabric_ = false;
  std::vector<Lane> lanes_;
  double pace_[2] = {1, 1}, free_pace_[2] = {1, 1}, next_change_s_ = 0;
};

}  // namespace tw
