#include "step/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "step/step_model.hpp"

using namespace tw;

namespace {

// A balanced pipeline: every forward 1 s, every backward 2 s, no traffic, no host.
StepPlan balanced(int pp, int vp, int micro_batches, Schedule schedule) {
  StepPlan plan;
  plan.stages = pp;
  plan.chunks = vp;
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  PassCost cost;
  cost.forward.busy[Activity::gemm_bf16] = 1.0 / vp;
  cost.backward.busy[Activity::gemm_bf16] = 2.0 / vp;
  cost.input.busy[Activity::gemm_bf16] = cost.weight.busy[Activity::gemm_bf16] = 1.0 / vp;
  plan.cost.assign(static_cast<size_t>(pp * rule_of(schedule, vp).placement(pp, vp).slots), cost);
  return plan;
}

StepOutcome run(const StepPlan& plan, int replicas = 1) {
  const StepNetwork net;
  const auto engine = network::fluid_engine({}, {});
  return simulate_step(plan, net, *engine, replicas, 1, 0);
}

// Most forwards of a stage of four whose backward is not done, of 16 micro-batches.
int in_flight(Schedule schedule, int stage) {
  int now = 0, most = 0;
  for (const Visit& v : rule_of(schedule, 1).visits(stage, 4, 1, 16)) {
    if (v.part != Part::input) now += v.backward ? -1 : 1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("every stage visits every micro-batch and chunk once forward and once backward") {
  const auto [pp, vp, micro_batches] = GENERATE(std::tuple{1, 1, 3}, std::tuple{4, 1, 8}, std::tuple{4, 5, 64},
                                                std::tuple{8, 5, 64}, std::tuple{4, 1, 2});
  for (int stage = 0; stage < pp; ++stage) {
    std::set<std::tuple<bool, int, int>> seen;
    std::set<std::pair<int, int>> forward;
    for (const Visit& v : rule_of(Schedule::one_f_one_b, vp).visits(stage, pp, vp, micro_batches)) {
      CHECK(seen.insert({v.backward, v.chunk, v.micro_batch}).second);
      if (!v.backward) forward.insert({v.chunk, v.micro_batch});
      if (v.backward) CHECK(forward.count({v.chunk, v.micro_batch}) == 1);
    }
    CHECK(seen.size() == static_cast<size_t>(2 * vp * micro_batches));
  }
}

TEST_CASE("the bubble of a balanced pipeline is (pp - 1) / (vp * ga) of the work, from events") {
  const auto [pp, vp, ga] = GENERATE(std::tuple{2, 1, 4}, std::tuple{4, 1, 8}, std::tuple{4, 1, 16},
                                     std::tuple{4, 5, 64}, std::tuple{8, 5, 64}, std::tuple{4, 2, 8});
  const StepOutcome step = run(balanced(pp, vp, ga, Schedule::one_f_one_b));
  const double work = 3.0 * ga;
  CHECK(step.time_s == Approx(work * (1 + (pp - 1.0) / (vp * ga))).epsilon(1e-12));
  CHECK(step.breakdown.compute == Approx(work).epsilon(1e-12));
  CHECK(step.breakdown.bubble == Approx(work * (pp - 1.0) / (vp * ga)).epsilon(1e-12));
}

TEST_CASE("every schedule visits each of its chunks once forward and once backward, whole or in halves") {
  const auto [schedule, pp, vp, micro_batches] = GENERATE(
      std::tuple{Schedule::gpipe, 4, 1, 8}, std::tuple{Schedule::zb_h1, 4, 1, 8}, std::tuple{Schedule::zb_h1, 8, 1, 5},
      std::tuple{Schedule::interleaved_zero_bubble, 4, 2, 8}, std::tuple{Schedule::interleaved_zero_bubble, 4, 3, 16},
      std::tuple{Schedule::zbv, 4, 2, 8}, std::tuple{Schedule::zbv, 4, 2, 3}, std::tuple{Schedule::dualpipev, 4, 2, 8},
      std::tuple{Schedule::dualpipev, 4, 2, 20}, std::tuple{Schedule::dualpipe, 8, 1, 16},
      std::tuple{Schedule::dualpipe, 4, 1, 24});
  const ScheduleRule& rule = rule_of(schedule, vp);
  const ChunkPlacement placement = rule.placement(pp, vp);
  const int ways = static_cast<int>(placement.way.size());
  for (int stage = 0; stage < pp; ++stage) {
    std::map<std::pair<int, int>, int> forward, input, weight;
    for (const Visit& v : rule.visits(stage, pp, vp, micro_batches)) {
      const std::pair<int, int> key{v.chunk, v.micro_batch};
      if (!v.backward) {
        CHECK(++forward[key] == 1);
        continue;
      }
      CHECK(forward[key] == 1);
      if (v.part != Part::weight) CHECK(++input[key] == 1);
      CHECK(input[key] == 1);
      if (v.part != Part::input) CHECK(++weight[key] == 1);
    }
    CHECK(forward.size() == static_cast<size_t>(placement.slots * micro_batches / ways));
    CHECK(input.size() == forward.size());
    CHECK(weight.size() == forward.size());
  }
  // It comes to its end, however sends and receives are issued.
  StepPlan plan = balanced(pp, vp, micro_batches, schedule);
  const double freely = run(plan).time_s;
  plan.queued_hand_over = true;
  CHECK(run(plan).time_s >= freely - 1e-9);
  CHECK(run(plan).breakdown.total() == Approx(run(plan).time_s).epsilon(1e-9));
}

TEST_CASE("zero-bubble schedules fill what 1F1B leaves empty") {
  const double plain = run(balanced(4, 1, 8, Schedule::one_f_one_b)).time_s;
  const double h1 = run(balanced(4, 1, 8, Schedule::zb_h1)).time_s;
  CHECK(plain == Approx(24 + 9));
  CHECK(h1 == Approx(24 + 3));  // (pp - 1) (F + B - W), Qi et al. 2023, table 2
  const double v = run(balanced(4, 2, 8, Schedule::zbv)).time_s;
  CHECK(v < h1);
  CHECK(v >= 24);
  // No more activations than 1F1B's first stage.
  for (int stage = 0; stage < 4; ++stage) CHECK(in_flight(Schedule::zb_h1, stage) <= 4);
  CHECK(run(balanced(8, 1, 32, Schedule::dualpipe)).time_s < 1.2 * 3 * 32);
}

TEST_CASE("one queue of sends and receives holds interleaved 1F1B up, not plain 1F1B") {
  StepPlan plain = balanced(4, 1, 8, Schedule::one_f_one_b), chunks = balanced(4, 2, 8, Schedule::one_f_one_b);
  const double plain_s = run(plain).time_s, chunks_s = run(chunks).time_s;
  CHECK(chunks_s < plain_s);
  plain.queued_hand_over = chunks.queued_hand_over = true;
  CHECK(run(plain).time_s == Approx(plain_s).epsilon(1e-9));
  CHECK(run(chunks).time_s > 1.02 * chunks_s);
}

TEST_CASE("stalls of the host obey one law in BF16 and FP8; beside long visits they do not grow with the chunks") {
  const auto added = [](int vp, bool meet, double stalls) {
    // A launch queue holds much less than a step: the host's lead is the same over most of it, whatever the bubble.
    StepPlan plan = balanced(4, vp, 64, Schedule::one_f_one_b);
    for (PassCost& c : plan.cost) {
      for (TaskCost* t : {&c.forward, &c.backward}) t->busy = t->busy.scaled(0.05);
      c.forward.host_s = 0.02 / vp, c.backward.host_s = 0.04 / vp;
      c.forward.launches = c.backward.launches = 1500.0 / vp;
    }
    plan.members = 4;  // few enough that stalls seldom meet in one visit, where the longer one hides the other
    plan.nodes_per_member = 2;
    plan.meet_every_visit = meet;
    plan.noise.stall_mean = seconds(0.05);
    double sum = 0;
    for (const double rate : {0.0, stalls}) {
      plan.noise.stalls_per_hour = rate;
      double mean = 0;
      for (uint64_t i = 0; i < 500; ++i) {
        const StepNetwork net;
        const auto engine = network::fluid_engine({}, {});
        mean += simulate_step(plan, net, *engine, 1, 3, i).time_s / 500;
      }
      sum = mean - sum;
    }
    return sum;
  };
  const double one = added(1, true, 483), four = added(4, true, 483);
  CHECK(one > 0);
  CHECK(four == Approx(one).epsilon(0.2));
  CHECK(added(1, false, 483) > 0.2 * one);
  CHECK(added(1, false, 483) <= 1.2 * one);
}

// By hand: hosts that issue at once are late only where they wait for their devices at a step's end. A stall of mean
// length m that begins in the time before outlasts it with m in the mean, and a first input that comes f after it with
// m exp(-f / m). Stage s gets its first input after s forwards; a quarter of a member's nodes are its own.
TEST_CASE("a stall at a step's end counts on each stage where it outlasts the wait for the first input") {
  constexpr double kNodes = 4, kStall_s = 0.7;
  for (const int vp : {1, 3}) {
    StepPlan plan = balanced(4, vp, 16, Schedule::one_f_one_b);
    const StepOutcome quiet = run(plan);
    plan.noise.stall_mean = seconds(kStall_s);
    plan.noise.stalls_per_hour = 3600;
    double counted = 0;
    for (int s = 0; s < 4; ++s) counted += kNodes / 4 * kStall_s * std::exp(-s * 1.0 / vp / kStall_s);
    CHECK(noise_of(plan.noise, quiet.work, kNodes).stalls == Approx(counted).epsilon(1e-6));
  }
}

TEST_CASE("stages of several chunks gather their weights together, those of one when their input comes") {
  constexpr double kGather_s = 0.5, kLink_Bps = 1e9;
  for (const int vp : {1, 2}) {
    StepPlan plan = balanced(2, vp, 4, Schedule::one_f_one_b);
    const double quiet_s = run(plan).time_s;
    for (PassCost& cost : plan.cost) {
      cost.updated = {kGather_s * kLink_Bps, 0};
      cost.first_forward = cost.forward;
      cost.first_forward.dp_s = kGather_s;
      cost.first_forward.flops = 1;
    }
    StepNetwork net;
    net.links = {{"first", kLink_Bps}, {"last", kLink_Bps}};
    net.classes = {{"of the first", {{0, 1}}, 0}, {"of the last", {{1, 1}}, 0}};
    net.weight_gather = {0, 1};
    const auto engine = network::fluid_engine(net.links, net.classes);
    const double step_s = simulate_step(plan, net, *engine, 1, 1, 0).time_s;
    CHECK(step_s - quiet_s == Approx(vp == 1 ? 2 * kGather_s : kGather_s).epsilon(1e-9));
  }
}

TEST_CASE("GPipe and 1F1B differ in memory, not in time") {
  const StepOutcome gpipe = run(balanced(4, 1, 16, Schedule::gpipe));
  const StepOutcome one = run(balanced(4, 1, 16, Schedule::one_f_one_b));
  CHECK(gpipe.time_s == Approx(one.time_s).epsilon(1e-12));
  CHECK(in_flight(Schedule::gpipe, 0) == 16);
  CHECK(in_flight(Schedule::one_f_one_b, 0) == 4);
  CHECK(in_flight(Schedule::one_f_one_b, 3) == 1);
}

TEST_CASE("the parts of the breakdown add up to the step") {
  StepPlan plan = balanced(4, 5, 64, Schedule::one_f_one_b);
  plan.fixed_s = 0.25;
  plan.noise.device_sigma = 0.05;
  plan.members = 16;
  plan.meet_every_visit = GENERATE(true, false);
  plan.cost[3].forward.host_s = 0.5;
  plan.cost[3].forward.tp_s = 0.1;
  const StepOutcome step = run(plan);
  CHECK(step.breakdown.total() == Approx(step.time_s).epsilon(1e-9));
}

TEST_CASE("a host that issues slower than the device works sets the pace") {
  StepPlan plan = balanced(1, 1, 4, Schedule::one_f_one_b);
  plan.cost[0].forward.host_s = 2.5;
  plan.cost[0].backward.host_s = 2.5;
  const StepOutcome step = run(plan);
  CHECK(step.time_s == Approx(4 * (2.5 + 2.5)).epsilon(1e-12));
  CHECK(step.breakdown.host == Approx(4 * (5 - 3)).epsilon(1e-12));
  // Slow in forward only, it runs ahead during backward: just the first forward waits.
  plan.cost[0].forward.host_s = 1.5;
  plan.cost[0].backward.host_s = 0;
  CHECK(run(plan).time_s == Approx(4 * (1 + 2) + 0.5).epsilon(1e-12));
}

TEST_CASE("one representative and every replica on its own give the same step without noise") {
  const auto [pp, vp, ga] = GENERATE(std::tuple{1, 1, 4}, std::tuple{4, 1, 8}, std::tuple{4, 5, 64});
  StepPlan plan = balanced(pp, vp, ga, Schedule::one_f_one_b);
  plan.members = 6;
  plan.meet_every_visit = GENERATE(true, false);
  CHECK(run(plan, 6).time_s == Approx(run(plan, 1).time_s).epsilon(1e-9));
}

TEST_CASE("with noise the two levels agree in mean and 95th percentile") {
  StepPlan plan = balanced(1, 1, 2, Schedule::one_f_one_b);
  plan.members = 16;
  plan.meet_every_visit = true;
  plan.noise.device_sigma = 0.05;
  plan.noise.stalls_per_hour = 60;
  plan.noise.stall_mean = seconds(0.4);
  const StepNetwork net;
  std::vector<double> level1, level2;
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto engine = network::fluid_engine({}, {});
    level1.push_back(simulate_step(plan, net, *engine, 1, 7, i).time_s);
    level2.push_back(simulate_step(plan, net, *engine, 16, 11, i).time_s);
  }
  const auto mean = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  };
  const auto p95 = [](std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() * 95 / 100];
  };
  // The noise adds about 0.5 s to 6 s; its Monte-Carlo error over 20,000 steps is below 0.01 s in the mean.
  CHECK(mean(level1) > 6.2);
  CHECK(mean(level1) == Approx(mean(level2)).margin(0.02));
  CHECK(p95(level1) == Approx(p95(level2)).margin(0.06));
}
