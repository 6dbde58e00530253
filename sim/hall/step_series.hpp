// A value that is constant between changes, such as a budget by the hour: what holds at a time, when it changes next.
#pragma once

#include <algorithm>
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
  double at(double time_s) const { return value_[index(time_s)]; }
  // The first change after `time_s`; infinity when there is none.
  double next_change_s(double time_s) const {
    const size_t i = index(time_s) + 1;
    return i < from_s_.size() ? from_s_[i] : std::numeric_limits<double>::infinity();
  }
  // Least value in [from_s, to_s).
  double least(double from_s, double to_s) const {
    size_t i = index(from_s);
    double low = value_[i];
    while (++i < from_s_.size() && from_s_[i] < to_s) low = std::min(low, value_[i]);
    return low;
  }
  double most() const { return *std::max_element(value_.begin(), value_.end()); }
  double least() const { return *std::min_element(value_.begin(), value_.end()); }

 private:
  size_t index(double time_s) const {
    const auto next = std::upper_bound(from_s_.begin(), from_s_.end(), time_s);
    return next == from_s_.begin() ? 0 : static_cast<size_t>(next - from_s_.begin()) - 1;
  }
  std::vector<double> from_s_, value_;
};

}  // namespace tw::hall
