#include "step/step_model.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "step/schedule.hpp"

namespace tw {
namespace {

struct Bucket {
  int load_class;
  double bytes;
};

// One replica of one stage.
struct Worker {
  std::vector<Visit> visits;
  size_t next = 0;
  bool busy = false;
  double free_since_s = 0;      // the device has been idle from here on
  double host_free_s = 0;       // the host has issued everything before
  std::vector<double> input_s;  // per visit key: when the input arrived; < 0 = not yet
  std::vector<double> sent_s;   // per visit key: when the sender had it ready
  size_t buckets_left = 0, buckets_made = 0;
  double backward_end_s = 0;
  Breakdown charged;
  ActivityTimes activity;
  Stretch forward, backward;
  double done_s = 0;
};

class StepSimulation {
 public:
  StepSimulation(const StepPlan& plan, const StepNetwork& net, network::Engine& engine, int replicas, uint64_t seed,
                 uint64_t step, std::vector<Span>* spans)
      : plan_(plan), net_(net), engine_(engine), replicas_(replicas), begin_s_(engine.now_s()), spans_(spans) {
    const auto stages = static_cast<size_t>(plan.stages), each = static_cast<size_t>(replicas);
    workers_.resize(stages * each);
    meetings_.resize(stages);
    for (int s = 0; s < plan.stages; ++s) {
      const auto visits = visits_of_stage(plan.schedule, s, plan.stages, plan.chunks, plan.micro_batches);
      meetings_[static_cast<size_t>(s)].resize(visits.size() + 1);
      for (int r = 0; r < replicas; ++r) {
        Worker& w = worker(s, r);
        w.visits = visits;
        w.input_s.assign(visits.size(), -1);
        w.sent_s.assign(visits.size(), -1);
        w.free_since_s = w.host_free_s = begin_s_;
        // A stream per member, so that level 2 does not depend on the order of events.
        streams_.push_back(random_stream(seed, "step noise",
                                         (step << 24U) ^ (static_cast<uint64_t>(s) << 16U) ^ static_cast<uint64_t>(r)));
      }
    }
  }

  StepOutcome run() {
    for (int r = 0; r < replicas_; ++r)
      for (int m = 0; m < plan_.micro_batches; ++m) arrive(0, r, {false, 0, m}, begin_s_);
    engine_.run();
    return outcome();
  }

 private:
  Worker& worker(int stage, int replica) {
    return workers_[static_cast<size_t>(stage) * static_cast<size_t>(replicas_) + static_cast<size_t>(replica)];
  }
  SplitMix64& stream(int stage, int replica) {
    return streams_[static_cast<size_t>(stage) * static_cast<size_t>(replicas_) + static_cast<size_t>(replica)];
  }
  size_t key(const Visit& v) const {
    return (static_cast<size_t>(v.chunk) * static_cast<size_t>(plan_.micro_batches) +
            static_cast<size_t>(v.micro_batch)) *
               2 +
           (v.backward ? 1 : 0);
  }
  size_t chunk_index(int stage, int chunk) const {
    return static_cast<size_t>(chunk) * static_cast<size_t>(plan_.stages) + static_cast<size_t>(stage);
  }
  const TaskCost& cost(int stage, const Visit& v) const {
    const PassCost& pass = plan_.cost[chunk_index(stage, v.chunk)];
    return v.backward ? pass.backward : pass.forward;
  }
  void span(int stage, int replica, Span::Stream s, double begin, double end, const Visit& v, const char* what,
            double bytes = 0, double flops = 0) {
    if (spans_ != nullptr && replica == 0 && end > begin)
      spans_->push_back({stage, s, begin - begin_s_, end - begin_s_, v, what, bytes, flops});
  }

  void arrive(int stage, int replica, const Visit& v, double sent_s) {
    Worker& w = worker(stage, replica);
    w.input_s[key(v)] = engine_.now_s();
    w.sent_s[key(v)] = sent_s;
    start_next(stage, replica);
  }

