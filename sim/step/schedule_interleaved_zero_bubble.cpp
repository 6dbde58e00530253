// Interleaved zero bubble (ZB1P in chunks): half of interleaved 1F1B's warm-up, backward split, weight gradients as
// many micro-batches behind as the stage's number.
#include <algorithm>

#include "step/schedule.hpp"

namespace tw {
namespace {

std::vector<Visit> visits(int stage, int pp, int vp, int micro_batches) {
  const int rounds = std::max(1, micro_batches / pp), group = micro_batches / rounds;
  const auto nth = [&](int k, bool backward, Part part) {
    const int chunk = k / group % vp;
    return Visit{backward, backward ? vp - 1 - chunk : chunk, k / (group * vp) * group + k % group, part};
  };
  const int total = micro_batches * vp;
  const int warm_up = std::min(total, (vp - 1) * group + pp - 1 - stage);
  std::vector<Visit> list;
  int weights = 0;
  for (int k = 0; k < warm_up; ++k) list.push_back(nth(k, false, Part::whole));
  for (int k = 0; k < total; ++k) {
    if (warm_up + k < total) list.push_back(nth(warm_up + k, false, Part::whole));
    list.push_back(nth(k, true, Part::input));
    if (k >= stage) list.push_back(nth(weights++, true, Part::weight));
  }
  while (weights < total) list.push_back(nth(weights++, true, Part::weight));
  return list;
}

std::string refusal(int pp, int, int micro_batches) {
  const int rounds = std::max(1, micro_batches / pp);
  return micro_batches % rounds != 0 ? "interleaved_zero_bubble needs micro-batches in multiples of pp" : "";
}

}  // namespace

ScheduleRule interleaved_zero_bubble() {
  return {Schedule::interleaved_zero_bubble, looped, visits, refusal, true};
}

}  // namespace tw
