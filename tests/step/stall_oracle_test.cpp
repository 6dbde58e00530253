// Stalls of hosts in a pipeline, against a simulation that knows nothing of leads and draws no maximum: every host and
// every device of every replica on a line of its own, kernels in short pieces, stalls wherever they fall on a host.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "step/hand_over_queue.hpp"
#include "step/launch_queue.hpp"
#include "step/step_model.hpp"

using namespace tw;

namespace {

constexpr double kStall_s = 0.05, kQueue = 1024;

// A pipeline whose hosts issue in half the time of forward and a sixth of that of backward, much as GPT-3 in FP8.
StepPlan pipeline_of(int pp, int vp, int micro_batches, bool meet) {
  StepPlan plan;
  plan.stages = pp;
  plan.chunks = vp;
  plan.micro_batches = micro_batches;
  plan.members = 4;
  plan.nodes_per_member = 4;
  plan.meet_every_visit = meet;
  plan.noise.stall_mean = seconds(kStall_s);
  PassCost cost;
  cost.forward.busy[Activity::gemm_fp8] = 0.048 / vp;
  cost.forward.host_s = 0.024 / vp;
  cost.forward.launches = 220.0 / vp;
  cost.backward.busy[Activity::gemm_fp8] = 0.086 / vp;
  cost.backward.host_s = 0.014 / vp;
  cost.backward.launches = 290.0 / vp;
  plan.cost.assign(static_cast<size_t>(pp * vp), cost);
  return plan;
}

// A host, whose stalls come as a Poisson process of its own time and last exponentially.
struct Host {
  double now_s = 0, next_s = 1e300, rate = 0;
  SplitMix64 stream = random_stream(1, "oracle");

  double exponential(double mean) { return -mean * std::log1p(-uniform(stream)); }
  void begin(double per_s, uint64_t index) {
    rate = per_s;
    stream = random_stream(17, "oracle", index);
    if (rate > 0) next_s = exponential(1 / rate);
  }
  // Stands still from when the stall came.
  double stall() {
    const double end_s = next_s + exponential(kStall_s);
    next_s = end_s + exponential(1 / rate);
    return end_s;
  }
  void wait(double until_s) {
    now_s = std::max(now_s, until_s);
    while (next_s < now_s) now_s = std::max(now_s, stall());
  }
  void work(double length_s) {
    while (next_s < now_s + length_s) {
      length_s -= std::max(0.0, next_s - now_s);
      now_s = stall();
    }
    now_s += length_s;
  }
};

// Kernels of one worker, in pieces, and what its host has launched.
struct Line {
  Host host;
  double device_s = 0;
  std::vector<double> launched, done_s;
  size_t running = 0;

  void begin(double step_s) {
    host.wait(step_s);
    device_s = step_s;
    launched.clear(), done_s.clear(), running = 0;
  }
  void piece(double kernels_s, double issue_s, double launches) {
    launched.push_back((launched.empty() ? 0 : launched.back()) + launches);
    const double gone = launched.back() - kQueue;
    while (running < done_s.size() && launched[running] <= gone) ++running;
    if (running > 0) {  // the last launch of this piece waits for the kernel so many before
      const double share = (gone - launched[running - 1]) / (launched[running] - launched[running - 1]);
      const double next_s = running < done_s.size() ? done_s[running] : done_s[running - 1];
      host.wait(done_s[running - 1] + share * (next_s - done_s[running - 1]) - issue_s);
    }
    const double first_s = host.now_s;
    host.work(issue_s);
    device_s = std::max(std::max(device_s, first_s) + kernels_s, host.now_s);
    done_s.push_back(device_s);
  }
};

class Oracle {
 public:
  Oracle(const StepPlan& plan, double per_hour)
      : plan_(plan), placement_(rule_of(plan.schedule, plan.chunks).placement(plan.stages, plan.chunks)) {
    const size_t workers = static_cast<size_t>(plan.stages * plan.members);
    lines_.resize(workers);
    const double per_s = per_hour / 3600 * plan.nodes_per_member / plan.stages;
    for (size_t i = 0; i < workers; ++i) lines_[i].host.begin(per_s, i);
    for (int s = 0; s < plan.stages; ++s)
      visits_.push_back(rule_of(plan.schedule, plan.chunks).visits(s, plan.stages, plan.chunks, plan.micro_batches));
  }

