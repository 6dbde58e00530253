// Power through a step: the pieces hold the step's mean.
#include "power/step_power.hpp"

#include <catch2/catch.hpp>

#include "reference_cluster.hpp"

using namespace tw;

namespace {

StepOutcome one_stage() {
  StepOutcome o;
  o.time_s = 1;
  o.forward = {0.3, test::shares({{Activity::gemm_bf16, 0.25}, {Activity::memory_bound, 0.05}})};
  o.backward = {0.5, test::shares({{Activity::gemm_bf16, 0.45}})};
  ActivityTimes all = o.forward.activity;
  all += o.backward.activity;
  all[Activity::collective] += 0.1;
  o.stage_activity = {all};
  return o;
}

std::vector<Span> spans() {
  const Visit forward{false, 0, 0}, backward{true, 0, 0};
  return {{0, Span::Stream::device, 0, 0.3, forward, "forward", 0},
          {0, Span::Stream::device, 0.3, 0.8, backward, "backward", 0},
          {0, Span::Stream::network, 0.7, 0.9, backward, "gradients", 1e9}};
}

}  // namespace

TEST_CASE("work, an exchange that is left over, and a gap, each at its own level") {
  const NodeType node = test::reference_cluster().node;
  const StepPower p = step_power(node, spans(), one_stage(), watts(700), false, true);
  REQUIRE(p.begin_s.size() == 5);  // an edge where the exchange begins, though kernels hide it
  CHECK(p.watts[1] == p.watts[2]);
  CHECK(p.end_s == 1);
  CHECK(p.watts[3][2] == Approx(8 * node.accelerator.power.collective.value()));
  CHECK(p.watts[3][0] == 0);
  CHECK(p.watts[4][3] == Approx(8 * node.power.gap_power->value()));
  CHECK(p.most_w() > p.least_w());
  CHECK(p.least_w() == Approx(p.total_w(4)));
}

TEST_CASE("a limiter that sees only the mean takes the excess from the kernels that follow the clock") {
  const NodeType node = test::reference_cluster().node;
  const Power limit = watts(400);
  const StepPower p = step_power(node, spans(), one_stage(), limit, false, false);
  const StepPower free = step_power(node, spans(), one_stage(), watts(5000), false, false);
  CHECK(p.mean_w() < free.mean_w());
  const StepOutcome o = one_stage();
  CHECK(p.mean_w() == Approx(node_parts(node, o.stage_activity[0], limit, {false, true}).total()).epsilon(1e-9));
  CHECK(p.watts[0][1] == Approx(free.watts[0][1]));
}
