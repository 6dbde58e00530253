// GPipe: all forwards, then all backwards.
#include "step/schedule.hpp"

namespace tw {
namespace {
std::vector<Visit> visits(int, int, int, int micro_batches) {
  std::vector<Visit> list;
  for (const bool backward : {false, true})
    for (int m = 0; m < micro_batches; ++m) list.push_back({backward, 0, m});
  return list;
}
std::string refusal(int, int vp, int) {
  return vp > 1 ? "gpipe has no interleaved form; 1f1b, or vp = 1" : "";
}
}  // namespace

ScheduleRule gpipe() {
  return {Schedule::gpipe, looped, visits, refusal};
}

}  // namespace tw
