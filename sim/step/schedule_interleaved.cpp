// Interleaved 1F1B: micro-batches go through a stage's chunks in groups of pp.
#include <algorithm>

#include "step/schedule.hpp"

namespace tw {
namespace {

// The k-th forward or backward of a stage: chunks change every pp micro-batches.
Visit nth(int k, int pp, int vp, bool backward) {
  const int group = k / (pp * vp), inside = k % (pp * vp);
  const int chunk = inside / pp;
  return {backward, backward ? vp - 1 - chunk : chunk, group * pp + inside % pp};
}

std::vector<Visit> visits(int stage, int pp, int vp, int micro_batches) {
  const int total = micro_batches * vp;
  const int warm_up = std::min(total, (pp - stage - 1) * 2 + (vp - 1) * pp);
  std::vector<Visit> list;
  for (int k = 0; k < warm_up; ++k) list.push_back(nth(k, pp, vp, false));
  for (int k = warm_up; k < total; ++k) {
    list.push_back(nth(k, pp, vp, false));
    list.push_back(nth(k - warm_up, pp, vp, true));
  }
  for (int k = total - warm_up; k < total; ++k) list.push_back(nth(k, pp, vp, true));
  return list;
}

// complete_plan() has seen to it that micro-batches come in multiples of pp.
std::string refusal(int, int, int) {
  return "";
}

}  // namespace

ScheduleRule interleaved() {
  return {Schedule::one_f_one_b, looped, visits, refusal};
}

}  // namespace tw