  double mean_step_s(int steps) {
    double begin_s = step(step(0));
    const double first_s = begin_s;
    for (int i = 0; i < steps; ++i) begin_s = step(begin_s);
    return (begin_s - first_s) / steps;
  }

 private:
  size_t input(int stage, const Visit& v, int replica) const {
    const int each = 2 * placement_.slots * plan_.micro_batches;
    const int at = (v.chunk * plan_.micro_batches + v.micro_batch) * 2 + (v.backward ? 1 : 0);
    return static_cast<size_t>((stage * each + at) * plan_.members + replica);
  }

  // All replicas' visit, where all have their input.
  bool visit(int stage, const Visit& v) {
    for (int r = 0; r < plan_.members; ++r)
      if (inputs_[input(stage, v, r)] < 0) return false;
    const PassCost& cost = plan_.cost[static_cast<size_t>(v.chunk * plan_.stages + stage)];
    const TaskCost& c = v.backward ? cost.backward : cost.forward;
    const int pieces = std::max(1, static_cast<int>(std::ceil(c.device_s() / 0.004)));
    double all_s = 0;
    for (int r = 0; r < plan_.members; ++r) {
      Line& line = lines_[static_cast<size_t>(stage * plan_.members + r)];
      line.device_s = std::max(line.device_s, inputs_[input(stage, v, r)]);
      for (int k = 0; k < pieces; ++k) line.piece(c.device_s() / pieces, c.host_s / pieces, c.launches / pieces);
      all_s = std::max(all_s, line.device_s);
    }
    int to = 0;
    Visit next;
    const bool goes_on = next_visit(placement_, plan_.micro_batches, stage, v, to, next);
    for (int r = 0; r < plan_.members; ++r) {
      Line& line = lines_[static_cast<size_t>(stage * plan_.members + r)];
      if (plan_.meet_every_visit) line.device_s = line.done_s.back() = all_s;
      if (goes_on) inputs_[input(to, next, r)] = line.device_s;
    }
    return true;
  }

  double step(double begin_s) {
    inputs_.assign(static_cast<size_t>(2 * placement_.slots * plan_.micro_batches * plan_.stages * plan_.members), -1);
    for (int m = 0; m < plan_.micro_batches; ++m)
      for (int r = 0; r < plan_.members; ++r) inputs_[input(0, {false, 0, m}, r)] = begin_s;
    for (Line& line : lines_) line.begin(begin_s);
    std::vector<size_t> next(static_cast<size_t>(plan_.stages), 0);
    for (bool any = true; any;) {
      any = false;
      for (int s = 0; s < plan_.stages; ++s) {
        const auto& list = visits_[static_cast<size_t>(s)];
        for (size_t& at = next[static_cast<size_t>(s)]; at < list.size() && visit(s, list[at]); ++at) any = true;
      }
    }
    double end_s = begin_s;
    for (const Line& line : lines_) end_s = std::max(end_s, line.device_s);
    return end_s;
  }

  const StepPlan& plan_;
  ChunkPlacement placement_;
  std::vector<std::vector<Visit>> visits_;
  std::vector<Line> lines_;
  std::vector<double> inputs_;
};

double simulated_s(StepPlan plan, double per_hour, int steps) {
  plan.noise.stalls_per_hour = per_hour;
  double mean = 0;
  for (int i = 0; i < steps; ++i) {
    const StepNetwork net;
    const auto engine = network::fluid_engine({}, {});
    mean += simulate_step(plan, net, *engine, 1, 5, static_cast<uint64_t>(i)).time_s / steps;
  }
  return mean;
}

}  // namespace

