// ZB-H1: 1F1B whose backward is split; gradients of weights wait for the bubble, at most as long as keeps the memory
// of 1F1B's first stage.
#include <algorithm>

#include "step/schedule.hpp"

namespace tw {
namespace {
std::vector<Visit> visits(int stage, int pp, int, int micro_batches) {
  const int warm_up = std::min(micro_batches, pp - stage - 1);
  const int late = stage;  // weight gradients run this many micro-batches behind
  std::vector<Visit> list;
  int forwards = 0, inputs = 0, weights = 0;
  for (; forwards < warm_up; ++forwards) list.push_back({false, 0, forwards});
  while (inputs < micro_batches) {
    if (forwards < micro_batches) list.push_back({false, 0, forwards++});
    list.push_back({true, 0, inputs++, Part::input});
    if (inputs - weights > late) list.push_back({true, 0, weights++, Part::weight});
  }
  while (weights < micro_batches) list.push_back({true, 0, weights++, Part::weight});
  return list;
}
std::string refusal(int, int vp, int) {
  return vp > 1 ? "zb_h1 has one chunk a stage; vp = 1, or interleaved_zero_bubble" : "";
}
}  // namespace

ScheduleRule zb_h1() {
  return {Schedule::zb_h1, looped, visits, refusal, true};
}

}  // namespace tw
