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
  void add(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps = 0,
           std::vector<PhasePart> parts = {}, double gpu_limit_w = 0) {
    if (length_s <= 0) return;
    phases_.push_back({kind, now_s_, now_s_ + length_s, shares, steps, std::move(parts), gpu_limit_w});
    now_s_ += length_s;
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
  // The same on every node.
  void add(PhaseKind kind, double length_s, const ActivityTimes& shares, int steps = 0,
           std::vector<PhasePart> parts = {});
  // Steps: each lane works in its own way and waits for the slowest. `busy`: of one step of a quiet node.
  void train(double steps, double length_s, const ActivityTimes& busy);
  // Time of a step over that without slow nodes, now.
  double pace() const { return pace_; }
  // Whether a node turns slow, or is so no more, by time_s.
  bool changes_by(double time_s) const { return time_s >= next_change_s_; }
  void set_pace(double time_s);
  void move_to(Timeline& timeline);

 private:
  struct Event {
    double from_s = 0, to_s = 0, stretch = 1;
    double limit_w = 0;  // 0: full clock, waits for its host
  };
  struct Lane {
    std::vector<int> nodes;
    std::vector<Event> events;
    const Event* active = nullptr;  // the slowest of those in force
    Script script;
  };
  const RunModel& model_;
  const Accelerator& accelerator_;
  Power board_limit_;
  std::vector<Lane> lanes_;
  double pace_ = 1, next_change_s_ = 0;
};

}  // namespace tw
