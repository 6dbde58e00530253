// Stragglers: nodes and cables that are slower than the others for some time of the run. A synchronous step waits for
// them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

enum class SlowCause { clock, host };

struct SlowNode {
  std::vector<int> nodes;
  Time from;
  std::optional<Time> to;
  std::optional<double> slowdown;
  std::optional<Power> gpu_limit;
  SlowCause cause = SlowCause::clock;
  static void describe(Description<SlowNode>& d);
};

struct SlowCable {
  std::string cable;
  std::optional<Bandwidth> bandwidth;  // absent: it fails
  Time from;
  std::optional<Time> to;
  static void describe(Description<SlowCable>& d);
};

}  // namespace tw
