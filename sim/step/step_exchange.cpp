// What the data-parallel ranks of a stage exchange in a step: updated weights, gradients, and the update between them.
#include <algorithm>

#include "step/step_simulation.hpp"

namespace tw {

// Updated weights arrive chunk by chunk while the first forwards run. The first visit's length holds those of the first
// chunk as they come when nobody else is on the links; it ends no sooner than they are there.
void StepSimulation::gather_ahead(int stage) {
  const PassCost& first = plan_.cost[static_cast<size_t>(stage)];
  const bool arrive = first.updated.total() > 0, more = arrive && placement_.slots > 1;
  for (int r = 0; r < replicas_; ++r) {
    worker(stage, r).first_here = !arrive;
    if (!more) worker(stage, r).weights = placement_.slots;
    start_next(stage, r);
  }
  if (!arrive) return;
  travel_both(stage, Exchange::weight_gather, Exchange::expert_gather, first.updated, [this, stage, more] {
    for (int r = 0; r < replicas_; ++r) {
      worker(stage, r).first_here = true;
      if (const auto held = std::move(worker(stage, r).held)) held();
    }
    if (more) gather_next(stage, 1);
  });
}

void StepSimulation::gather_next(int stage, int slot) {
  const PassCost& pass = plan_.cost[static_cast<size_t>(slot * plan_.stages + stage)];
  travel_both(stage, Exchange::weight_gather, Exchange::expert_gather, pass.updated, [this, stage, slot] {
    for (int r = 0; r < replicas_; ++r) {
      worker(stage, r).weights = slot + 1;
      start_next(stage, r);
    }
    if (slot + 1 < placement_.slots) gather_next(stage, slot + 1);
  });
}

// An exchange of the stage's data-parallel ranks: inside an NVLink domain its time is known, else its links decide.
void StepSimulation::travel(int stage, Exchange what, double bytes, double stretch, std::function<void()> done) {
  const int load_class = class_of(what == Exchange::gradient_reduce ? net_.gradient_exchange
                                  : what == Exchange::expert_reduce ? net_.expert_exchange
                                  : what == Exchange::weight_gather ? net_.weight_gather
                                                                    : net_.expert_gather,
                                  stage);
  if (load_class < 0 || bytes <= 0) return done();
  fabric_bytes_ += bytes;
  const bool inside_only = net_.classes[static_cast<size_t>(load_class)].uses.empty();
  const bool inside_first =
      what == Exchange::gradient_reduce && !net_.inside_first.empty() && net_.inside_first[static_cast<size_t>(stage)];
  if (!net_.exchange || (!inside_only && !inside_first))
    return engine_.start(load_class, bytes * stretch, std::move(done));
  const double inside_until_s = engine_.now_s() + net_.exchange(what, bytes) * stretch;
  if (inside_only) return engine_.at(inside_until_s, std::move(done));
  engine_.at(inside_until_s, [this, load_class, bytes, stretch, done = std::move(done)]() mutable {
    engine_.start(load_class, bytes * stretch, std::move(done));
  });
}

// One after the other.
void StepSimulation::travel_both(int stage, Exchange dense, Exchange experts, const SharedSum& bytes,
                                 std::function<void()> done) {
  travel(stage, dense, bytes.dense, 1, [this, stage, experts, bytes, done = std::move(done)]() mutable {
    travel(stage, experts, bytes.experts, 1, std::move(done));
  });
}

// Gradients of a chunk travel in buckets as soon as they are there.
void StepSimulation::release_gradients(int stage, int replica, size_t index, double begin_s, double end_s) {
  const Visit& v = visits(stage)[index];
  if (class_of(net_.gradient_exchange, stage) < 0 && class_of(net_.expert_exchange, stage) < 0) return;
  const PassCost& p = pass(stage, v);
  for (const Bucket& b : v.part == Part::whole ? p.buckets : p.weight_buckets) {
    const double share = plan_.gradients_beside ? b.share : 1, stretch = plan_.gradients_beside ? b.stretch : 1;
    for (const Gradients& g : {Gradients{Exchange::gradient_reduce, b.bytes.dense, stretch},
                               Gradients{Exchange::expert_reduce, b.bytes.experts, stretch}}) {
      if (g.bytes <= 0) continue;
      ++worker(stage, replica).buckets_left;
      in_visit(stage, replica, index, begin_s + (end_s - begin_s) * share, false,
               [this, stage, replica, g] { bucket_ready(stage, replica, g); });
    }
  }
}

// A bucket leaves when every replica has it (level 2) and the one before has gone.
void StepSimulation::bucket_ready(int stage, int replica, const Gradients& bucket) {
  auto& ready = ready_buckets_[static_cast<size_t>(stage)];
  auto& counts = ready.counts;
  const size_t mine = worker(stage, replica).buckets_made++;
  if (counts.size() <= mine) counts.resize(mine + 1, 0);
  if (++counts[mine] < replicas_) return;
  ready.queue.push_back(bucket);
  send_bucket(stage);
}

void StepSimulation::send_bucket(int stage) {
  auto& ready = ready_buckets_[static_cast<size_t>(stage)];
  if (ready.transferring || ready.first == ready.queue.size()) return;
  const Gradients bucket = ready.queue[ready.first++];
  const double sent = engine_.now_s(), bytes = bucket.bytes;
  ready.transferring = true;
  travel(stage, bucket.what, bytes, bucket.stretch, [this, stage, bytes, sent] {
    span(stage, 0, Span::Stream::network, sent, engine_.now_s(), {true, 0, 0}, "gradients", bytes);
    ready_buckets_[static_cast<size_t>(stage)].transferring = false;
    for (int k = 0; k < replicas_; ++k) {
      Worker& w = worker(stage, k);
      const double copy_s = bytes * plan_.bucket_copy_s_per_byte;
      if (w.ended)
        w.copied_s = std::max(w.copied_s, engine_.now_s()) + copy_s;
      else
        w.copies_s += copy_s;
      if (--w.buckets_left == 0 && w.ended) update(stage, k);
    }
    send_bucket(stage);
  });
}

void StepSimulation::end_of_visits(int stage, int replica) {
  Worker& w = worker(stage, replica);
  w.ended = true;
  w.backward_end_s = engine_.now_s();
  w.copied_s = w.backward_end_s + w.copies_s;
  if (w.buckets_left == 0) update(stage, replica);
}

// Gradients are in: wait was data-parallel time. Then the optimizer, and the gather of updated weights.
void StepSimulation::update(int stage, int replica) {
  Worker& w = worker(stage, replica);
  const double now = std::max(engine_.now_s(), w.copied_s);
  const double copies_s = std::min(now - w.backward_end_s, w.copies_s + now - engine_.now_s());
  w.charged.dp += now - w.backward_end_s;
  w.activity[Activity::copy] += copies_s;
  w.activity[Activity::collective] += now - w.backward_end_s - copies_s;
  const double slow = plan_.slow.empty() ? 1 : plan_.slow[at(stage, replica)];
  const double optimizer_s = plan_.optimizer.device_s() * slow;
  w.charged.optimizer += optimizer_s;
  w.activity += plan_.optimizer.busy;
  span(stage, replica, Span::Stream::device, now, now + optimizer_s, {true, 0, 0}, "optimizer");
  engine_.at(now + optimizer_s, [this, stage, replica] {
    SharedSum bytes;
    for (size_t k = static_cast<size_t>(stage); k < plan_.weight_bytes.size(); k += static_cast<size_t>(plan_.stages))
      bytes.dense += plan_.weight_bytes[k].dense, bytes.experts += plan_.weight_bytes[k].experts;
    const double since = engine_.now_s();
    if (replica != 0 || bytes.total() < 1) return done(stage, replica, 0);
    travel_both(stage, Exchange::weight_gather, Exchange::expert_gather, bytes,
                [this, stage, replica, since] { done(stage, replica, engine_.now_s() - since); });
  });
}

void StepSimulation::done(int stage, int replica, double gather_s) {
  Worker& w = worker(stage, replica);
  w.charged.dp += gather_s;
  w.activity[Activity::collective] += gather_s;
  w.done_s = engine_.now_s();
  ++finished_;
}

}  // namespace tw
