// Who starts, and who is capped or paused. Power is judged at the feed, cooling and losses included.
#include <algorithm>
#include <limits>
#include <string_view>

#include "hall/hall_state.hpp"

namespace tw::hall {
namespace {

constexpr double kHair = 1e-9;  // a load at the limit is not beyond it

bool fits(const HallState& s, const std::vector<Load>& loads, double limit_w) {
  return flow_of(s.plan, loads, s.plan.outside_c.at(s.now_s)).load_w() <= limit_w * (1 + kHair);
}

// From lowest priority, of equal ones the latest to arrive.
std::vector<int> lowest_first(const HallState& s) {
  std::vector<int> order = s.running;
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const Job &x = s.job(a), &y = s.job(b);
    if (x.priority != y.priority) return x.priority < y.priority;
    return x.arrival_s != y.arrival_s ? x.arrival_s > y.arrival_s : a > b;
  });
  return order;
}

// May job j start now as far as power goes? Jobs that it may push down count at their lowest cap.
bool power_for(const HallState& s, int j, double until_s) {
  if (s.plan.limit_w.least() == kNever) return true;
  const Job& job = s.job(j);
  std::vector<Load> loads = s.loads();
  Load& own = loads[at(job.cluster)];
  const double idle_w = s.plan.clusters[at(job.cluster)].idle_w;
  const double work_w = (s.plan.cap ? job.points.back() : job.points.front()).node_w;
  own.jobs_w += job.nodes * std::max(work_w, job.start_up_s > 0 ? job.start_up_w : 0.0);
  own.idle_w = std::max(0.0, own.idle_w - job.nodes * idle_w);
  for (const int other : s.running) {
    Load& load = loads[at(s.job(other).cluster)];
    // One that starts up will draw more when it works.
    double most_w = std::max(s.node_w(other), s.job(other).points[s.now(other).point].node_w);
    if (s.plan.cap && s.job(other).priority <= job.priority) most_w = s.job(other).points.back().node_w;
    load.jobs_w += s.job(other).nodes * (most_w - s.node_w(other));
  }
  // Where a job can be neither slowed nor paused, what starts now must fit all the way.
  const bool waits_only = !s.plan.cap && !s.plan.pause;
  return fits(s, loads, waits_only ? s.plan.limit_w.least(s.now_s, until_s) : s.limit_w());
}

// Waits for clean or cheap energy, unless its deadline leaves no more time.
const char* wish(const HallState& s, int j) {
  const Job& job = s.job(j);
  if (job.carbon_below == kNever && job.price_below == kNever) return nullptr;
  if (s.now_s + s.expected_s(j) >= job.deadline_s * (1 - 1e-12)) return nullptr;
  if (s.plan.carbon_kg_per_j.at(s.now_s) >= job.carbon_below) return "carbon";
  if (s.plan.price_per_j.at(s.now_s) >= job.price_below) return "price";
  return nullptr;
}

// As far as power goes now.
bool alike(const Job& a, const Job& b) {
  return a.cluster == b.cluster && a.nodes == b.nodes && a.priority == b.priority &&
         a.points.front().node_w == b.points.front().node_w && a.points.back().node_w == b.points.back().node_w &&
         a.start_up_s == b.start_up_s && a.start_up_w == b.start_up_w;
}

// `no_power`: of each sort one that went beyond the budget in this pass of the queue; what starts in between frees
// none.
const char* obstacle(const HallState& s, int j, std::vector<int>& nodes, std::vector<int>& no_power) {
  const Job& job = s.job(j);
  const NodePool& pool = s.pools[at(job.cluster)];
  const double until_s = s.now_s + s.expected_s(j);
  const bool spares = s.now(j).was_stopped;
  if (pool.free(s.now_s, until_s, spares) < job.nodes) return "nodes";
  const bool waits_only = !s.plan.cap && !s.plan.pause;  // then it goes by the job's end, too
  if (!waits_only)
    for (const int other : no_power)
      if (alike(job, s.job(other))) return "power";
  if (!power_for(s, j, until_s)) {
    if (no_power.size() < 16) no_power.push_back(j);
    return "power";
  }
  nodes = pool.choose(job.nodes, s.now_s, until_s, spares);
  return static_cast<int>(nodes.size()) < job.nodes ? "placement" : nullptr;
}

void start(HallState& s, int j, std::vector<int> nodes) {
  s.wait_for(j, "none");
  JobNow& n = s.now(j);
  n.state = JobState::on;
  n.start_left_s = s.job(j).start_up_s;
  n.point = 0;
  n.stopping = n.was_stopped = false;
  n.nodes = std::move(nodes);
  s.pools[at(s.job(j).cluster)].take(n.nodes, j);
  s.running.push_back(j);
}

// When the head of the queue can start if nothing else does, and how many nodes of its cluster it then leaves (EASY
// backfill: Lifka 1995). By nodes, or by watts freed where power is what it waits for.
struct Reservation {
  double at_s = kNever;
  int left = 0;
};
Reservation reserve(const HallState& s, int head, bool by_power) {
  std::vector<std::pair<double, int>> ends;
  for (const int j : s.running)
    if (by_power || s.job(j).cluster == s.job(head).cluster) ends.emplace_back(s.now_s + s.left_s(j), j);
  std::sort(ends.begin(), ends.end());
  const Job& job = s.job(head);
  if (by_power) return {ends.empty() ? s.now_s : ends.front().first, 0};
  int free = s.pools[at(job.cluster)].free(s.now_s, s.now_s, s.now(head).was_stopped);
  for (const auto& [end_s, j] : ends) {
    free += s.job(j).nodes;
    if (free >= job.nodes) return {end_s, free - job.nodes};
  }
  return {};
}

