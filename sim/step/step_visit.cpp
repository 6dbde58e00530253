// Exchanges inside a visit that share links of the fabric with others: the engine plays them, and the visit is late by
// what its kernels wait for them longer than alone.
#include <algorithm>
#include <utility>

#include "step/chunk_program.hpp"
#include "step/step_simulation.hpp"

namespace tw {
namespace {

// Differences below this part of an exchange are rounding.
constexpr double kRounding = 1e-9;

// Must `next` wait for `before`, which is under way? Of its own stream, or because kernels before it do.
bool waits_for(const VisitExchange& next, const VisitExchange& before) {
  return before.what == next.what || (before.waited_s > 0 && before.begin_s + before.alone_s <= next.begin_s);
}

}  // namespace

void StepSimulation::next_exchange(int stage, int replica) {
  const Worker& w = worker(stage, replica);
  if (w.started == w.doing->shared.size()) return;
  const double due_s = w.began_s + w.doing->shared[w.started].begin_s + w.late_s;
  engine_.at(std::max(due_s, engine_.now_s()), [this, stage, replica] {
    Worker& here = worker(stage, replica);
    const std::vector<VisitExchange>& all = here.doing->shared;
    const size_t piece = here.started;
    const VisitExchange& next = all[piece];
    for (size_t k = 0; k < piece; ++k)
      if (here.arrived[k] == 0 && waits_for(next, all[k])) {
        here.next_waits = true;
        return;
      }
    const double now = engine_.now_s();
    if (here.began_s + next.begin_s + here.late_s > now + kRounding * next.alone_s)
      return next_exchange(stage, replica);
    ++here.started;
    fabric_bytes_ += next.bytes / net_.in_visits.at(next.what).together;
    begin_exchange(stage, replica, piece);
    next_exchange(stage, replica);
  });
}

// It begins when all who take part have come to it.
void StepSimulation::begin_exchange(int stage, int replica, size_t piece) {
  const Worker& w = worker(stage, replica);
  const VisitExchange& x = w.doing->shared[piece];
  const StepNetwork::InVisits& links = net_.in_visits.at(x.what);
  const int load_class = links.classes[at(stage, replica)];
  if (links.together == 1)
    return engine_.start(load_class, x.bytes, [this, stage, replica, piece, since_s = engine_.now_s()] {
      exchange_done(stage, replica, piece, since_s);
    });
  auto& come = come_to_[{static_cast<size_t>(load_class), w.next, piece}];
  come.emplace_back(replica, engine_.now_s());
  if (come.size() < static_cast<size_t>(links.together)) return;
  engine_.start(load_class, x.bytes, [this, stage, piece, all = std::move(come)] {
    for (const auto& [member, since_s] : all) exchange_done(stage, member, piece, since_s);
  });
  come_to_.erase({static_cast<size_t>(load_class), w.next, piece});
}

// Time of a visit that an exchange has cost it.
void StepSimulation::charge_exchange(Worker& w, Exchange what, double late_s, bool backward) {
  switch (stream_of(what)) {
    case Stream::cp:
      w.charged.cp += late_s;
      break;
    case Stream::ep:
      w.charged.ep += late_s;
      break;
    case Stream::dp:
      w.charged.dp += late_s;
      break;
    default:
      w.charged.tp += late_s;
  }
  Stretch& stretch = backward ? w.backward : w.forward;
  stretch.time_s += late_s;
  stretch.activity[Activity::collective] += late_s;
  w.activity[Activity::collective] += late_s;
}

void StepSimulation::exchange_done(int stage, int replica, size_t piece, double since_s) {
  Worker& w = worker(stage, replica);
  const VisitExchange& x = w.doing->shared[piece];
  const double alone_s = x.bytes * net_.shared.at(x.what);
  double longer_s = engine_.now_s() - since_s - alone_s;
  if (longer_s < kRounding * alone_s) longer_s = 0;
  // Part of it kernels wait for in any case; the rest hides as far as there is room.
  const double waited = x.alone_s > 0 ? x.waited_s / x.alone_s : 1;
  const double late_s = longer_s * waited + std::max(0.0, longer_s * (1 - waited) - x.slack_s);
  w.late_s += late_s;
  charge_exchange(w, x.what, late_s, visits(stage)[w.next - 1].backward);
  w.arrived[piece] = 1;
  --w.left;
  if (std::exchange(w.next_waits, false)) next_exchange(stage, replica);
  if (w.left > 0 || !w.ending) return;
  const auto ending = std::exchange(w.ending, nullptr);
  ending(x.what);
}

void StepSimulation::in_visit(int stage, int replica, size_t index, double due_s, bool end,
                              std::function<void()> what) {
  const Worker& w = worker(stage, replica);
  if (w.doing->shared.empty()) return engine_.at(due_s, std::move(what));
  const double when_s = std::max(due_s + w.late_s, engine_.now_s());
  engine_.at(when_s, [this, stage, replica, index, due_s, end, when_s, what = std::move(what)]() mutable {
    Worker& here = worker(stage, replica);
    const bool under_way = here.busy && here.next == index + 1;
    if (under_way && end && here.left > 0) {
      // What hides as far as there is room may end behind the kernels: they have no more of it then.
      here.ending = [this, stage, replica, index, due_s, what = std::move(what)](Exchange last) mutable {
        Worker& late = worker(stage, replica);
        const double behind_s = engine_.now_s() - due_s - late.late_s;
        if (behind_s > 0) charge_exchange(late, last, behind_s, visits(stage)[index].backward);
        in_visit(stage, replica, index, due_s, true, std::move(what));
      };
      return;
    }
    if (under_way && due_s + here.late_s > when_s) return in_visit(stage, replica, index, due_s, end, std::move(what));
    what();
  });
}

}  // namespace tw
