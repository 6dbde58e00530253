// The events of one step. Declared here so that its two halves, visits with hand-overs and what data-parallel ranks
// exchange, may stand in files of their own.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "step/hand_over_queue.hpp"
#include "step/launch_queue.hpp"
#include "step/step_model.hpp"

namespace tw {

// One replica of one stage.
struct Worker {
  size_t next = 0;  // visit that has not begun
  size_t done = 0;  // visits that are done
  bool busy = false, ended = false;
  double free_since_s = 0;   // the device has been idle from here on
  double host_free_s = 0;    // the host has issued everything before
  double first_begin_s = 0;  // of the first visit
  LaunchQueue launched;
  std::vector<double> input_s;  // per input (see input_of): when it arrived; < 0 = not yet
  std::vector<double> sent_s;   // and when the sender had it ready
  std::vector<int> backwards;   // done, by slot
  int weights = 1;              // chunks whose weights are there
  bool first_here = true;       // those of the first chunk, which come while its first visit runs
  std::function<void()> held;   // the end of that visit, when it waits for them
  size_t batch = 0;             // at the head of the hand-over queue
  size_t sides_left = 0;        // of that batch; 0: not begun
  size_t buckets_left = 0, buckets_made = 0;
  double copies_s = 0;  // out of buckets that arrived while kernels ran
  double copied_s = 0;  // the copies are done then
  double backward_end_s = 0;
  Breakdown charged;
  ActivityTimes activity;
  Stretch forward, backward;
  std::vector<IssuedWork> intervals;
  double done_s = 0;
  // The visit under way: its exchanges that the engine plays, and how much later than alone it is by now.
  const TaskCost* doing = nullptr;
  double began_s = 0, late_s = 0;
  std::vector<char> arrived;  // of the exchanges
  size_t started = 0, left = 0;
  bool next_waits = false;               // the next exchange waits for one before it,
  std::function<void(Exchange)> ending;  // and the end of the visit for the last, which is told
};

struct Gradients {
  Exchange what = Exchange::gradient_reduce;
  double bytes = 0, stretch = 1;
};

// A stream per member, so that level 2 does not depend on the order of events.
inline SplitMix64 member_stream(uint64_t seed, uint64_t step, int stage, int replica) {
  return random_stream(seed, "step noise",
                       (step << 24U) ^ (static_cast<uint64_t>(stage) << 16U) ^ static_cast<uint64_t>(replica));
}

// Of what is late at a step's end, where it does not matter how many draws came before: plans meet the same stalls.
inline SplitMix64 end_stream(uint64_t seed, uint64_t step, int replica) {
  return random_stream(seed, "step end", (step << 16U) ^ static_cast<uint64_t>(replica));
}

class StepSimulation {
 public:
  StepSimulation(const StepPlan& plan, const StepNetwork& net, network::Engine& engine, int replicas, uint64_t seed,
                 uint64_t step, std::vector<Span>* spans)
      : plan_(plan),
        net_(net),
        engine_(engine),
        replicas_(replicas),
        begin_s_(engine.now_s()),
        seed_(seed),
        step_(step),
        spans_(spans),
        placement_(rule_of(plan.schedule, plan.chunks).placement(plan.stages, plan.chunks)) {
    const auto stages = static_cast<size_t>(plan.stages), each = static_cast<size_t>(replicas);
    workers_.resize(stages * each);
    meetings_.resize(stages);
    const auto inputs = static_cast<size_t>(2 * placement_.slots * plan.micro_batches);
    for (int s = 0; s < plan.stages; ++s) {
      visits_.push_back(rule_of(plan.schedule, plan.chunks).visits(s, plan.stages, plan.chunks, plan.micro_batches));
      meetings_[static_cast<size_t>(s)].resize(visits_.back().size() + 1);
      for (int r = 0; r < replicas; ++r) {
        Worker& w = worker(s, r);
        w.input_s.assign(inputs, -1);
        w.sent_s.assign(inputs, -1);
        w.backwards.assign(static_cast<size_t>(placement_.slots), 0);
        w.free_since_s = begin_s_;
        w.host_free_s = begin_s_ - plan.host_lead_s;
        if (plan.meet_every_visit) streams_.push_back(member_stream(seed, step, s, r));
      }
    }
    if (plan.queued_hand_over && plan.stages > 1) {
      queues_ = hand_over_queues(placement_, visits_, plan.micro_batches, single_chunk(plan.schedule, plan.chunks));
      sides_here_.assign(queues_.transfers.size() * each, 0);
    }
  }

  StepOutcome run();