// The first of each cluster's queue that lacks nodes gets those of lower priorities, if they are enough.
void preempt(HallState& s) {
  std::vector<char> seen(s.plan.clusters.size(), 0);
  for (const int j : s.waiting) {
    const Job& job = s.job(j);
    if (seen[at(job.cluster)] != 0 || wish(s, j) != nullptr) continue;
    seen[at(job.cluster)] = 1;
    int lacks = job.nodes - s.pools[at(job.cluster)].free(s.now_s, s.now_s + s.expected_s(j), s.now(j).was_stopped);
    std::vector<int> victims;
    for (const int other : lowest_first(s)) {
      if (lacks <= 0) break;
      if (s.job(other).cluster != job.cluster || s.job(other).priority >= job.priority) continue;
      if (s.to_checkpoint_s(other) == kNever) continue;
      victims.push_back(other);
      lacks -= s.job(other).nodes;
    }
    if (lacks > 0) continue;
    for (const int victim : victims) s.now(victim).stopping = true;
  }
}

}  // namespace

bool start_jobs(HallState& s) {
  if (s.dark) return false;
  struct Head {  // of a cluster's queue, blocked
    bool blocked = false, by_power = false;
    int priority = 0;
    Reservation reservation;
    // What did not fit in this pass does not fit later in it either: fewest nodes that lacked, by right to spares.
    int too_many[2] = {std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};
  };
  const bool serviced = !s.plan.maintenance.empty();
  std::vector<int> no_power;
  std::vector<Head> heads(s.plan.clusters.size());
  bool any = false, all_blocked = false;
  for (size_t i = 0; i < s.waiting.size();) {
    const int j = s.waiting[i];
    const Job& job = s.job(j);
    Head& head = heads[at(job.cluster)];
    const char* why = wish(s, j);
    if (why != nullptr) {  // it holds up nobody
      s.wait_for(j, why);
      ++i;
      continue;
    }
    std::vector<int> nodes;
    int& too_many = head.too_many[s.now(j).was_stopped ? 1 : 0];
    if (all_blocked || (head.blocked && s.plan.queue != Queue::backfill)) {
      why = "queue";
    } else {
      why = job.nodes >= too_many ? "nodes" : obstacle(s, j, nodes, no_power);
      if (!serviced && why != nullptr && std::string_view(why) == "nodes") too_many = std::min(too_many, job.nodes);
      // Nodes that lower priorities give up are not for them.
      if (why == nullptr && s.plan.preempt && head.blocked && head.priority > job.priority) why = "queue";
      if (why == nullptr && head.blocked) {
        const bool in_time = s.now_s + s.expected_s(j) <= head.reservation.at_s;
        const bool beside = !head.by_power && job.nodes <= head.reservation.left;
        if (!in_time && !beside) why = "queue";
        if (why == nullptr && !in_time) head.reservation.left -= job.nodes;
      } else if (why != nullptr && !head.blocked) {
        head.by_power = std::string_view(why) == "power";
        head.blocked = true;
        head.priority = job.priority;
        all_blocked = head.by_power && s.plan.queue != Queue::backfill;
        if (s.plan.queue == Queue::backfill) head.reservation = reserve(s, j, head.by_power);
        if (head.by_power && s.plan.queue == Queue::backfill)
          for (Head& other : heads)
            if (!other.blocked) other = head;
      }
    }
    if (why != nullptr) {
      if (s.now(j).why != "failure" || std::string_view(why) != "nodes") s.wait_for(j, why);
      ++i;
      continue;
    }
    s.waiting.erase(s.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    start(s, j, std::move(nodes));
    any = true;
  }
  return any;
}

void keep_budget(HallState& s) {
  for (const int j : s.running) {
    s.now(j).point = 0;
    s.now(j).links = {};  // power is judged without
    s.now(j).stopping = false;
    bool serviced = false;  // a node of it is due for maintenance
    if (s.plan.maintenance.empty()) continue;
    for (const int node : s.now(j).nodes)
      serviced = serviced || s.pools[at(s.job(j).cluster)].in_maintenance(node, s.now_s);
    s.now(j).stopping = serviced;
  }
  if (s.plan.preempt) preempt(s);
  const double limit_w = s.limit_w();
  if (limit_w == kNever || (!s.plan.cap && !s.plan.pause)) return;
  std::vector<Load> loads = s.loads();
  if (fits(s, loads, limit_w)) return;
  const std::vector<int> order = lowest_first(s);
  if (s.plan.cap)
    for (const int j : order)
      while (s.now(j).point + 1 < s.job(j).points.size()) {
        const double before_w = s.node_w(j);
        ++s.now(j).point;
        loads[at(s.job(j).cluster)].jobs_w += s.job(j).nodes * (s.node_w(j) - before_w);
        if (fits(s, loads, limit_w)) return;
      }
  if (!s.plan.pause) return;
  for (const int j : order) {
    if (s.to_checkpoint_s(j) == kNever) continue;
    s.now(j).stopping = true;
    loads[at(s.job(j).cluster)].jobs_w -= s.job(j).nodes * s.node_w(j);
    loads[at(s.job(j).cluster)].idle_w += s.job(j).nodes * s.plan.clusters[at(s.job(j).cluster)].idle_w;
    if (fits(s, loads, limit_w)) return;
  }
}

}  // namespace tw::hall
