// Workers that need longer for their work than the others: rings and pipelines wait for them, by hand.
#include <catch2/catch.hpp>

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
