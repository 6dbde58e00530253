#include "power/delivery.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "paths.hpp"
#include "reference_cluster.hpp"

namespace {

using namespace tw;

Cluster with_upstream() {
  Cluster c = test::reference_cluster();
  PowerStage pdu;
  pdu.kind = "PDU";
  pdu.feeds = 3;
  pdu.rating = watts(60e3);
  pdu.fixed_loss = watts(50);
  pdu.proportional_loss = 0.01;
  PowerStage ups;
  ups.kind = "UPS";
  ups.feeds = 4;
  ups.rating = watts(500e3);
  ups.modules = 5;
  ups.fixed_loss = watts(2000);
  ups.square_loss = 0.02;
  ups.redundancy = Redundancy::n_plus_1;
  c.power_delivery.upstream = {pdu, ups};
  return c;
}

Timeline busy(int nodes, double seconds) {
  Timeline line;
  line.run_end_s = seconds;
  NodeGroup group;
  group.role = "train";
  for (int i = 0; i < nodes; ++i) group.nodes.push_back(i);
  group.phases.push_back({PhaseKind::train, 0, seconds, ActivityTimes::only(Activity::gemm_fp8), 10});
  line.groups.push_back(group);
  return line;
}

constexpr double kBusy_w = 8 * 693.0 + 1580;

}  // namespace

TEST_CASE("the delivery graph carries nodes plus losses to the feed") {
  const Cluster cluster = with_upstream();
  const PowerRun run = integrate_power(cluster, test::lora_timeline({}));
  const DeliveryRun delivery = integrate_delivery(cluster, run);
  CHECK(delivery.nodes_j == Approx(run.nodes_dc_j).epsilon(1e-9));
  CHECK(delivery.grid_j == Approx(delivery.nodes_j + delivery.loss_j).epsilon(1e-9));
  REQUIRE(delivery.stages.size() == 7);
  CHECK(delivery.stages[2].stage == "rectifier");
  CHECK(delivery.stages[2].units == 4 * 8);
  CHECK(delivery.stages[2].loss_j == Approx(run.rectifier_loss_j).epsilon(1e-9));
  CHECK(delivery.stages[4].units == 2);  // 4 buses, 3 a PDU
  CHECK(delivery.stages[5].units == 1);
  CHECK(delivery.stages[5].redundant);
}

TEST_CASE("closed form of one moment through all stages") {
  const Cluster cluster = with_upstream();
  const PowerRun run = integrate_power(cluster, busy(2, 10));
  const DeliveryRun d = integrate_delivery(cluster, run);
  const double ac_w = 2 * kBusy_w * 1.00798 + 129.7;
  const double pdu_w = ac_w + 50 + 0.01 * ac_w;
  const double ups_w = pdu_w + 2000 * 6 / 5.0 + 0.02 / 500e3 * 5 / 6.0 * pdu_w * pdu_w;
  CHECK(d.grid_j == Approx(10 * ups_w).epsilon(1e-9));
}

TEST_CASE("a stage beyond its rating is refused with place and time") {
  Cluster cluster = with_upstream();
  cluster.power_delivery.upstream[0].rating = watts(20e3);
  const PowerRun run = integrate_power(cluster, busy(6, 10));
  CHECK_THROWS_AS(integrate_delivery(cluster, run), DoesNotFit);
  CHECK_THROWS_WITH(integrate_delivery(cluster, run), Catch::Contains("PDU-0") && Catch::Contains("0.000 s"));
}

TEST_CASE("redundancy counts what is left after a failure") {
  Cluster cluster = test::reference_cluster();
  cluster.power_delivery.redundancy = Redundancy::two_n;
  const PowerRun run = integrate_power(cluster, busy(2, 10));
  DeliveryRun d = integrate_delivery(cluster, run);
  CHECK(d.stages[1].stage == "bus");
  CHECK(d.stages[1].spare_headroom_w == Approx(20000 - 2 * kBusy_w));
  CHECK(d.stages[1].redundant);
  cluster.power_delivery.rectifier.rating = watts(3000);
  d = integrate_delivery(cluster, integrate_power(cluster, busy(2, 10)));
  CHECK_FALSE(d.stages[1].redundant);
}

TEST_CASE("a stage without redundancy has its headroom and is not short") {
  const Cluster cluster = with_upstream();
  const DeliveryRun d = integrate_delivery(cluster, integrate_power(cluster, busy(2, 10)));
  CHECK(d.stages[4].stage == "PDU");
  CHECK(d.stages[4].spare_headroom_w == d.stages[4].headroom_w);
  CHECK(d.stages[4].redundant);
}

TEST_CASE("shipped stages load and lose what their data sheets say") {
  const PowerStage ups = load<PowerStage>(source_folder() + "/models/power/ups-500kw.json");
  const PowerStage pdu = load<PowerStage>(source_folder() + "/models/power/pdu-60kw.json");
  Cluster cluster = test::reference_cluster();
  cluster.power_delivery.upstream = {pdu, ups};
  const PowerRun run = integrate_power(cluster, busy(66, 10));
  const DeliveryRun d = integrate_delivery(cluster, run);
  REQUIRE(d.stages[5].stage == "UPS");
  const double efficiency = d.stages[5].output_j / (d.stages[5].output_j + d.stages[5].loss_j);
  CHECK(efficiency > 0.955);
  CHECK(efficiency < 0.975);
  CHECK(d.stages[4].loss_j / d.stages[4].output_j < 0.01);
}
