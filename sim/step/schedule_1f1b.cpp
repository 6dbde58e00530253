// 1F1B: pp - 1 - stage forwards to warm up, then one forward and one backward in turn.
#include <algorithm>

#include "step/schedule.hpp"

namespace tw {
namespace {
std::vector<Visit> visits(int stage, int pp, int, int micro_batches) {
  const int warm_up = std::min(micro_batches, pp - stage - 1);
  std::vector<Visit> list;
  for (int m = 0; m < warm_up; ++m) list.push_back({false, 0, m});
  for (int m = warm_up; m < micro_batches; ++m) {
    list.push_back({false, 0, m});
    list.push_back({true, 0, m - warm_up});
  }
  for (int m = micro_batches - warm_up; m < micro_batches; ++m) list.push_back({true, 0, m});
  return list;
}
std::string refusal(int, int, int) {
  return "";
}
}  // namespace

ScheduleRule one_forward_one_backward() {
  return {Schedule::one_f_one_b, looped, visits, refusal};
}

}  // namespace tw
