// Who starts, and who is capped or paused.
#include <algorithm>
#include <limits>
#include <string_view>

#include "hall/queue_parts.hpp"

namespace tw::hall {
namespace {

std::vector<int> lowest_first(const HallState& s) {
  std::vector<int> order = s.running;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return capped_before(s, a, b); });
  return order;
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
  for (const int other : no_power)  // where it goes by a job's end, too, a longer one fits no better
    if (alike(job, s.job(other)) && (!waits_only(s.plan) || s.expected_s(j) >= s.expected_s(other))) return "power";
  if (!power_for(s, {j, s.now_s, until_s})) {
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
  n.started_s = s.now_s;
  n.point = 0;
  n.stopping = n.was_stopped = false;
  n.nodes = std::move(nodes);
  s.pools[at(s.job(j).cluster)].take(n.nodes, j);
  s.running.push_back(j);
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
  struct Head {  // of a cluster's queue
    bool blocked = false;
    int priority = 0;
    // What did not fit in this pass does not fit later in it either: fewest nodes that lacked, by right to spares.
    int too_many[2] = {std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};
  };
  const bool serviced = !s.plan.maintenance.empty();
  std::vector<int> no_power;
  std::vector<Head> heads(s.plan.clusters.size());
  std::vector<Reservation> reservations;
  bool any = false, all_blocked = false;
  for (size_t i = 0; i < s.waiting.size();) {
    const int j = s.waiting[i];
    const Job& job = s.job(j);
    Head& head = heads[at(job.cluster)];
    const char* why = s.now(j).barred_s == s.now_s ? "power" : wish(s, j);
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
      if (why == nullptr) {
        if (!passes(s, reservations, j, nodes)) why = "queue";
      } else if (!head.blocked) {
        head.blocked = true;
        head.priority = job.priority;
        all_blocked = std::string_view(why) == "power" && s.plan.queue != Queue::backfill;
        if (s.plan.queue == Queue::backfill) reservations.push_back(reserve(s, j));
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
