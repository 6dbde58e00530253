// Stragglers: nodes that are slower than the others for some time of the run. A synchronous step follows the slowest.
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

}  // namespace tw
