// A whole run as phases of activity, per group of nodes that do the same. run/ makes it, power/ integrates it.
#pragma once

#include <string>
#include <vector>

#include "hardware/activity.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

enum class PhaseKind { before, init, first_step, wait, train, evaluation, checkpoint, restart, off, after };

// A stretch inside a phase that is long enough for the board limit to act on it by itself.
struct PhasePart {
  double share = 1;      // of the phase's time
  ActivityTimes shares;  // of the part's own time
  static void describe(Outputs<PhasePart>& d);
};

// Times in seconds from run_start; phases of a group follow one another without gaps.
struct Phase {
  PhaseKind kind = PhaseKind::train;
  double begin_s = 0;
  double end_s = 0;
  // Mean share of the time a GPU of these nodes spends in each activity; what is missing to 1 is spin.
  ActivityTimes shares;
  int steps = 0;  // training steps in this phase
  // The same time cut into stretches (forward, backward, the rest) where the limiter tells them apart; else empty.
  std::vector<PhasePart> parts = {};
  double gpu_limit_w = 0;  // of each board of these nodes, where it is throttled below its own limit; else 0
  static void describe(Outputs<Phase>& d);
};

struct NodeGroup {
  std::string role;        // "train", "evaluate"
  std::vector<int> nodes;  // indices of the cluster's nodes
  std::vector<Phase> phases;
  static void describe(Outputs<NodeGroup>& d);
};

struct Timeline {
  double run_begin_s = 0;  // run_start
  double run_end_s = 0;    // run_stop
  std::vector<NodeGroup> groups;
  static void describe(Outputs<Timeline>& d);
};

}  // namespace tw
