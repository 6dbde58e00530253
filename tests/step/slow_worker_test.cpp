// Workers that need longer for their work than the others: rings and pipelines wait for them, by hand.
#include <catch2/catch.hpp>
#include <map>

#include "core/random.hpp"
#include "network/engine.hpp"
#include "step/step_model.hpp"

using namespace tw;

namespace {

constexpr double kRing_Bps = 50e9;

StepPlan even_plan(int stages, int micro_batches, double forward_s, double backward_s) {
  StepPlan plan;
  plan.stages = stages;
  plan.micro_batches = micro_batches;
  PassCost cost;
  cost.forward.busy[Activity::gemm_bf16] = forward_s;
  cost.backward.busy[Activity::gemm_bf16] = backward_s;
  plan.cost.assign(static_cast<size_t>(stages), cost);
  return plan;
}

double played_s(const StepPlan& plan, const StepNetwork& net, int replicas) {
  const auto engine = network::fluid_engine(net.links, net.classes);
  return simulate_step(plan, net, *engine, replicas, 1, 0).time_s;
}

}  // namespace

TEST_CASE("a slow replica delays the ring of all: its exchange begins when the last one has come") {
  StepPlan plan = even_plan(1, 4, 1e-3, 2e-3);
  plan.cost[0].buckets = {{1, {10e-3 * kRing_Bps, 0}, 1}};
  StepNetwork net;
  net.links = {{"ring", kRing_Bps}};
  net.classes = {{"gradients", {{0, 1}}, 0}};
  net.gradient_exchange = {0};
  CHECK(played_s(plan, net, 3) == Approx(12e-3 + 10e-3).epsilon(1e-9));
  plan.slow = {1, 1.5, 1};
  CHECK(played_s(plan, net, 3) == Approx(1.5 * 12e-3 + 10e-3).epsilon(1e-9));
  // One that stands for all is the slowest of them.
  plan.slow = {1.5};
  CHECK(played_s(plan, net, 1) == Approx(1.5 * 12e-3 + 10e-3).epsilon(1e-9));
  // A bucket that leaves in the middle of the last backward leaves in its middle there, too.
  plan.cost[0].buckets[0].share = 0.5;
  CHECK(played_s(plan, net, 1) == Approx(1.5 * 11e-3 + 10e-3).epsilon(1e-9));
}

TEST_CASE("a pipeline waits for a slow stage, not for all of them: 1F1B by hand") {
  const StepNetwork net;
  for (const int m : {2, 5, 16}) {
    StepPlan plan = even_plan(2, m, 1, 1);
    CHECK(played_s(plan, net, 1) == Approx(2.0 * (m + 1)).epsilon(1e-9));
    plan.slow = {3, 1};  // the first stage is never idle
    CHECK(played_s(plan, net, 1) == Approx(6.0 * m).epsilon(1e-9));
    plan.slow = {1, 3};  // nor is the last, from the first forward to the last backward
    CHECK(played_s(plan, net, 1) == Approx(6.0 * m + 2).epsilon(1e-9));
    plan.slow = {3, 3};
    CHECK(played_s(plan, net, 1) == Approx(6.0 * (m + 1)).epsilon(1e-9));
    // Of two replicas the slow one counts where they meet.
    plan.slow = {3, 1, 1, 1};
    CHECK(played_s(plan, net, 2) == Approx(6.0 * m).epsilon(1e-9));
  }
}

TEST_CASE("a stage s times slower: the step lasts once to s times as long, longer with s, equal at 1") {
  SplitMix64 stream{19};
  const auto below = [&](int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); };
  const auto between = [&](double low, double high) { return low + (high - low) * uniform(stream); };
  for (int pass = 0; pass < 400; ++pass) {
    const int stages = 1 + below(6), replicas = 1 + below(3);
    StepPlan plan = even_plan(stages, stages + below(8), 1e-3, 2e-3);
    plan.schedule = below(2) == 0 ? Schedule::one_f_one_b : Schedule::gpipe;
    for (PassCost& cost : plan.cost) {
      cost.forward.busy[Activity::gemm_bf16] = between(1e-3, 5e-3);
      cost.backward.busy[Activity::gemm_bf16] = between(1e-3, 5e-3);
    }
    // Hand-overs of every stage and gradients of every stage on links of their own.
    StepNetwork net;
    plan.hand_over_bytes = between(0, 50e6);
    for (int s = 0; s < stages; ++s) {
      const auto own = [&](bool there) {
        if (!there) return -1;
        net.links.push_back({"link", kRing_Bps});
        net.classes.push_back({"class", {{static_cast<int>(net.links.size()) - 1, 1}}, between(0, 20e-6)});
        return static_cast<int>(net.classes.size()) - 1;
      };
      auto& forward = net.forward_hand_over.emplace_back();
      auto& backward = net.backward_hand_over.emplace_back();
      for (int r = 0; r < replicas; ++r) forward.push_back(own(s + 1 < stages)), backward.push_back(own(s > 0));
      net.gradient_exchange.push_back(own(true));
      plan.cost[static_cast<size_t>(s)].buckets = {{1, {between(0, 100e6), 0}, 1}};
    }
    plan.members = replicas;
    const int slow = below(stages * replicas);
    const auto at = [&](double times) {
      StepPlan slowed = plan;
      slowed.slow.assign(static_cast<size_t>(stages * replicas), 1);
      slowed.slow[static_cast<size_t>(slow)] = times;
      return played_s(slowed, net, replicas);
    };
    const double alone = played_s(plan, net, replicas), less = between(1, 3), more = less + between(0, 3);
    INFO("pass " << pass << ": " << stages << " stages, " << replicas << " replicas, worker " << slow << ", " << less
                 << " and " << more);
    CHECK(at(1) == alone);
    CHECK(at(less) >= alone * (1 - 1e-12));
    CHECK(at(less) <= alone * less * (1 + 1e-9));
    CHECK(at(more) >= at(less) * (1 - 1e-12));
    // No sooner than its own work is done.
    const PassCost& own = plan.cost[static_cast<size_t>(slow / replicas)];
    CHECK(at(more) >= more * plan.micro_batches * (own.forward.device_s() + own.backward.device_s()) * (1 - 1e-12));
  }
}