  void start_next(int stage, int replica) {
    Worker& w = worker(stage, replica);
    if (w.busy || w.next == w.visits.size()) return;
    const Visit v = w.visits[w.next];
    const double arrived = w.input_s[key(v)];
    if (arrived < 0) return;
    w.busy = true;
    const double now = engine_.now_s();
    // Idle time before this visit: first the sender was not ready (bubble), then its data was under way (pp).
    const double ready = std::clamp(w.sent_s[key(v)], w.free_since_s, now);
    w.charged.bubble += ready - w.free_since_s;
    w.charged.pp += now - ready;
    const TaskCost& c = cost(stage, v);
    const double host_begin = w.host_free_s, host_end = host_begin + c.host_s;
    const double device_s = c.device_s() + plan_.hand_over_exposed_s;
    const double end = std::max(std::max(now, host_begin) + device_s, host_end);
    span(stage, replica, Span::Stream::host, host_begin, host_end, v, "issue");
    double jitter = 0;
    if (plan_.meet_every_visit) {
      const MemberNoise n =
          noise_of(plan_.noise, device_s, c.host_s + std::max(0.0, host_begin - now) - plan_.run_ahead_s,
                   plan_.nodes_per_member / plan_.stages);
      jitter = draw(n, stage, replica);
      jitter = std::max(jitter, now - end);  // an interval cannot become negative
      if (host_end >= end) w.host_free_s += jitter;
    }
    w.host_free_s = std::max(w.host_free_s, host_begin) + c.host_s;
    w.charged.pp += plan_.hand_over_exposed_s;
    w.activity[Activity::collective] += plan_.hand_over_exposed_s;
    charge(w, c, end - now - plan_.hand_over_exposed_s, jitter, v.backward ? w.backward : w.forward);
    const auto index = w.next++;
    if (v.backward) release_gradients(stage, replica, v, now, end + jitter);
    engine_.at(end + jitter, [this, stage, replica, v, index, now] { reach(stage, replica, v, index, now); });
  }

  double draw(const MemberNoise& n, int stage, int replica) {
    return replicas_ == 1 ? draw_maximum(n, plan_.members, stream(stage, replica))
                          : draw_member(n, stream(stage, replica));
  }

  static void charge(Worker& w, const TaskCost& c, double elapsed_s, double jitter_s, Stretch& stretch) {
    w.charged.compute += c.busy.total();
    w.charged.tp += c.tp_s;
    w.charged.cp += c.cp_s;
    w.charged.ep += c.ep_s;
    w.charged.dp += c.dp_s;
    w.charged.host += elapsed_s - c.device_s() + c.gap_s;
    w.charged.jitter += jitter_s;
    ActivityTimes did = c.busy;
    did[Activity::collective] += c.tp_s + c.cp_s + c.ep_s + c.dp_s;
    w.activity += did;
    stretch.activity += did;
    stretch.time_s += elapsed_s;
  }

  // The visit's work is done; where replicas meet, the last one lets all go on.
  void reach(int stage, int replica, const Visit& v, size_t index, double began_s) {
    if (!plan_.meet_every_visit || replicas_ == 1) return finish(stage, replica, v, began_s);
    auto& waiting = meetings_[static_cast<size_t>(stage)][index];
    waiting.push_back({replica, engine_.now_s(), began_s});
    if (waiting.size() < static_cast<size_t>(replicas_)) return;
    const auto all = std::move(waiting);
    for (const Waiting& m : all) {
      worker(stage, m.replica).charged.jitter += engine_.now_s() - m.since_s;
      finish(stage, m.replica, v, m.began_s);
    }
  }

  void finish(int stage, int replica, const Visit& v, double began_s) {
    Worker& w = worker(stage, replica);
    const double now = engine_.now_s();
    span(stage, replica, Span::Stream::device, began_s, now, v, v.backward ? "backward" : "forward", 0,
         cost(stage, v).flops);
    w.busy = false;
    w.free_since_s = now;
    pass_on(stage, replica, v);
    // Passing on may have started the next visit already: a turn from forward to backward on the last stage.
    if (!w.busy && w.next == w.visits.size()) end_of_visits(stage, replica);
    start_next(stage, replica);
  }

