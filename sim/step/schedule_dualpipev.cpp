// DualPipeV: DualPipe folded in the middle, two chunks a stage in a V, forwards joined with backwards.
#include "step/dualpipe_order.hpp"

namespace tw {
namespace {
std::vector<Visit> visits(int stage, int pp, int, int micro_batches) {
  return dualpipe_visits({stage, pp, micro_batches, 0, 0, 0, stage % 2 == 1, stage == pp - 1});
}
std::string refusal(int pp, int vp, int micro_batches) {
  if (vp != 2) return "dualpipev has two chunks a stage; vp = 2";
  return micro_batches < 2 * pp ? "dualpipev needs at least 2 pp micro-batches" : "";
}
}  // namespace

ScheduleRule dualpipev() {
  return {Schedule::dualpipev, v_shaped, visits, refusal, true};
}

}  // namespace tw
