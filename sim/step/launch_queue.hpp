// Kernels that were launched and are not done: a CUDA stream takes so many, then a launch waits. They are counted one
// by one, whichever visits they belong to: long kernels of backward leave the host more lead than those of forward.
#pragma once

#include <limits>
#include <vector>

namespace tw {

class LaunchQueue {
 public:
  // Kernels of a visit, evenly over its time. The host has not issued the last of them before the time returned.
  double full_until_s(double launches, double begin_s, double end_s) {
    if (launches <= 0) return -std::numeric_limits<double>::infinity();
    ran_.push_back({issued_, launches, begin_s, end_s});
    issued_ += launches;
    const double gone = issued_ - kMost;
    if (gone <= 0) return -std::numeric_limits<double>::infinity();
    while (ran_[first_].before + ran_[first_].launches < gone) ++first_;
    const Ran& r = ran_[first_];
    const double until_s = r.begin_s + (r.end_s - r.begin_s) * (gone - r.before) / r.launches;
    if (first_ >= kForget) {
      ran_.erase(ran_.begin(), ran_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return until_s;
  }

  // The visit that was asked for last ended then: its kernels ran as much later.
  void ended(double end_s) {
    Ran& r = ran_.back();
    r.begin_s += end_s - r.end_s;
    r.end_s = end_s;
  }

 private:
  static constexpr double kMost = 1024;
  static constexpr size_t kForget = 64;
  struct Ran {
    double before = 0, launches = 0, begin_s = 0, end_s = 0;
  };
  std::vector<Ran> ran_;
  size_t first_ = 0;  // that may not be done
  double issued_ = 0;
};

}  // namespace tw
