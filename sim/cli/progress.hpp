// A progress bar with the time left, on stderr: only on a terminal, and only once work has taken two seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "cli/command.hpp"

namespace tw::cli {

class Progress {
 public:
  Progress(const Console& console, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // May be called as often as wanted; draws at most ten times a second.
  void update(size_t done, size_t all, size_t before = 0);

  // "sweep [#####.....] 5/10, 12 s left"; what was waited so far while nothing is done. `before` more were done by an
  // earlier run: they fill the bar, but say nothing about the time left.
  static std::string line(const std::string& what, size_t done, size_t all, double elapsed_s, size_t before = 0);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  bool shown_ = false;
  bool active_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
};

}  // namespace tw::cli