TEST_CASE("stalls in a pipeline cost what they cost hosts and devices that are simulated one by one") {
  constexpr int kSteps = 2500;
  constexpr double kPerHour = 1500;
  for (const bool meet : {false, true}) {
    std::vector<double> added, right;
    for (const int vp : {1, 2, 4}) {
      CAPTURE(meet, vp);
      const StepPlan plan = pipeline_of(4, vp, 16, meet);
      const double quiet_s = simulated_s(plan, 0, 1);
      CHECK(Oracle(plan, 0).mean_step_s(1) == Approx(quiet_s).epsilon(2e-3));
      added.push_back(simulated_s(plan, kPerHour, kSteps) - quiet_s);
      right.push_back(Oracle(plan, kPerHour).mean_step_s(kSteps) - quiet_s);
      // Where replicas meet at the end alone, what is late is a closed form, which knows the wait for a first input but
      // not that later inputs come early.
      CHECK(added.back() == Approx(right.back()).epsilon(meet ? 0.15 : 0.25));
    }
    // Long visits hide more: a stage waits longer for its first input, whatever its host does.
    CHECK(right.back() > 1.3 * right.front());
    CHECK(added.back() / added.front() == Approx(right.back() / right.front()).epsilon(0.2));
  }
}

// By hand. Hosts that issue at once wait for their devices at a step's end, so that stalls of rate r and mean length m
// that are under way as the next begins (r m of them, each with m to go) are all that is late: on the first stage by m,
// on the second by what outlasts the f until its first input, m exp(-f / m). The devices' work leaves no gap that could
// take it back, and f is a forward of one chunk: more chunks, of shorter visits, hide less.
TEST_CASE("a stall counts on the second stage as far as it outlasts a forward, which chunks shorten: by hand") {
  constexpr double kForward_s = 0.1, kPerHour = 1800;
  constexpr int kSteps = 40000;
  std::vector<double> hands;
  for (const int vp : {1, 4}) {
    CAPTURE(vp);
    StepPlan plan = pipeline_of(2, vp, 4, false);
    plan.members = 1;
    plan.nodes_per_member = 2;
    for (PassCost& c : plan.cost)
      for (TaskCost* t : {&c.forward, &c.backward}) {
        t->busy[Activity::gemm_fp8] = kForward_s / vp;
        t->host_s = t->launches = 0;
      }
    const double quiet_s = simulated_s(plan, 0, 1);
    hands.push_back(kPerHour / 3600 * kStall_s * kStall_s * (1 + std::exp(-kForward_s / vp / kStall_s)));
    CHECK(simulated_s(plan, kPerHour, kSteps) - quiet_s == Approx(hands.back()).epsilon(0.1));
    CHECK(Oracle(plan, kPerHour).mean_step_s(kSteps) - quiet_s == Approx(hands.back()).epsilon(0.1));
  }
  CHECK(hands.back() > 1.4 * hands.front());
}

TEST_CASE("a launch queue holds so many kernels, whichever visits they belong to") {
  LaunchQueue queue;
  CHECK(queue.full_until_s(1000, 0, 1) < -1e9);
  // 1,200 launched, 176 done: of the first thousand, a millisecond each.
  CHECK(queue.full_until_s(200, 1, 2) == Approx(0.176));
  // A visit without launches holds nothing up. 1,976 done of 3,000 launched: 776 of the last 1,800.
  CHECK(queue.full_until_s(0, 2, 3) < -1e9);
  CHECK(queue.full_until_s(1800, 3, 12) == Approx(3 + 9 * (3000 - 1024 - 1200) / 1800.0));
  // A visit that ends late.
  LaunchQueue late;
  late.full_until_s(1000, 0, 1);
  late.ended(5);
  CHECK(late.full_until_s(200, 5, 6) == Approx(4.176));
  // Many short ones: the one that is done is a thousand back.
  LaunchQueue many;
  for (int i = 0; i < 5000; ++i) {
    const double until_s = many.full_until_s(2, i, i + 1);
    if (i >= 512) REQUIRE(until_s == Approx(i + 1 - 512));
  }
}
