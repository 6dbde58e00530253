#include "power/piecewise.hpp"

#include <algorithm>
#include <cmath>

#include "core/sum.hpp"

namespace tw {

void PiecewiseWatts::begin(double begin_s) {
  change_s_ = {begin_s};
  watts_.clear();
  energy_j_ = {0};
  correction_j_ = 0;
}

void PiecewiseWatts::append(double end_s, double watts) {
  if (change_s_.empty()) begin(0);
  const double last_s = change_s_.back();
  if (!(end_s > last_s)) return;
  const double part_j = watts * (end_s - last_s) + correction_j_;
  const double next_j = energy_j_.back() + part_j;
  correction_j_ = part_j - (next_j - energy_j_.back());
  if (!watts_.empty() && watts_.back() == watts) {
    change_s_.back() = end_s;
    energy_j_.back() = next_j;
    return;
  }
  change_s_.push_back(end_s);
  watts_.push_back(watts);
  energy_j_.push_back(next_j);
}

double PiecewiseWatts::at(double time_s) const {
  if (watts_.empty() || time_s < change_s_.front() || time_s >= change_s_.back()) return outside_w_;
  const auto next = std::upper_bound(change_s_.begin(), change_s_.end(), time_s);
  return watts_[static_cast<size_t>(next - change_s_.begin()) - 1];
}

double PiecewiseWatts::before(double time_s) const {
  if (watts_.empty()) return outside_w_ * time_s;
  if (time_s <= change_s_.front()) return outside_w_ * (time_s - change_s_.front());
  if (time_s >= change_s_.back()) return energy_j_.back() + outside_w_ * (time_s - change_s_.back());
  const auto next = std::upper_bound(change_s_.begin(), change_s_.end(), time_s);
  const auto i = static_cast<size_t>(next - change_s_.begin()) - 1;
  return energy_j_[i] + watts_[i] * (time_s - change_s_[i]);
}

double PiecewiseWatts::integral(double from_s, double to_s) const {
  return before(to_s) - before(from_s);
}

PiecewiseWatts::Peak PiecewiseWatts::peak(double from_s, double to_s) const {
  Peak best{at(from_s), from_s};
  for (size_t i = 0; i < watts_.size(); ++i) {
    if (change_s_[i + 1] <= from_s || change_s_[i] >= to_s) continue;
    if (watts_[i] > best.watts) best = {watts_[i], std::max(from_s, change_s_[i])};
  }
  if (!watts_.empty() && to_s > change_s_.back() && outside_w_ > best.watts) best = {outside_w_, change_s_.back()};
  return best;
}

PiecewiseWatts PiecewiseWatts::sum(const std::vector<const PiecewiseWatts*>& parts) {
  double outside_w = 0;
  std::vector<double> times;
  for (const PiecewiseWatts* part : parts) {
    outside_w += part->outside_w_;
    times.insert(times.end(), part->change_s_.begin(), part->change_s_.end());
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  PiecewiseWatts result(outside_w);
  if (times.size() < 2) return result;
  result.begin(times.front());
  std::vector<size_t> next(parts.size(), 0);  // first piece of each part that ends after the current time
  for (size_t k = 0; k + 1 < times.size(); ++k) {
    double watts = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const PiecewiseWatts& part = *parts[p];
      while (next[p] < part.pieces() && part.piece_end_s(next[p]) <= times[k]) ++next[p];
      const bool inside = next[p] < part.pieces() && part.piece_begin_s(next[p]) <= times[k];
      watts += inside ? part.watts_[next[p]] : part.outside_w_;
    }
    result.append(times[k + 1], watts);
  }
  return result;
}

PiecewiseWatts PiecewiseWatts::affine(double fixed_w, double factor) const {
  PiecewiseWatts result(fixed_w + factor * outside_w_);
  if (watts_.empty()) return result;
  result.begin(change_s_.front());
  for (size_t i = 0; i < watts_.size(); ++i) result.append(change_s_[i + 1], fixed_w + factor * watts_[i]);
  return result;
}

}  // namespace tw
