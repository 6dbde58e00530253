// Power as a function of time that is constant between changes: exact integrals, no time step.
#pragma once

#include <cstddef>
#include <vector>

namespace tw {

class PiecewiseWatts {
 public:
  // Before the first change and after the end the function has these values.
  explicit PiecewiseWatts(double outside_w = 0) : outside_w_(outside_w) {}

  // Appends `watts` from the current end to `end_s`; the first call needs begin_s. Pieces of no length are dropped.
  void begin(double begin_s);
  void append(double end_s, double watts);

  double at(double time_s) const;
  double integral(double from_s, double to_s) const;  // J
  double begin_s() const { return change_s_.empty() ? 0 : change_s_.front(); }
  double end_s() const { return change_s_.empty() ? 0 : change_s_.back(); }
  double outside_w() const { return outside_w_; }
  std::size_t pieces() const { return watts_.size(); }
  double piece_begin_s(std::size_t i) const { return change_s_[i]; }
  double piece_end_s(std::size_t i) const { return change_s_[i + 1]; }
  double piece_w(std::size_t i) const { return watts_[i]; }

  // Highest value that holds for some time in [from, to], and when it is first reached.
  struct Peak {
    double watts = 0, time_s = 0;
  };
  Peak peak(double from_s, double to_s) const;

  // Sum of several functions.
  static PiecewiseWatts sum(const std::vector<const PiecewiseWatts*>& parts);
  // fixed + factor * w, also outside.
  PiecewiseWatts affine(double fixed_w, double factor) const;

 private:
  double before(double time_s) const;  // integral from begin_s() to time_s
  double outside_w_ = 0;
  std::vector<double> change_s_;  // pieces() + 1 times
  std::vector<double> watts_;     // of each piece
  std::vector<double> energy_j_;  // from begin_s() to change_s_[i]
  double correction_j_ = 0;       // of the running energy (compensated sum)
};

}  // namespace tw
