// Jobs that pass the head of a queue, and when that head could start.
#include <algorithm>
#include <utility>

#include "hall/queue_parts.hpp"

namespace tw::hall {
namespace {

constexpr int kLooks = 5000;  // at so many moments ahead

bool limited(const HallState& s) {
  return s.plan.limit_w.least() < kNever;
}

bool has_place(const HallState& s, const NodePool& pool, int j, double then_s) {
  const double until_s = then_s + s.expected_s(j);
  const bool spares = s.now(j).was_stopped;
  if (pool.free(then_s, until_s, spares) < s.job(j).nodes) return false;
  return static_cast<int>(pool.choose(s.job(j).nodes, then_s, until_s, spares).size()) == s.job(j).nodes;
}

// Starts and ends of maintenance and repairs of a cluster: they change what places there are.
double next_place_change_s(const HallState& s, int cluster, double after_s) {
  double next_s = s.pools[at(cluster)].next_back_s(after_s);
  for (const Window& w : s.plan.maintenance)
    for (const double t : {w.from_s, w.to_s})
      if (w.cluster == cluster && t > after_s) next_s = std::min(next_s, t);
  return next_s;
}

// When j ends at the latest that is foreseen: a cap may slow it wherever there is not enough power for it without one.
double late_end_s(const HallState& s, int j) {
  const double end_s = s.now_s + s.expected_s(j);
  if (!s.plan.cap || !limited(s)) return end_s;
  PowerQuestion question{j, s.now_s, end_s};
  question.push = false, question.free = true;
  return power_for(s, question) ? end_s : s.now_s + s.expected_s(j, s.job(j).points.size() - 1);
}

// A job that runs and is pushed down ends later, and so moves who waits for its end.
bool pushes_nobody(const HallState& s, int j) {
  if (!s.plan.cap || !limited(s)) return true;
  PowerQuestion question{j, s.now_s, s.now_s};
  question.push = false, question.free = true;
  if (power_for(s, question)) return true;
  for (const int other : s.running)
    if (!capped_before(s, j, other) && s.now(other).point + 1 < s.job(other).points.size()) return false;
  question.free = false;
  return power_for(s, question);
}

bool moves(const HallState& s, Reservation& r, int j, const std::vector<int>& nodes) {
  if (s.job(j).cluster == s.job(r.head).cluster) {
    r.pool.take(nodes, j);
    const bool place = has_place(s, r.pool, r.head, r.at_s);
    r.pool.release(nodes);
    if (!place) return true;
  }
  if (!limited(s)) return false;
  PowerQuestion question{r.head, r.at_s, r.at_s + s.expected_s(r.head), &r.gone};
  question.beside = j;
  return !power_for(s, question);
}

}  // namespace

Reservation reserve(const HallState& s, int head) {
  const int cluster = s.job(head).cluster;
  Reservation r{head, kNever, s.pools[at(cluster)], std::vector<char>(s.plan.jobs.size(), 0)};
  std::vector<std::pair<double, int>> ends;
  for (const int j : s.running) {
    const JobNow& n = s.now(j);
    ends.emplace_back(s.now_s + (n.stopping ? std::min(s.left_s(j), s.to_checkpoint_s(j)) : s.left_s(j)), j);
  }
  std::sort(ends.begin(), ends.end());
  bool place = has_place(s, r.pool, head, s.now_s);
  size_t next = 0;
  double then_s = s.now_s;
  for (int look = 0; look < kLooks; ++look) {
    const double place_s = next_place_change_s(s, cluster, then_s);
    double next_s = std::min(place_s, next < ends.size() ? ends[next].first : kNever);
    if (place && limited(s)) {  // then power is what it waits for
      next_s = std::min(next_s, next_known_change_s(s, then_s));
      for (const int j : s.running)  // a start-up that is done
        if (const double t = s.now_s + s.now(j).start_left_s; t > then_s) next_s = std::min(next_s, t);
    }
    if (next_s == kNever) return r;
    then_s = std::max(then_s, next_s);
    bool changed = place_s <= then_s;
    r.pool.repair(then_s);
    for (; next < ends.size() && ends[next].first <= then_s; ++next) {
      const int j = ends[next].second;
      r.gone[at(j)] = 1;
      if (s.job(j).cluster != cluster) continue;
      r.pool.release(s.now(j).nodes);
      changed = true;
    }
    if (changed) place = has_place(s, r.pool, head, then_s);
    if (!place || !power_for(s, {head, then_s, then_s + s.expected_s(head), &r.gone})) continue;
    r.at_s = then_s;
    return r;
  }
  return r;
}

bool passes(const HallState& s, std::vector<Reservation>& heads, int j, const std::vector<int>& nodes) {
  if (heads.empty()) return true;
  const double end_s = late_end_s(s, j);
  if (!pushes_nobody(s, j)) return false;
  for (Reservation& r : heads)
    if (end_s > r.at_s * (1 + 1e-12) && moves(s, r, j, nodes)) return false;
  for (Reservation& r : heads) {
    if (end_s <= r.at_s * (1 + 1e-12))
      r.gone[at(j)] = 1;
    else if (s.job(j).cluster == s.job(r.head).cluster)
      r.pool.take(nodes, j);
  }
  return true;
}

}  // namespace tw::hall
