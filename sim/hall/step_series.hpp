// A value that is constant between changes, such as a budget by the hour: what holds at a time, when it changes next.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tw::hall {

class StepSeries {
 public:
  explicit StepSeries(double first = 0) : from_s_{0}, value_{first} {}
  // From `from_s` on, later than all before; `from_s` at or before 0 sets the first value.
  void then(double from_s, double value) {
    if (from_s <= 0) {
      value_ = {value};
      return;
    }
    if (value == value_.back()) return;
    from_s_.push_back(from_s);
    value_.push_back(value);
  }
  // From now on, what was given up to `period_s` comes again and again.
  void repeat(double period_s) { period_s_ = period_s; }
  double period_s() const { return period_s_; }  // 0: the last value holds for ever
  // From then on the series is constant, or repeats.
  double settled_s() const { return period_s_ > 0 ? 0 : from_s_.back(); }
  double at(double time_s) const { return value_[index(time_s - round_s(time_s))]; }
  // The first change after `time_s`; infinity when there is none.
  double next_change_s(double time_s) const {
    const double round = round_s(time_s);
    const size_t i = index(time_s - round) + 1;
    if (i < from_s_.size()) return round + from_s_[i];
    if (period_s_ <= 0 || from_s_.size() == 1) return std::numeric_limits<double>::infinity();
    return round + period_s_ + (value_.front() == value_.back() ? from_s_[1] : 0);
  }
  double most() const { return *std::max_element(value_.begin(), value_.end()); }
  double least() const { return *std::min_element(value_.begin(), value_.end()); }

 private:
  // When the round began in which that moment is.
  double round_s(double time_s) const {
    if (period_s_ <= 0) return 0;
    const double round = std::floor(time_s / period_s_) * period_s_;
    return round > time_s ? round - period_s_ : round;
  }
  size_t index(double time_s) const {
    const auto next = std::upper_bound(from_s_.begin(), from_s_.end(), time_s);
    return next == from_s_.begin() ? 0 : static_cast<size_t>(next - from_s_.begin()) - 1;
  }
  std::vector<double> from_s_, value_;
  double period_s_ = 0;
};

}  // namespace tw::hall
