// What a GPU does at a moment. Time shares of these activities are what step/ reports and power is computed from.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw {

enum class Activity {
  idle,          // no context: between jobs
  context,       // a job is loaded and sleeps
  spin,          // waiting inside a collective for a peer, or for the host's next launch
  launch_bound,  // tiny kernels back to back
  gemm_bf16,
  gemm_fp8,
  attention_forward,
  attention_backward,
  memory_bound,  // norms, activations, casts, optimizer: arithmetic along with the traffic
  copy,          // plain copies
  collective,    // moving data over NVLink or the fabric
  convolution,   // profiled workloads: dense convolutions
  count_
};
constexpr size_t kActivities = static_cast<size_t>(Activity::count_);

// Seconds (or shares of a second) by activity.
class ActivityTimes {
 public:
  double beside = 0;  // an exchange runs beside a kernel: it draws on top, and takes no time of its own
  double& operator[](Activity a) { return value_[static_cast<size_t>(a)]; }
  double operator[](Activity a) const { return value_[static_cast<size_t>(a)]; }
  double total() const {
    double sum = 0;
    for (const double v : value_) sum += v;
    return sum;
  }
  ActivityTimes& operator+=(const ActivityTimes& o) {
    for (size_t i = 0; i < kActivities; ++i) value_[i] += o.value_[i];
    beside += o.beside;
    return *this;
  }
  ActivityTimes scaled(double factor) const {
    ActivityTimes r = *this;
    for (double& v : r.value_) v *= factor;
    r.beside *= factor;
    return r;
  }
  static ActivityTimes only(Activity a, double v = 1) {
    ActivityTimes r;
    r[a] = v;
    return r;
  }

 private:
  std::array<double, kActivities> value_{};
};

}  // namespace tw
