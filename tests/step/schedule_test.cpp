#include "step/schedule.hpp"

#include <catch2/catch.hpp>
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
  plan.cost.assign(static_cast<size_t>(pp * vp), cost);
  plan.gradient_bytes.assign(plan.cost.size(), SharedSum{});
  return plan;
}

StepOutcome run(const StepPlan& plan, int replicas = 1) {
  const StepNetwork net;
  const auto engine = network::isolated_engine({}, {});
  return simulate_step(plan, net, *engine, replicas, 1, 0);
}

}  // namespace

TEST_CASE("every stage visits every micro-batch and chunk once forward and once backward") {
  const auto [pp, vp, micro_batches] = GENERATE(std::tuple{1, 1, 3}, std::tuple{4, 1, 8}, std::tuple{4, 5, 64},
                                                std::tuple{8, 5, 64}, std::tuple{4, 1, 2});
  for (int stage = 0; stage < pp; ++stage) {
    std::set<std::tuple<bool, int, int>> seen;
    std::set<std::pair<int, int>> forward;
    for (const Visit& v : visits_of_stage(Schedule::one_f_one_b, stage, pp, vp, micro_batches)) {
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

TEST_CASE("GPipe and 1F1B differ in memory, not in time") {
  const StepOutcome gpipe = run(balanced(4, 1, 16, Schedule::gpipe));
  const StepOutcome one = run(balanced(4, 1, 16, Schedule::one_f_one_b));
  CHECK(gpipe.time_s == Approx(one.time_s).epsilon(1e-12));
  CHECK(micro_batches_in_flight(Schedule::gpipe, 0, 4, 1, 16) == 16);
  CHECK(micro_batches_in_flight(Schedule::one_f_one_b, 0, 4, 1, 16) == 4);
  CHECK(micro_batches_in_flight(Schedule::one_f_one_b, 3, 4, 1, 16) == 1);
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
  for (uint64_t i = 0; i < 3000; ++i) {
    const auto engine = network::isolated_engine({}, {});
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
  // The noise adds about 0.5 s to 6 s; its Monte-Carlo error over 3,000 steps is below 0.01 s in the mean.
  CHECK(mean(level1) > 6.2);
  CHECK(mean(level1) == Approx(mean(level2)).margin(0.02));
  CHECK(p95(level1) == Approx(p95(level2)).margin(0.06));
}
