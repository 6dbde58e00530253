#include "hardware/board_limiter.hpp"

#include <algorithm>
#include <cmath>

namespace tw {

BoardLimiter::BoardLimiter(const GpuPower& power, Power limit, double resting_w)
    : profile_(power.limiter.value()),
      still_w_(power.context.value()),
      limit_w_(limit.value()),
      held_share_(power.held_share) {
  const double period_s = profile_.period.value();
  const auto count = static_cast<size_t>(std::max(1.0, std::round(profile_.window.value() / period_s)));
  past_.assign(count - 1, {period_s, resting_w * period_s});
}

double BoardLimiter::watts(double wanted_w) const {
  return wanted_w > still_w_ ? still_w_ + (wanted_w - still_w_) * phi_ : wanted_w;
}

double BoardLimiter::speed() const {
  return std::pow(phi_, profile_.clock_exponent);
}

double BoardLimiter::clock_hz() const {
  return profile_.clock.value() * (phi_ < 1 ? profile_.products_clock * speed() : 1);
}

void BoardLimiter::pass(double dt_s, double wanted_w) {
  now_.seconds += dt_s;
  now_.joules += watts(wanted_w) * dt_s;
  if (dt_s > 0) wanted_.emplace_back(dt_s, wanted_w);
}

void BoardLimiter::decide() {
  if (!(now_.seconds > 0)) return;
  double seen_s = 0, seen_j = 0;
  for (size_t i = wanted_.size(); i-- > 0 && seen_s < profile_.seen.value();) {
    const double dt_s = std::min(wanted_[i].first, profile_.seen.value() - seen_s);
    seen_s += dt_s, seen_j += dt_s * wanted_[i].second;
  }
  const double wanted_w = seen_j / seen_s;
  if (!past_.empty()) {
    past_[oldest_] = now_;
    oldest_ = (oldest_ + 1) % past_.size();
  }
  double seconds = 0, joules = 0;
  for (const Period& p : past_) seconds += p.seconds, joules += p.joules;
  // The driver's periods are not exact: the window ends where the next one does.
  const double period_s = profile_.period.value(), before_s = profile_.window.value() - period_s;
  const double before_j = seconds > 0 ? joules / seconds * before_s : 0;
  const double left_w = (held_share_ * limit_w_ * profile_.window.value() - before_j) / period_s;
  const double allowed_w = std::min(profile_.fast_share * limit_w_, std::max(profile_.least_share * limit_w_, left_w));
  phi_ = wanted_w <= allowed_w ? 1 : std::max(0.0, allowed_w - still_w_) / (wanted_w - still_w_);
  now_ = {};
  wanted_.clear();
}

}  // namespace tw
