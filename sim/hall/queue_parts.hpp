// What the queue asks before a job starts: is there power, and would it move one that waits ahead of it?
#pragma once

#include <vector>

#include "hall/hall_state.hpp"

namespace tw::hall {

// Power is judged at the feed, cooling and losses included, over what is known: the budget, the weather, maintenance,
// repairs, and the jobs that run.
struct PowerQuestion {
  int job = 0;  // that would start
  double at_s = 0, until_s = 0;
  const std::vector<char>* gone = nullptr;  // jobs that are done by then
  int beside = -1;                          // another that starts now, too
  bool push = true;                         // others that it may push down count at their lowest cap, else as they are
  bool free = false;                        // it runs without a cap, and so until its end
};
bool power_for(const HallState& s, const PowerQuestion& q);
bool fits(const HallState& s, const std::vector<Load>& loads, double limit_w);
// Neither caps nor pauses are allowed: what starts must fit all the way.
inline bool waits_only(const HallPlan& plan) {
  return !plan.cap && !plan.pause;
}
// Is `a` capped before `b`? From lowest priority, of equal ones the latest to arrive.
bool capped_before(const HallState& s, int a, int b);
// When something that is known to come next changes what the hall may take, or takes without a job.
double next_known_change_s(const HallState& s, double after_s);

// When the head of a queue can start if nothing else does, by nodes, placement and power (EASY backfill: Lifka 1995).
struct Reservation {
  int head = 0;
  double at_s = kNever;
  NodePool pool;           // of its cluster, then
  std::vector<char> gone;  // jobs that are done by then
};
Reservation reserve(const HallState& s, int head);
// May job j start on these nodes without moving any of them? Then it is in them.
bool passes(const HallState& s, std::vector<Reservation>& heads, int j, const std::vector<int>& nodes);

}  // namespace tw::hall
