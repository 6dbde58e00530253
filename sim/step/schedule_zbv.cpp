// ZBV: zero bubble with two chunks a stage in a V, so that the last chunk stands where the first does.
#include <algorithm>

#include "step/schedule.hpp"

namespace tw {
namespace {

std::vector<Visit> visits(int stage, int pp, int, int micro_batches) {
  // The order fills the pipeline from 2 pp - 1 micro-batches on; with fewer, those that do not exist are left out.
  const int n = std::max(2 * pp - 1, micro_batches);
  std::vector<Visit> list;
  int forward[2] = {0, 0}, input[2] = {0, 0}, weight[2] = {0, 0};
  const auto push = [&](bool backward, int chunk, int m, Part part) {
    if (m < micro_batches) list.push_back({backward, chunk, m, part});
  };
  const auto f = [&](int chunk) { push(false, chunk, forward[chunk]++, Part::whole); };
  const auto b = [&](int chunk) { push(true, chunk, input[chunk]++, Part::input); };
  const auto w = [&](int chunk) { push(true, chunk, weight[chunk]++, Part::weight); };
  for (int i = 0; i < 2 * (pp - stage) - 1; ++i) f(0);
  for (int i = 0; i < stage; ++i) f(1), f(0);
  for (int i = 0; i < pp - stage; ++i) f(1), b(1), w(1);
  while (forward[1] < forward[0] || forward[0] < n) {
    if (forward[0] < n) f(0);
    b(0), w(0), f(1), b(1), w(1);
  }
  for (int i = 0; i < stage; ++i) b(0), b(1);
  for (int i = 0; i < pp - stage; ++i) b(0), w(0);
  while (weight[1] < input[1]) w(1);
  while (weight[0] < input[0]) w(0);
  return list;
}

std::string refusal(int, int vp, int) {
  return vp != 2 ? "zbv has two chunks a stage; vp = 2" : "";
}

}  // namespace

ScheduleRule zbv() {
  return {Schedule::zbv, v_shaped, visits, refusal, true};
}

}  // namespace tw
