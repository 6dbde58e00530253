#include "power/throttle.hpp"

#include <algorithm>

#include "hardware/gpu_power.hpp"

namespace tw {

double stretch_of(const Accelerator& accelerator, const ActivityTimes& shares, Power present, Power lower) {
  const BoardPower now = board_power(accelerator, shares, present);
  const BoardPower then = board_power(accelerator, shares, lower);
  double time = 0, total = 0;
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    const double share = shares[a];
    total += share;
    const bool passive =
        a == Activity::idle || a == Activity::context || a == Activity::spin || a == Activity::launch_bound;
    if (passive)
      time += share;
    else
      time += share * (clock_bound(a) ? then.slowdown / now.slowdown : then.memory_slowdown / now.memory_slowdown);
  }
  return time + std::max(0.0, 1 - total);
}

ActivityTimes lengthened(const Accelerator& accelerator, const ActivityTimes& of, Power present, Power lower,
                         double stretch) {
  const BoardPower now = board_power(accelerator, of, present);
  const BoardPower then = board_power(accelerator, of, lower);
  ActivityTimes shares = of;
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    if (clock_bound(a)) shares[a] *= then.slowdown / now.slowdown;
    if (a == Activity::memory_bound || a == Activity::copy || a == Activity::collective)
      shares[a] *= then.memory_slowdown / now.memory_slowdown;
  }
  return shares.scaled(1 / stretch);
}

Power limit_for_stretch(const Accelerator& accelerator, const ActivityTimes& shares, Power present, double stretch) {
  double low = 0.02 * present.value(), high = present.value();
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (stretch_of(accelerator, shares, present, watts(middle)) > stretch ? low : high) = middle;
  }
  return watts(high);
}

}  // namespace tw
