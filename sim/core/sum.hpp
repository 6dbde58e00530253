// Compensated (Neumaier) sum: energies of long runs add up to 1e-12 whatever the order of magnitude of the terms.
#pragma once

#include <cmath>

namespace tw {

class Sum {
 public:
  void add(double x) {
    const double t = sum_ + x;
    correction_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
    sum_ = t;
  }
  double value() const { return sum_ + correction_; }

 private:
  double sum_ = 0, correction_ = 0;
};

}  // namespace tw
