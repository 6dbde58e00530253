#include "step/step_model.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "step/step_simulation.hpp"

namespace tw {

StepOutcome StepSimulation::run() {
  for (int r = 0; r < replicas_; ++r)
    for (int m = 0; m < plan_.micro_batches; ++m) {
      const Place& first = placement_.of(m, plan_.micro_batches).front();
      arrive(first.stage, r, {false, first.slot, m}, begin_s_);
    }
  for (int s = 0; s < plan_.stages && !queues_.batches.empty(); ++s)
    for (int r = 0; r < replicas_; ++r) go_on(s, r);
  for (int s = 0; s < plan_.stages; ++s) gather_ahead(s);
  engine_.run();
  return outcome();
}

size_t StepSimulation::input_of(const Visit& v) const {
  return (static_cast<size_t>(v.chunk) * static_cast<size_t>(plan_.micro_batches) +
          static_cast<size_t>(v.micro_batch)) *
             2 +
         (v.backward ? 1 : 0);
}

// The last visit that gives gradients of weights of its chunk, or every one where they leave each time.
bool StepSimulation::releases(const Worker& w, const Visit& v) const {
  if (!v.backward || v.part == Part::input) return false;
  const int own = placement_.way.size() > 1 ? plan_.micro_batches / 2 : plan_.micro_batches;
  return plan_.reduce_every_visit || w.backwards[static_cast<size_t>(v.chunk)] + 1 == own;
}

const TaskCost& StepSimulation::cost(int stage, const Worker& w, const Visit& v) const {
  const PassCost& p = pass(stage, v);
  // Of later chunks the weights are there by then (gather_ahead). Stages of several chunks gather together when the
  // step begins (Megatron-Core's align_param_gather), so that one which waits for its first input has them by then; of
  // a single chunk each gathers when its input comes, as fully sharded ones do.
  const bool together = plan_.chunks > 1 && p.updated.total() > 0 && engine_.now_s() > begin_s_;
  const bool first = !v.backward && v.micro_batch == 0 && v.chunk == 0 && !together;
  if (first && p.first_forward.flops > 0) return p.first_forward;
  if (releases(w, v) && plan_.gradients_beside) {
    const TaskCost& last = v.part == Part::whole ? p.last_backward : p.last_weight;
    if (last.flops > 0) return last;
  }
  return p.of(v);
}

void StepSimulation::span(int stage, int replica, Span::Stream s, double begin, double end, const Visit& v,
                          const char* what, double bytes, double flops) {
  if (spans_ != nullptr && replica == 0 && end > begin)
    spans_->push_back({stage, s, begin - begin_s_, end - begin_s_, v, what, bytes, flops});
}

void StepSimulation::arrive(int stage, int replica, const Visit& v, double sent_s) {
  Worker& w = worker(stage, replica);
  w.input_s[input_of(v)] = engine_.now_s();
  w.sent_s[input_of(v)] = sent_s;
  start_next(stage, replica);
}

// The next visit, when its input is there and, for the first forward of a chunk, its weights.
void StepSimulation::start_next(int stage, int replica) {
  Worker& w = worker(stage, replica);
  const auto& list = visits(stage);
  if (w.busy || w.next == list.size()) return;
  const Visit& next = list[w.next];
  const double now = engine_.now_s();
  double sent_s = w.free_since_s;
  if (next.part != Part::weight) {
    if (w.input_s[input_of(next)] < 0) return;
    sent_s = w.sent_s[input_of(next)];
    if (!queues_.needs.empty() && w.batch < queues_.needs[static_cast<size_t>(stage)][w.next]) return;
  }
  const double arrived = next.part == Part::weight ? now : w.input_s[input_of(next)];
  if (!next.backward && next.chunk >= w.weights) return;
  w.busy = true;
  // Idle time before this visit: first the sender was not ready (bubble), then its data was under way (pp), then
  // weights (dp).
  const double ready = std::clamp(sent_s, w.free_since_s, now), here = std::clamp(arrived, ready, now);
  w.charged.bubble += ready - w.free_since_s;
  w.charged.pp += here - ready;
  w.charged.dp += now - here;
  compute(stage, replica, now);
}

void StepSimulation::compute(int stage, int replica, double now) {
  Worker& w = worker(stage, replica);
  const size_t index = w.next++;
  const Visit v = visits(stage)[index];
  const TaskCost& c = cost(stage, w, v);
  if (index == 0) w.first_begin_s = now;
  const double host_begin = w.host_free_s, host_end = std::max(host_begin + c.host_s, now + c.to_host_s);
  const double end = std::max(now + c.device_s(), host_begin + c.from_host());
  span(stage, replica, Span::Stream::host, std::max(host_begin, begin_s_), host_end, v, "issue");
  // The host is ahead by what the launch queue holds at most.
  const double full_until_s = w.launched.full_until_s(c.launches, end - c.device_s(), end);
  const double waits_s = std::max(0.0, std::max(host_end, full_until_s) - host_begin - c.host_s);
  const IssuedWork interval{c.device_s(), c.host_s, now - host_begin};
  const IssuedWork wait{0, waits_s, interval.lead_s + interval.device_s - interval.host_s};
  w.intervals.push_back(interval);
  if (waits_s > 0) w.intervals.push_back(wait);
  double jitter = 0;
  if (plan_.meet_every_visit) {
    const double nodes = plan_.nodes_per_member / plan_.stages;
    MemberNoise n = noise_of(plan_.noise, interval, nodes);
    if (waits_s > 0) n.stalls += noise_of(plan_.noise, wait, nodes).stalls;
    jitter = draw(n, stage, replica);
    jitter = std::max(jitter, now - end);  // an interval cannot become negative
  }
  if (!plan_.slow.empty()) jitter += (end - now) * (plan_.slow[at(stage, replica)] - 1);
  w.host_free_s = std::max(host_end + (host_end >= end ? jitter : 0), full_until_s);
  charge(w, c, end - now, jitter, v.backward ? w.backward : w.forward);
  w.doing = &c;
  w.began_s = now;
  w.late_s = 0;
  w.started = 0;
  w.left = c.shared.size();
  if (w.left > 0) {
    w.arrived.assign(w.left, 0);
    next_exchange(stage, replica);
  }
  if (releases(w, v)) release_gradients(stage, replica, index, now, end + jitter);
  if (v.backward && v.part != Part::input) ++w.backwards[static_cast<size_t>(v.chunk)];
  // Two words, which a std::function holds without an allocation: the rest stays with the worker until the end.
  in_visit(stage, replica, index, end + jitter, true, [this, stage, replica] {
    Worker& at = worker(stage, replica);
    const Visit& ending = visits(stage)[at.next - 1];
    const double since = engine_.now_s();
    auto go = [this, stage, replica, since] {
      Worker& here = worker(stage, replica);
      here.charged.dp += engine_.now_s() - since;
      here.activity[Activity::collective] += engine_.now_s() - since;
      reach(stage, replica, here.next - 1, here.began_s, here.doing->flops);
    };
    if (!ending.backward && ending.micro_batch == 0 && ending.chunk == 0 && !at.first_here)
      at.held = std::move(go);
    else
      go();
  });
}

double StepSimulation::draw(const MemberNoise& n, int stage, int replica) {
  return replicas_ == 1 ? draw_maximum(n, plan_.members, streams_[at(stage, replica)])
                        : draw_member(n, streams_[at(stage, replica)]);
}

double StepSimulation::draw_at_end(const PipelineWork& at_end) {
  const MemberNoise n = noise_of(plan_.noise, at_end, plan_.nodes_per_member);
  double worst = 0;
  for (int r = 0; r < replicas_; ++r) {
    SplitMix64 stream = end_stream(seed_, step_, r);
    worst = std::max(worst, replicas_ == 1 ? draw_maximum(n, plan_.members, stream) : draw_member(n, stream));
  }
  return worst;
}

void StepSimulation::charge(Worker& w, const TaskCost& c, double elapsed_s, double jitter_s, Stretch& stretch) {
  w.charged.compute += c.busy.total();
  w.charged.tp += c.tp_s;
  w.charged.cp += c.cp_s;
  w.charged.ep += c.ep_s;
  w.charged.dp += c.dp_s;
  w.charged.host += elapsed_s - c.device_s() + c.gap_s;
  w.charged.jitter += jitter_s;
  ActivityTimes did = c.busy;
  did[Activity::collective] += c.tp_s + c.cp_s + c.ep_s + c.dp_s;
  did[Activity::collective] += std::clamp(elapsed_s - c.device_s(), 0.0, c.host_exchange_s);
  w.activity += did;
  stretch.activity += did;
  stretch.time_s += elapsed_s;
}

// The visit's work is done; where replicas meet, the last one lets all go on.
void StepSimulation::reach(int stage, int replica, size_t index, double began_s, double flops) {
  if (!plan_.meet_every_visit || replicas_ == 1) return finish(stage, replica, index, began_s, flops);
  auto& waiting = meetings_[static_cast<size_t>(stage)][index];
  waiting.push_back({replica, engine_.now_s(), began_s});
  if (waiting.size() < static_cast<size_t>(replicas_)) return;
  const auto all = std::move(waiting);
  for (const Waiting& m : all) {
    worker(stage, m.replica).charged.jitter += engine_.now_s() - m.since_s;
    finish(stage, m.replica, index, m.began_s, flops);
  }
}

void StepSimulation::finish(int stage, int replica, size_t index, double began_s, double flops) {
  Worker& w = worker(stage, replica);
  const double now = engine_.now_s();
  const Visit& v = visits(stage)[index];
  const char* what = !v.backward ? "forward" : v.part == Part::weight ? "weight gradients" : "backward";
  span(stage, replica, Span::Stream::device, began_s, now, v, what, 0, flops);
  if (w.doing->launches > 0) w.launched.ended(now);
  w.busy = false;
  w.free_since_s = now;
  w.done = index + 1;
  if (!v.joined) {
    size_t first = index;
    while (first > 0 && visits(stage)[first - 1].joined) --first;
    for (size_t k = first; k <= index; ++k) pass_on(stage, replica, visits(stage)[k]);
    if (!queues_.batches.empty()) go_on(stage, replica);
  }
  // Passing on may have started the next visit already: a turn from forward to backward on the last stage.
  if (!w.busy && w.next == visits(stage).size()) end_of_visits(stage, replica);
  start_next(stage, replica);
}

// The micro-batch goes on to the next chunk, or turns round on the last. In a queue the transfer waits for its turn.
void StepSimulation::pass_on(int stage, int replica, const Visit& v) {
  int to = 0;
  Visit next;
  if (v.part == Part::weight || !next_visit(placement_, plan_.micro_batches, stage, v, to, next)) return;
  const double sent = engine_.now_s();
  const int load_class = hand_over_class(stage, to, replica);
  if (to == stage || (load_class < 0 && queues_.batches.empty())) return arrive(to, replica, next, sent);
  if (!queues_.batches.empty()) {
    worker(to, replica).sent_s[input_of(next)] = sent;
    return;
  }
  fabric_bytes_ += plan_.hand_over_bytes;
  engine_.start(load_class, plan_.hand_over_bytes, [this, stage, to, replica, next, sent] {
    span(stage, replica, Span::Stream::network, sent, engine_.now_s(), next, "hand-over", plan_.hand_over_bytes);
    arrive(to, replica, next, sent);
  });
}

int StepSimulation::hand_over_class(int from, int to, int replica) const {
  if (net_.forward_hand_over.empty() || from == to) return -1;
  const auto of = [&](const std::vector<std::vector<int>>& table) {
    const auto& classes = table[static_cast<size_t>(from)];
    return classes[static_cast<size_t>(replica) % classes.size()];
  };
  // Of two stages the next one is the one before, too.
  const int forward = to == (from + 1) % plan_.stages ? of(net_.forward_hand_over) : -1;
  return forward >= 0 ? forward : of(net_.backward_hand_over);
}

// Begins the sends and receives at the head of a stage's queue; a transfer moves when both sides are there.
void StepSimulation::go_on(int stage, int replica) {
  Worker& w = worker(stage, replica);
  const auto& queue = queues_.batches[static_cast<size_t>(stage)];
  if (w.sides_left > 0 || w.batch == queue.size() || w.done < queue[w.batch].after) return;
  const HandOverBatch& batch = queue[w.batch];
  w.sides_left = batch.sides.size();
  for (const HandOver& side : batch.sides) {
    const auto t = static_cast<size_t>(side.transfer);
    if (++sides_here_[t * static_cast<size_t>(replicas_) + static_cast<size_t>(replica)] == 2) move(t, replica);
  }
}

void StepSimulation::move(size_t t, int replica) {
  const Transfer& transfer = queues_.transfers[t];
  const double begin = engine_.now_s();
  const auto done = [this, t, replica, begin] {
    const Transfer& moved = queues_.transfers[t];
    const Visit& v = visits(moved.to)[moved.visit];
    Worker& w = worker(moved.to, replica);
    span(moved.from, replica, Span::Stream::network, begin, engine_.now_s(), v, "hand-over", plan_.hand_over_bytes);
    w.input_s[input_of(v)] = engine_.now_s();
    for (const int stage : {moved.from, moved.to}) {
      Worker& side = worker(stage, replica);
      if (--side.sides_left > 0) continue;
      ++side.batch;
      go_on(stage, replica);
      start_next(stage, replica);
    }
  };
  const int load_class = hand_over_class(transfer.from, transfer.to, replica);
  fabric_bytes_ += plan_.hand_over_bytes;
  if (load_class < 0) return engine_.at(begin, done);
  engine_.start(load_class, plan_.hand_over_bytes, done);
}

// At the end all hosts wait for their devices (the norm of the gradients); those of the next step begin together. A
// stage that then waits for its first input is not late before that; but for updated weights, which have to come before
// it and come from every host.
IssuedWork StepSimulation::wait_at_end(int stage, double end_s) {
  const Worker& w = worker(stage, 0);
  const PassCost& first = plan_.cost[static_cast<size_t>(stage)];
  const double gather_s = first.updated.total() > 0 ? first.first_forward.device_s() - first.forward.device_s() : 0;
  const double waits_s = std::max(0.0, end_s - w.host_free_s - plan_.host_lead_s);
  const double input_s = std::max(0.0, w.first_begin_s - begin_s_ - std::max(0.0, gather_s));
  return {0, waits_s, waits_s + plan_.host_lead_s + input_s};
}

StepOutcome StepSimulation::outcome() {
  if (finished_ != workers_.size())
    throw SimulationError(std::to_string(workers_.size() - finished_) + " pipeline workers never finished their step");
  StepOutcome out;
  double end = begin_s_;
  for (const Worker& w : workers_) end = std::max(end, w.done_s);
  // The busiest stage tells where the time goes; what it waits for at the end is the others' doing.
  size_t busiest = 0;
  for (size_t i = 0; i < workers_.size(); i += static_cast<size_t>(replicas_))
    if (workers_[i].charged.compute > workers_[busiest].charged.compute) busiest = i;
  PipelineWork at_end;
  for (int s = 0; s < plan_.stages; ++s) {
    at_end.stages.push_back({wait_at_end(s, end)});
    out.work.stages.push_back(std::move(worker(s, 0).intervals));
    out.work.stages.back().push_back(at_end.stages.back().front());
  }
  out.work.busiest = busiest / static_cast<size_t>(replicas_);
  out.time_s = end - begin_s_ + plan_.fixed_s;
  const double jitter =
      plan_.meet_every_visit ? draw_at_end(at_end) : end_jitter_s(plan_, out, replicas_, seed_, step_);
  out.breakdown = workers_[busiest].charged;
  out.breakdown.bubble += end - workers_[busiest].done_s;
  out.breakdown.jitter += jitter;
  out.breakdown.other += plan_.fixed_s;
  out.time_s = end - begin_s_ + jitter + plan_.fixed_s;
  out.jitter_s = out.breakdown.jitter;
  out.fabric_bytes = fabric_bytes_;
  const double each = 1.0 / plan_.stages;
  for (int s = 0; s < plan_.stages; ++s) {
    const Worker& w = worker(s, 0);
    out.stage_activity.push_back(w.activity);
    out.forward.time_s += each * w.forward.time_s;
    out.forward.activity += w.forward.activity.scaled(each);
    out.backward.time_s += each * w.backward.time_s;
    out.backward.activity += w.backward.activity.scaled(each);
  }
  return out;
}

// Once a step all replicas meet, whatever they did before.
double end_jitter_s(const StepPlan& plan, const StepOutcome& quiet, int replicas, uint64_t seed, uint64_t step) {
  const MemberNoise n = noise_of(plan.noise, quiet.work, plan.nodes_per_member);
  double worst = 0;
  for (int r = 0; r < replicas; ++r) {
    SplitMix64 stream = member_stream(seed, step, 0, r);
    const double own = replicas == 1 ? draw_maximum(n, plan.members, stream) : draw_member(n, stream);
    worst = r == 0 ? own : std::max(worst, own);
  }
  return std::max(worst, -0.5 * (quiet.time_s - plan.fixed_s));
}

StepOutcome simulate_step(const StepPlan& plan, const StepNetwork& net, network::Engine& engine, int replicas,
                          uint64_t seed, uint64_t step, std::vector<Span>* spans) {
  return StepSimulation(plan, net, engine, replicas, seed, step, spans).run();
}

}  // namespace tw
