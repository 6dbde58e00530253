// Power for a job that would start, now or later.
#include <algorithm>

#include "hall/queue_parts.hpp"

namespace tw::hall {
namespace {

constexpr double kHair = 1e-9;  // a load at the limit is not beyond it

bool fits_then(const HallPlan& plan, const std::vector<Load>& loads, double limit_w, double then_s) {
  return flow_of(plan, loads, plan.outside_c.at(then_s)).load_w() <= limit_w * (1 + kHair);
}

// A node's watts at most from then on. Boards that start up take no cap, and draw more when they work, or less.
double most_w(const Job& job, size_t point, bool starts_up) {
  return std::max(job.points[point].node_w, starts_up ? job.start_up_w : 0.0);
}

}  // namespace

bool fits(const HallState& s, const std::vector<Load>& loads, double limit_w) {
  return fits_then(s.plan, loads, limit_w, s.now_s);
}

bool capped_before(const HallState& s, int a, int b) {
  const Job &x = s.job(a), &y = s.job(b);
  if (x.priority != y.priority) return x.priority < y.priority;
  return x.arrival_s != y.arrival_s ? x.arrival_s > y.arrival_s : a > b;
}

double next_known_change_s(const HallState& s, double after_s) {
  double next_s = std::min(s.plan.limit_w.next_change_s(after_s), s.plan.outside_c.next_change_s(after_s));
  for (const Window& w : s.plan.maintenance)
    for (const double t : {w.from_s, w.to_s})
      if (t > after_s) next_s = std::min(next_s, t);
  for (const NodePool& pool : s.pools) next_s = std::min(next_s, pool.next_back_s(after_s));
  return next_s;
}

bool power_for(const HallState& s, const PowerQuestion& q) {
  const HallPlan& plan = s.plan;
  if (plan.limit_w.least() == kNever) return true;
  const bool all_the_way = waits_only(plan) || q.free;
  std::vector<Load> loads(plan.clusters.size());
  std::vector<int> held(plan.clusters.size(), 0);
  const auto add = [&](int j, double node_w) {
    const size_t c = at(s.job(j).cluster);
    // A node that draws less than an idle one draws that again when its job is done.
    if (waits_only(plan)) node_w = std::max(node_w, plan.clusters[c].idle_w);
    loads[c].jobs_w += s.job(j).nodes * node_w;
    held[c] += s.job(j).nodes;
  };
  const Job& job = s.job(q.job);
  const auto lowest = [&](int j) { return plan.cap ? s.job(j).points.size() - 1 : 0; };
  const auto below = [&](int j) { return s.job(j).priority <= job.priority; };
  for (const int other : s.running) {
    if (q.gone != nullptr && (*q.gone)[at(other)] != 0) continue;
    const size_t point = plan.cap && q.push && below(other) ? lowest(other) : s.now(other).point;
    const double left_s = s.now(other).start_left_s;
    add(other, most_w(s.job(other), point, left_s > 0 && s.now_s + left_s > q.at_s));
  }
  add(q.job, most_w(job, q.free ? 0 : lowest(q.job), job.start_up_s > 0));
  if (q.beside >= 0) {
    const Job& b = s.job(q.beside);
    add(q.beside, most_w(b, below(q.beside) ? lowest(q.beside) : 0, s.now_s + b.start_up_s > q.at_s));
  }
  for (double then_s = q.at_s; then_s == q.at_s || then_s < q.until_s * (1 - 1e-12);
       then_s = next_known_change_s(s, then_s)) {
    for (size_t c = 0; c < loads.size(); ++c) {
      const int idle = plan.clusters[c].nodes - held[c] - s.pools[c].off(then_s);
      loads[c].idle_w = std::max(0, idle) * plan.clusters[c].idle_w;
    }
    if (!fits_then(plan, loads, plan.limit_w.at(then_s), then_s)) return false;
    if (!all_the_way) return true;
  }
  return true;
}

}  // namespace tw::hall
