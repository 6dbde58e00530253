// Where the time of a step goes.
#pragma once

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// Each second of the critical path is charged to exactly one key.
struct Breakdown {
  double compute = 0, host = 0, tp = 0, cp = 0, pp = 0, dp = 0, ep = 0, bubble = 0, optimizer = 0, jitter = 0,
         other = 0;
  double total() const { return compute + host + tp + cp + pp + dp + ep + bubble + optimizer + jitter + other; }
  static void describe(Outputs<Breakdown>& d);
};

}  // namespace tw