 private:
  size_t at(int stage, int replica) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(replicas_) + static_cast<size_t>(replica);
  }
  Worker& worker(int stage, int replica) { return workers_[at(stage, replica)]; }
  const std::vector<Visit>& visits(int stage) const { return visits_[static_cast<size_t>(stage)]; }
  size_t input_of(const Visit& v) const;
  const PassCost& pass(int stage, const Visit& v) const {
    return plan_.cost[static_cast<size_t>(v.chunk) * static_cast<size_t>(plan_.stages) + static_cast<size_t>(stage)];
  }
  // The last visit that gives gradients of weights of its chunk, or every one where they leave each time.
  bool releases(const Worker& w, const Visit& v) const;
  const TaskCost& cost(int stage, const Worker& w, const Visit& v) const;
  void span(int stage, int replica, Span::Stream s, double begin, double end, const Visit& v, const char* what,
            double bytes = 0, double flops = 0);

  void arrive(int stage, int replica, const Visit& v, double sent_s);

  // The next visit, when its input is there and, for the first forward of a chunk, its weights.
  void start_next(int stage, int replica);

  void compute(int stage, int replica, double now);

  // Exchanges of a visit, one after the other; what one takes longer than alone makes later all that waits for it.
  void next_exchange(int stage, int replica);
  void begin_exchange(int stage, int replica, size_t piece);
  void charge_exchange(Worker& w, Exchange what, double late_s, bool backward);
  void exchange_done(int stage, int replica, size_t piece, double since_s);
  // Calls `what` at `due_s` of a visit that is not late, later by as much as it is late then. `end`: not before all
  // exchanges of the visit are done.
  void in_visit(int stage, int replica, size_t index, double due_s, bool end, std::function<void()> what);

  double draw(const MemberNoise& n, int stage, int replica);
  double draw_at_end(const PipelineWork& at_end);

  static void charge(Worker& w, const TaskCost& c, double elapsed_s, double jitter_s, Stretch& stretch);

  // The visit's work is done; where replicas meet, the last one lets all go on.
  void reach(int stage, int replica, size_t index, double began_s, double flops);

  void finish(int stage, int replica, size_t index, double began_s, double flops);

  // Updated weights arrive chunk by chunk while the first forwards run; those of the first chunk come with its visit.
  void gather_ahead(int stage);
  void gather_next(int stage, int slot);

  // An exchange of the stage's data-parallel ranks: inside an NVLink domain its time is known, else its links decide.
  void travel(int stage, Exchange what, double bytes, double stretch, std::function<void()> done);
  // One after the other.
  void travel_both(int stage, Exchange dense, Exchange experts, const SharedSum& bytes, std::function<void()> done);

  // The micro-batch goes on to the next chunk, or turns round on the last. In a queue the transfer waits for its turn.
  void pass_on(int stage, int replica, const Visit& v);

  int hand_over_class(int from, int to, int replica) const;

  // Begins the sends and receives at the head of a stage's queue; a transfer moves when both sides are there.
  void go_on(int stage, int replica);

  void move(size_t t, int replica);

  // Gradients of a chunk travel in buckets as soon as they are there.
  void release_gradients(int stage, int replica, size_t index, double begin_s, double end_s);

  static int class_of(const std::vector<int>& classes, int stage) {
    return classes.empty() ? -1 : classes[static_cast<size_t>(stage)];
  }

  // A bucket leaves when every replica has it (level 2) and the one before has gone.
  void bucket_ready(int stage, int replica, const Gradients& bucket);

  void send_bucket(int stage);

  void end_of_visits(int stage, int replica);

  // Gradients are in: wait was data-parallel time. Then the optimizer, and the gather of updated weights.
  void update(int stage, int replica);

  void done(int stage, int replica, double gather_s);

  IssuedWork wait_at_end(int stage, double end_s);
  StepOutcome outcome();

  struct Waiting {
    int replica;
    double since_s, began_s;
  };
  struct Buckets {
    std::vector<int> counts;
    std::vector<Gradients> queue;
    size_t first = 0;
    bool transferring = false;
  };

  const StepPlan& plan_;
  const StepNetwork& net_;
  network::Engine& engine_;
  int replicas_;
  double begin_s_;
  uint64_t seed_, step_;
  std::vector<Span>* spans_;
  ChunkPlacement placement_;
  std::vector<std::vector<Visit>> visits_;  // [stage]
  HandOverQueues queues_;
  std::vector<int> sides_here_;  // [transfer][replica]: sides that have come to it
  std::vector<Worker> workers_;
  std::vector<SplitMix64> streams_;
  std::vector<std::vector<std::vector<Waiting>>> meetings_;
  std::vector<Buckets> ready_buckets_ = std::vector<Buckets>(static_cast<size_t>(plan_.stages));
  // Who has come to an exchange inside a visit, and when: (class, visit, piece).
  std::map<std::array<size_t, 3>, std::vector<std::pair<int, double>>> come_to_;
  size_t finished_ = 0;
  double fabric_bytes_ = 0;
};

}  // namespace tw
