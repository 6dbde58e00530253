// Ratings of the power delivery, unit by unit: what is placed on a bus, PDU or UPS together must not ask for more than
// it gives. A job counts with its highest phase, as in `run`.
#pragma once

#include <vector>

#include "hall/hall_state.hpp"

namespace tw::hall {

class Ratings {
 public:
  explicit Ratings(const HallPlan& plan);
  // Throws DoesNotFit, one line, where a unit is asked for more than its rating now.
  void check(const HallState& s) const;

 private:
  void check(const HallState& s, int cluster) const;
  std::vector<int> watched_;  // clusters in which that can be
};

}  // namespace tw::hall
