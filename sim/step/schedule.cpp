#include "step/schedule.hpp"

#include <algorithm>

namespace tw {
namespace {

// The k-th forward of a stage: chunks change every pp micro-batches.
Visit nth(int k, int pp, int vp, bool backward) {
  const int group = k / (pp * vp), inside = k % (pp * vp);
  const int chunk = inside / pp;
  return {backward, backward ? vp - 1 - chunk : chunk, group * pp + inside % pp};
}

std::vector<Visit> gpipe(int micro_batches) {
  std::vector<Visit> visits;
  for (const bool backward : {false, true})
    for (int m = 0; m < micro_batches; ++m) visits.push_back({backward, 0, m});
  return visits;
}

}  // namespace

std::vector<Visit> visits_of_stage(Schedule schedule, int stage, int pp, int vp, int micro_batches) {
  if (schedule == Schedule::gpipe) return gpipe(micro_batches);
  const int total = micro_batches * vp;
  const int group = vp > 1 ? pp : 1;  // nth() with a group of 1 counts micro-batches plainly
  const int warm_up = std::min(total, vp > 1 ? (pp - stage - 1) * 2 + (vp - 1) * pp : pp - stage - 1);
  std::vector<Visit> visits;
  for (int k = 0; k < warm_up; ++k) visits.push_back(nth(k, group, vp, false));
  for (int k = warm_up; k < total; ++k) {
    visits.push_back(nth(k, group, vp, false));
    visits.push_back(nth(k - warm_up, group, vp, true));
  }
  for (int k = total - warm_up; k < total; ++k) visits.push_back(nth(k, group, vp, true));
  return visits;
}

int micro_batches_in_flight(Schedule schedule, int stage, int pp, int vp, int micro_batches) {
  int now = 0, most = 0;
  for (const Visit& v : visits_of_stage(schedule, stage, pp, vp, micro_batches)) {
    now += v.backward ? -1 : 1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace tw