  // The micro-batch goes on to the next chunk, or turns round on the last.
  void pass_on(int stage, int replica, Visit v) {
    const int last = plan_.stages - 1, now_stage = stage;
    if (!v.backward) {
      if (stage == last && v.chunk == plan_.chunks - 1)
        return arrive(stage, replica, {true, v.chunk, v.micro_batch}, engine_.now_s());
      stage = stage == last ? 0 : stage + 1;
      if (now_stage == last) ++v.chunk;
    } else {
      if (stage == 0 && v.chunk == 0) return;
      stage = stage == 0 ? last : stage - 1;
      if (now_stage == 0) --v.chunk;
    }
    const auto& table = v.backward ? net_.backward_hand_over : net_.forward_hand_over;
    const int load_class = table.empty()
                               ? -1
                               : table[static_cast<size_t>(now_stage)]
                                      [static_cast<size_t>(replica) % table[static_cast<size_t>(now_stage)].size()];
    const double sent = engine_.now_s();
    if (load_class < 0 || stage == now_stage) return arrive(stage, replica, v, sent);
    fabric_bytes_ += plan_.hand_over_bytes;
    engine_.start(load_class, plan_.hand_over_bytes, [this, stage, replica, v, sent, now_stage] {
      span(now_stage, replica, Span::Stream::network, sent, engine_.now_s(), v, "hand-over", plan_.hand_over_bytes);
      arrive(stage, replica, v, sent);
    });
  }

  // Gradients of a chunk travel in buckets while the last backward of the chunk is still running, those of experts
  // among the holders of the same experts.
  void release_gradients(int stage, int replica, const Visit& v, double begin_s, double end_s) {
    if (v.micro_batch != plan_.micro_batches - 1) return;
    const SharedSum& bytes = plan_.gradient_bytes[chunk_index(stage, v.chunk)];
    const int early = static_cast<int>(plan_.gradient_overlap * gradient_buckets + 0.5);
    for (int b = 0; b < gradient_buckets; ++b) {
      const double share = b < early ? static_cast<double>(b + 1) / gradient_buckets : 1;
      for (const Bucket& bucket : {Bucket{class_of(net_.gradient_exchange, stage), bytes.dense / gradient_buckets},
                                   Bucket{class_of(net_.expert_exchange, stage), bytes.experts / gradient_buckets}}) {
        if (bucket.load_class < 0 || bucket.bytes <= 0) continue;
        ++worker(stage, replica).buckets_left;
        engine_.at(begin_s + (end_s - begin_s) * share,
                   [this, stage, replica, bucket] { bucket_ready(stage, replica, bucket); });
      }
    }
  }

  static int class_of(const std::vector<int>& classes, int stage) {
    return classes.empty() ? -1 : classes[static_cast<size_t>(stage)];
  }

  // A bucket leaves when every replica has it (level 2) and the one before has gone.
  void bucket_ready(int stage, int replica, const Bucket& bucket) {
    auto& ready = ready_buckets_[static_cast<size_t>(stage)];
    auto& counts = ready.counts;
    const size_t mine = worker(stage, replica).buckets_made++;
    if (counts.size() <= mine) counts.resize(mine + 1, 0);
    if (++counts[mine] < replicas_) return;
    ready.queue.push_back(bucket);
    send_bucket(stage);
  }

  void send_bucket(int stage) {
    auto& ready = ready_buckets_[static_cast<size_t>(stage)];
    if (ready.transferring || ready.queue.empty()) return;
    const Bucket bucket = ready.queue.front();
    const double bytes = bucket.bytes, sent = engine_.now_s();
    ready.queue.erase(ready.queue.begin());
    ready.transferring = true;
    fabric_bytes_ += bytes;
    engine_.start(bucket.load_class, bytes, [this, stage, bytes, sent] {
      span(stage, 0, Span::Stream::network, sent, engine_.now_s(), {true, 0, 0}, "gradients", bytes);
      auto& r = ready_buckets_[static_cast<size_t>(stage)];
      r.transferring = false;
      for (int k = 0; k < replicas_; ++k) {
        Worker& w = worker(stage, k);
        if (--w.buckets_left == 0 && w.next == w.visits.size() && !w.busy) update(stage, k);
      }
      send_bucket(stage);
    });
  }

  void end_of_visits(int stage, int replica) {
    Worker& w = worker(stage, replica);
    w.backward_end_s = engine_.now_s();
    if (w.buckets_left == 0) update(stage, replica);
  }

