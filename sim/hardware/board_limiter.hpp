// The board's limiter in time. Every period the driver reads what the board drew and sets the clock; between
// two decisions the clock stays, so that work which begins after a wait draws all it wants for up to one period.
//
// The law, two stages. A decision allows the next period what the running mean over `window` has left of held_share *
// limit, at most fast_share * limit, at least least_share * limit. The clock then lowers the dynamic power of the work
// seen last to that (f V^2: clock as dynamic power to clock_exponent). What this shows on a long burst: all it wants,
// then fast_share, a cut when the mean reaches the limit, and after that the limit in the mean.
#pragma once

#include <utility>
#include <vector>

#include "hardware/accelerator.hpp"

namespace tw {

class BoardLimiter {
 public:
  // `power.limiter` must be given. The board has drawn `resting_w` for longer than the window.
  BoardLimiter(const GpuPower& power, Power limit, double resting_w);

  // Watts of work that would draw `wanted_w` at the highest clock. What an idle board with a context draws stays.
  double watts(double wanted_w) const;
  // Of work that follows the clock, over that at the highest one.
  double speed() const;
  // As the driver reports it; a board at rest goes back to the highest.
  double clock_hz() const;

  // Time passes with such work and no decision in between.
  void pass(double dt_s, double wanted_w);
  void decide();

 private:
  struct Period {
    double seconds = 0, joules = 0;
  };
  LimiterProfile profile_;
  double still_w_ = 0, limit_w_ = 0, held_share_ = 1;
  std::vector<Period> past_;  // of the window, without the one that runs
  size_t oldest_ = 0;
  Period now_;
  std::vector<std::pair<double, double>> wanted_;  // of the one that runs: seconds, watts
  double phi_ = 1;                                 // dynamic power let through
};

}  // namespace tw
