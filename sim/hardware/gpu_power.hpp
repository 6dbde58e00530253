// What one board draws, and how its power limit slows its kernels. One law does both, so that a lower limit changes
// time and energy together, and so that the throttle is applied exactly once (kernel tables are burst rates).
//
// The law. A kernel draws a static part (that of an idle board with a context) and a dynamic part, which goes as f V^2.
// Over the limit the board lowers the clock f, and the dynamic part of every clock-bound kernel shrinks by the same
// factor `phi`; such a kernel then takes phi^-throttle_exponent as long (1/3 when V goes with f; the exponent of a
// profile is fitted on burst against sustained rates; at lower clocks than those were measured at the limiter's own
// exponent takes over, where the profile holds one). Memory-bound kernels, copies and collectives keep their speed
// and power until phi falls below `memory_reserve`, because HBM and NVLink have clocks of their own. The limiter
// settles where the mean power of the mix, with the lengthened kernels' longer shares, is the limit times `held_share`.
#pragma once

#include "hardware/accelerator.hpp"
#include "hardware/activity.hpp"

namespace tw {

struct BoardPower {
  double watts = 0;            // mean power of the board
  double slowdown = 1;         // time of clock-bound kernels (matrix products, attention, convolutions) over burst time
  double memory_slowdown = 1;  // the same of memory-bound kernels, copies and collectives; > 1 only under deep caps
};

// `shares`: shares of wall time by activity at burst speed; what is missing to 1 is spin. More than 1 is scaled to 1.
// `limit`: the cap in force, normally accelerator.board_limit. A limit below what waiting and static power need cannot
// be held: watts then stay above it and the slowdown is that of the lowest clock (1 % of the dynamic power).
BoardPower board_power(const Accelerator& accelerator, const ActivityTimes& shares, Power limit);

// Mean watts of shares that come from a timeline in which the kernels were lengthened already: the uncapped sum, or
// what the limiter holds where that is less. Equal to board_power().watts for the shares before lengthening.
double capped_watts(const GpuPower& power, const ActivityTimes& shares, Power limit);

// Uncapped sum of share x watts; what is missing to 1 is spin.
double uncapped_watts(const GpuPower& power, const ActivityTimes& shares);

// Watts by activity of the capped sum: they add up to capped_watts(). The limiter takes from the clock-bound activities
// first, in proportion to their dynamic power.
ActivityTimes watts_by_activity(const GpuPower& power, const ActivityTimes& shares, Power limit);

// A profile for data that toggles less than random numbers do: 1 = random, 0 = all zeros (data toggling moves the power
// of a matrix product by 40 %). Changes matrix products and copies.
GpuPower with_toggling(const GpuPower& power, double toggling);

// True for activities whose speed follows the SM clock.
bool clock_bound(Activity a);

}  // namespace tw