  // Gradients are in: wait was data-parallel time. Then the optimizer, and the gather of updated weights.
  void update(int stage, int replica) {
    Worker& w = worker(stage, replica);
    const double now = engine_.now_s();
    w.charged.dp += now - w.backward_end_s;
    w.activity[Activity::collective] += now - w.backward_end_s;
    const double optimizer_s = plan_.optimizer.device_s();
    w.charged.optimizer += optimizer_s;
    w.activity += plan_.optimizer.busy;
    span(stage, replica, Span::Stream::device, now, now + optimizer_s, {true, 0, 0}, "optimizer");
    engine_.at(now + optimizer_s, [this, stage, replica] {
      const double sent = engine_.now_s();
      gather(stage, replica, class_of(net_.weight_gather, stage), &SharedSum::dense, [this, stage, replica, sent] {
        gather(stage, replica, class_of(net_.expert_gather, stage), &SharedSum::experts,
               [this, stage, replica, sent] { done(stage, replica, engine_.now_s() - sent); });
      });
    });
  }

  void gather(int stage, int replica, int load_class, double SharedSum::*part, const std::function<void()>& then) {
    double bytes = 0;
    for (int c = 0; c < plan_.chunks; ++c)
      bytes += plan_.weight_bytes.empty() ? 0 : plan_.weight_bytes[chunk_index(stage, c)].*part;
    bytes *= 1 - plan_.gradient_overlap;  // the rest hides behind the next forward
    if (load_class < 0 || bytes < 1 || replica != 0) return then();
    fabric_bytes_ += bytes;
    engine_.start(load_class, bytes, then);
  }

  void done(int stage, int replica, double gather_s) {
    Worker& w = worker(stage, replica);
    w.charged.dp += gather_s;
    w.activity[Activity::collective] += gather_s;
    w.done_s = engine_.now_s();
    ++finished_;
  }

  StepOutcome outcome() {
    if (finished_ != workers_.size())
      throw SimulationError(std::to_string(workers_.size() - finished_) +
                            " pipeline workers never finished their step");
    StepOutcome out;
    double end = begin_s_;
    for (const Worker& w : workers_) end = std::max(end, w.done_s);
    // Once a step all replicas meet, whatever they did before.
    double jitter = 0;
    if (!plan_.meet_every_visit) {
      double busy = 0, host = 0;
      for (const PassCost& c : plan_.cost)
        busy += c.forward.device_s() + c.backward.device_s(), host += c.forward.host_s + c.backward.host_s;
      const double visits = plan_.micro_batches / static_cast<double>(plan_.stages);
      const MemberNoise n =
          noise_of(plan_.noise, busy * visits, host * visits - plan_.run_ahead_s, plan_.nodes_per_member);
      double worst = 0;
      for (int r = 0; r < replicas_; ++r) worst = r == 0 ? draw(n, 0, r) : std::max(worst, draw(n, 0, r));
      jitter = std::max(worst, -0.5 * (end - begin_s_));
    }
    // The busiest stage tells where the time goes; what it waits for at the end is the others' doing.
    size_t busiest = 0;
    for (size_t i = 0; i < workers_.size(); i += static_cast<size_t>(replicas_))
      if (workers_[i].charged.compute > workers_[busiest].charged.compute) busiest = i;
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

  struct Waiting {
    int replica;
    double since_s, began_s;
  };
  struct Buckets {
    std::vector<int> counts;
    std::vector<Bucket> queue;
    bool transferring = false;
  };

  const StepPlan& plan_;
  const StepNetwork& net_;
  network::Engine& engine_;
  int replicas_;
  double begin_s_;
  std::vector<Span>* spans_;
  std::vector<Worker> workers_;
  std::vector<SplitMix64> streams_;
  std::vector<std::vector<std::vector<Waiting>>> meetings_;
  std::vector<Buckets> ready_buckets_ = std::vector<Buckets>(static_cast<size_t>(plan_.stages));
  size_t finished_ = 0;
  double fabric_bytes_ = 0;
};

}  // namespace

StepOutcome simulate_step(const StepPlan& plan, const StepNetwork& net, network::Engine& engine, int replicas,
                          uint64_t seed, uint64_t step, std::vector<Span>* spans) {
  return StepSimulation(plan, net, engine, replicas, seed, step, spans).run();
}

}  // namespace tw
