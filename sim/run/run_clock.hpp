// The clock of one run: the work at hand against everything that may come between, in the order of its times.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "power/failure.hpp"
#include "run/lanes.hpp"

namespace tw {

// What is to be done: own_s at full pace, of which paced_s follows the clock of the slowest node, at least least_s;
// then after_s.
struct Stint {
  double own_s = 0, paced_s = 0, least_s = 0, after_s = 0;
  double length_s(double pace) const { return std::max(own_s + paced_s * (pace - 1), least_s) + after_s; }
};

class RunClock {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // `beside_w`: watts of each node that does not, now.
  RunClock(const RunInputs& in, const RunModel& model, uint64_t seed, double begin_s, std::function<double()> beside_w);

  // What came between: a failure of the job (at failure_at_s), or nodes that lost their power.
  enum class Cut { none, failure, dark };
  // Work of one kind on all nodes. Limits that begin or end, and what the supply does to the nodes, change its pace
  // from that moment on. `shares`: at full pace; of training the activity of a step in seconds.
  Cut pass(PhaseKind kind, const Stint& work, const ActivityTimes& shares, int steps = 0,
           const std::vector<PhasePart>& parts = {});
  // Of the last pass: time, and by how much slow nodes, waits for data and limits of the supply lengthened it.
  struct Passed {
    double time_s = 0, slow_s = 0, input_s = 0, held_s = 0;
  };
  const Passed& passed() const { return passed_; }

  double now_s() const { return lanes_.now_s() + pending_s_; }
  // Steps that wait for their phase.
  double pending_s() const { return pending_s_; }
  void flush();
  void begin_step();  // slow nodes that turn slow now do so

  double failure_at_s = kNever;
  bool down = false;       // a job that does not run is not cut off by nodes that go dark
  bool went_dark = false;  // some did meanwhile
  Lanes& lanes() { return lanes_; }
  Supply& supply() { return supply_; }

 private:
  bool draw(PhaseKind kind, const Stint& work, const ActivityTimes& shares, const std::vector<PhasePart>& parts);
  bool supply_acts(double end_s);
  bool obey();

  ActivityTimes busy_;  // of a quiet step
  size_t training_ = 0;
  std::function<double()> beside_w_;
  Lanes lanes_;
  Supply supply_;
  double supply_s_ = 0;                   // when it last had something to say
  std::vector<double> factors_, node_w_;  // spread of the boards; watts now
  double pending_ = 0, pending_s_ = 0;    // steps, and parts of them
  int pending_steps_ = 0;
  Passed passed_;
};

}  // namespace tw
