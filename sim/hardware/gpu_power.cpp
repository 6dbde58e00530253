#include "hardware/gpu_power.hpp"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

constexpr double kLowestPhi = 0.01;  // 210 of an H100's 1,980 MHz

// Shares that add up to 1.
ActivityTimes completed(const ActivityTimes& shares) {
  const double total = shares.total();
  ActivityTimes r = total > 1 ? shares.scaled(1 / total) : shares;
  if (total < 1) r[Activity::spin] += 1 - total;
  return r;
}

// Waiting and sleeping draw what they draw at any clock the limiter may choose.
bool passive(Activity a) {
  return a == Activity::idle || a == Activity::context || a == Activity::spin || a == Activity::launch_bound;
}

// What exchanges beside kernels add to them.
double beside_w(const GpuPower& power, const ActivityTimes& shares) {
  return shares.beside * std::max(0.0, power.collective.value() - power.context.value());
}

struct Mix {
  double watts = 0;
  double slowdown = 1;
  double memory_slowdown = 1;
};

// Time of clock-bound kernels at phi, over that at full clock. The exponent was fitted on matrix products at one limit;
// at lower clocks than they had there the clock goes as the limiter was seen to move it.
double lengthening(const GpuPower& power, double phi) {
  const double still_w = power.context.value();
  const double products_w = std::max(power.gemm_bf16.value(), power.gemm_fp8.value());
  const double left_w = power.fitted_limit.value() * power.held_share - still_w;
  // A limit that products do not reach says nothing of lower clocks.
  const double fitted = left_w < products_w - still_w ? left_w / (products_w - still_w) : 0;
  if (!power.limiter || phi >= fitted) return std::pow(phi, -power.throttle_exponent);
  return std::pow(fitted, -power.throttle_exponent) * std::pow(phi / fitted, -power.limiter->clock_exponent);
}

Mix at_clock(const GpuPower& power, const ActivityTimes& shares, double phi) {
  const double still_w = power.context.value();
  const double memory_phi = std::min(1.0, phi / power.memory_reserve);
  Mix mix;
  mix.slowdown = lengthening(power, phi);
  mix.memory_slowdown = std::pow(memory_phi, -power.throttle_exponent);
  double energy = beside_w(power, shares), time = 0;
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    const double full_w = power.of(a).value();
    double stretch = 1, watts = full_w;
    if (!passive(a)) {
      stretch = clock_bound(a) ? mix.slowdown : mix.memory_slowdown;
      watts = still_w + (full_w - still_w) * (clock_bound(a) ? phi : memory_phi);
    }
    energy += shares[a] * stretch * watts;
    time += shares[a] * stretch;
  }
  mix.watts = energy / time;
  return mix;
}

}  // namespace

bool clock_bound(Activity a) {
  return a == Activity::gemm_bf16 || a == Activity::gemm_fp8 || a == Activity::attention_forward ||
         a == Activity::attention_backward || a == Activity::convolution;
}

double uncapped_watts(const GpuPower& power, const ActivityTimes& shares) {
  const ActivityTimes all = completed(shares);
  double sum_w = beside_w(power, all);
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    sum_w += all[a] * power.of(a).value();
  }
  return sum_w;
}

double capped_watts(const GpuPower& power, const ActivityTimes& shares, Power limit) {
  return std::min(uncapped_watts(power, shares), limit.value() * power.held_share);
}

BoardPower board_power(const Accelerator& accelerator, const ActivityTimes& shares, Power limit) {
  const GpuPower& power = accelerator.power;
  const ActivityTimes all = completed(shares);
  const double held_w = limit.value() * power.held_share;
  Mix mix = at_clock(power, all, 1);
  if (mix.watts > held_w) {
    // The mean power falls with phi, so bisection finds the one clock that holds the limit.
    double low = kLowestPhi, high = 1;
    mix = at_clock(power, all, low);
    if (mix.watts < held_w) {
      for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        (at_clock(power, all, middle).watts > held_w ? high : low) = middle;
      }
      mix = at_clock(power, all, low);
    }
  }
  return {mix.watts, mix.slowdown, mix.memory_slowdown};
}

ActivityTimes watts_by_activity(const GpuPower& power, const ActivityTimes& shares, Power limit) {
  const ActivityTimes all = completed(shares);
  const double still_w = power.context.value();
  double clock_w = 0, memory_w = 0;
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    if (passive(a)) continue;
    (clock_bound(a) ? clock_w : memory_w) += all[a] * std::max(0.0, power.of(a).value() - still_w);
  }
  const double excess_w = uncapped_watts(power, shares) - capped_watts(power, shares, limit);
  const double from_clock = std::min(excess_w, clock_w);
  const double clock_left = clock_w > 0 ? 1 - from_clock / clock_w : 1;
  // What clock-bound kernels cannot give comes from the rest, static power too in the last resort.
  const double from_memory = std::min(excess_w - from_clock, memory_w);
  const double memory_left = memory_w > 0 ? 1 - from_memory / memory_w : 1;
  const double from_all = excess_w - from_clock - from_memory;
  ActivityTimes r;
  double sum_w = 0;
  for (size_t i = 0; i < kActivities; ++i) {
    const auto a = static_cast<Activity>(i);
    const double full_w = power.of(a).value();
    if (passive(a) || full_w <= still_w)
      r[a] = all[a] * full_w;
    else
      r[a] = all[a] * (still_w + (full_w - still_w) * (clock_bound(a) ? clock_left : memory_left));
    if (a == Activity::collective) r[a] += beside_w(power, all);
    sum_w += r[a];
  }
  return from_all > 0 ? r.scaled((sum_w - from_all) / sum_w) : r;
}

GpuPower with_toggling(const GpuPower& power, double toggling) {
  GpuPower r = power;
  const double still_w = power.context.value();
  const double left = power.zero_data + (1 - power.zero_data) * toggling;
  for (Power* p : {&r.gemm_bf16, &r.gemm_fp8, &r.convolution}) *p = watts(still_w + (p->value() - still_w) * left);
  // Copies of zeros lose less: 378 of 498 W, that is 0.68 where a matrix product keeps 0.43 (reference/gpu_lab).
  const double copy_left = 1 - (1 - left) * 0.56;
  r.copy = watts(still_w + (r.copy.value() - still_w) * copy_left);
  return r;
}

}  // namespace tw
