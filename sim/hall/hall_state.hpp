// The state of a hall between two events, shared by the queue, the keeper of the budget and the clock.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hall/accounts.hpp"
#include "hall/node_pool.hpp"

namespace tw::hall {

enum class JobState { coming, waiting, on, done };

struct JobNow {
  JobState state = JobState::coming;
  double progress_s = 0;     // of its work
  double start_left_s = 0;   // of its start-up
  size_t point = 0;          // of its caps
  LinkPoint links;           // what others on its links make of it
  bool stopping = false;     // gives its nodes back at its next checkpoint
  bool was_stopped = false;  // by a failure: it may have spares
  std::vector<int> nodes;
  double network_w = 0;
  double started_s = -1;   // last
  double barred_s = -1;    // stopped at the moment of its start: it does not start again at that moment
  double why_since_s = 0;  // it waits for that
  std::string why = "nodes";
  std::map<std::string, double> waited_s;  // by reason
};

class HallState {
 public:
  explicit HallState(const HallPlan& plan);

  const HallPlan& plan;
  double now_s = 0;
  bool dark = false;  // no feed, and no battery to carry the hall
  std::vector<JobNow> jobs;
  std::vector<NodePool> pools;
  std::vector<int> waiting, running;  // waiting: in the order of the queue

  const Job& job(int j) const { return plan.jobs[static_cast<size_t>(j)]; }
  JobNow& now(int j) { return jobs[static_cast<size_t>(j)]; }
  const JobNow& now(int j) const { return jobs[static_cast<size_t>(j)]; }

  double node_w(int j, size_t point) const;  // now: start-up has watts of its own
  double node_w(int j) const { return node_w(j, now(j).point); }
  // Seconds of work done in one of time, checkpoints included.
  double rate(int j, size_t point) const;
  double left_s(int j) const;                        // until it is done, at its present cap
  double expected_s(int j, size_t point = 0) const;  // the same from a start under one cap
  double to_checkpoint_s(int j) const;
  std::vector<Load> loads() const;
  double load_w() const;  // at the feed, without the battery
  double limit_w() const { return plan.limit_w.at(now_s); }
  void enqueue(int j);
  void wait_for(int j, std::string_view why);  // from now on
};

// Starts what the queue lets start; says of every other job why it waits. True when any job started.
bool start_jobs(HallState& s);
// Caps from the lowest priority up, then pauses, until the hall is below its limit; stops jobs whose nodes go into
// service or to a higher priority.
void keep_budget(HallState& s);
// Sets JobNow::links of every running job.
void share_links(HallState& s);

}  // namespace tw::hall
