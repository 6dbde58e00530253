// A lower board limit or clock as time and activity: how much longer work takes, and what it then looks like.
#pragma once

#include "core/units.hpp"
#include "hardware/accelerator.hpp"
#include "hardware/activity.hpp"

namespace tw {

// Time of work with these shares under a lower limit, over its time under the present one.
double stretch_of(const Accelerator& accelerator, const ActivityTimes& shares, Power present, Power lower);

// The shares with every kernel as long as under the lower limit, over `stretch` times the time.
ActivityTimes lengthened(const Accelerator& accelerator, const ActivityTimes& shares, Power present, Power lower,
                         double stretch);

// The limit under which work takes `stretch` times as long; the lowest that has any effect when none does.
Power limit_for_stretch(const Accelerator& accelerator, const ActivityTimes& shares, Power present, double stretch);

}  // namespace tw
