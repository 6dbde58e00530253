#include "hall/hall_state.hpp"

#include <algorithm>
#include <cmath>

namespace tw::hall {

HallState::HallState(const HallPlan& p) : plan(p), jobs(p.jobs.size()) {
  for (size_t c = 0; c < p.clusters.size(); ++c) {
    std::vector<Window> windows;
    for (const Window& w : p.maintenance)
      if (w.cluster == static_cast<int>(c)) windows.push_back(w);
    for (Window& w : windows) std::sort(w.nodes.begin(), w.nodes.end());
    pools.emplace_back(p.clusters[c], p.placing, std::move(windows));
  }
}

double HallState::node_w(int j, size_t point) const {
  if (now(j).start_left_s > 0) return job(j).start_up_w;
  return point == now(j).point && now(j).links.squeeze > 1 ? now(j).links.node_w : job(j).points[point].node_w;
}

double HallState::rate(int j, size_t point) const {
  const Job& b = job(j);
  const double writes = b.checkpoint_s > 0 ? 1 + b.write_s / b.checkpoint_s : 1;
  return 1 / (b.points[point].slowdown * writes * now(j).links.slowdown);
}

double HallState::left_s(int j) const {
  return now(j).start_left_s + (job(j).work_s - now(j).progress_s) / rate(j, now(j).point);
}

double HallState::expected_s(int j, size_t point) const {
  return job(j).start_up_s + (job(j).work_s - now(j).progress_s) / rate(j, point);
}

double HallState::to_checkpoint_s(int j) const {
  const Job& b = job(j);
  if (now(j).start_left_s > 0) return 0;  // nothing to lose yet
  if (b.checkpoint_s <= 0) return kNever;
  const double done = now(j).progress_s / b.checkpoint_s;
  const double next = std::abs(done - std::round(done)) < 1e-9 ? std::round(done) : std::ceil(done);
  return std::max(0.0, next * b.checkpoint_s - now(j).progress_s) / rate(j, now(j).point);
}

std::vector<Load> HallState::loads() const {
  std::vector<Load> list(plan.clusters.size());
  for (size_t c = 0; c < list.size(); ++c) {
    list[c].on = !dark;
    const int idle = plan.clusters[c].nodes - pools[c].held() - pools[c].off(now_s);
    list[c].idle_w = dark ? 0 : idle * plan.clusters[c].idle_w;
  }
  for (const int j : running) list[static_cast<size_t>(job(j).cluster)].jobs_w += job(j).nodes * node_w(j);
  return list;
}

double HallState::load_w() const {
  return flow_of(plan, loads(), plan.outside_c.at(now_s)).load_w();
}

void HallState::enqueue(int j) {
  now(j).state = JobState::waiting;
  now(j).why_since_s = now_s;
  now(j).links = {};
  const auto before = [&](int a, int b) {
    if (plan.queue != Queue::first_come && job(a).priority != job(b).priority) return job(a).priority > job(b).priority;
    return job(a).arrival_s != job(b).arrival_s ? job(a).arrival_s < job(b).arrival_s : a < b;
  };
  waiting.insert(std::lower_bound(waiting.begin(), waiting.end(), j, before), j);
}

void HallState::wait_for(int j, std::string_view why) {
  JobNow& n = now(j);
  if (n.why == why && n.state == JobState::waiting) return;
  if (now_s > n.why_since_s) n.waited_s[n.why] += now_s - n.why_since_s;
  n.why_since_s = now_s;
  n.why = why;
}

}  // namespace tw::hall
