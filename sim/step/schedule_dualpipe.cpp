// DualPipe: micro-batches enter at both ends; each stage holds a chunk of either direction.
#include <algorithm>

#include "step/dualpipe_order.hpp"

namespace tw {
namespace {
std::vector<Visit> visits(int stage, int pp, int, int micro_batches) {
  const int half = pp / 2, near = std::min(stage, pp - 1 - stage);
  const bool second = stage >= half;
  return dualpipe_visits(
      {near, half, micro_batches / 2, second ? 1 : 0, 0, micro_batches / 2, near % 2 == 1, near == half - 1});
}
std::string refusal(int pp, int vp, int micro_batches) {
  if (pp % 2 != 0) return "dualpipe needs an even pp";
  if (vp != 1) return "dualpipe has one chunk of either direction a stage; vp = 1";
  return micro_batches % 2 != 0 || micro_batches < 2 * pp
             ? "dualpipe needs an even number of micro-batches, at least 2 pp"
             : "";
}
}  // namespace

ScheduleRule dualpipe() {
  return {Schedule::dualpipe, two_way, visits, refusal, true};
}

}  // namespace tw
