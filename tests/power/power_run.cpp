#include "power/power_run.hpp"

#include <catch2/catch.hpp>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "power/bus.hpp"
#include "power/energy_window.hpp"
#include "power/loss_law.hpp"
#include "reference_cluster.hpp"

namespace {

using namespace tw;
using A = Activity;

Timeline flat(int nodes, double seconds, const ActivityTimes& shares) {
  Timeline line;
  line.run_end_s = seconds;
  NodeGroup group;
  group.role = "train";
  for (int i = 0; i < nodes; ++i) group.nodes.push_back(i);
  group.phases.push_back({PhaseKind::train, 0, seconds, shares, 1});
  line.groups.push_back(group);
  return line;
}

test::LoraTimes lora(int nodes) {
  test::LoraTimes t;
  t.nodes = nodes;
  if (nodes == 1) {
    t.cp = 1;
    t.micro_batches = 4;
    t.step_s = 3.840;
    t.first_step_s = 3.9;
    t.wait_s = 5.75;
    t.gap_s = 12.15;
    t.first_eval_s = 39.5;
    t.eval_s = 38.7;
    t.eval_busy = 0.97;
  }
  if (nodes == 64) {
    t.step_s = 0.7110;
    t.wait_s = 13.05;
    t.gap_s = 13.3;
    t.steps = 108;
    t.first_block = 66;
    t.block = 6;
    t.first_eval_s = 3.5;
    t.eval_s = 1.51;
  }
  return t;
}

}  // namespace

TEST_CASE("idle, waiting and plateau of a node follow from one host base") {
  const Cluster cluster = test::reference_cluster();
  const Power limit = effective_limit(cluster.node, {});
  CHECK(idle_node(cluster.node, limit).total() == Approx(2165).epsilon(0.02));
  const double wait_w = node_parts(cluster.node, ActivityTimes::only(A::spin), limit, {}).total();
  CHECK(wait_w >= 2550);
  CHECK(wait_w <= 2750);
  const double plateau_w = node_parts(cluster.node, ActivityTimes::only(A::gemm_fp8), limit, {false, true}).total();
  CHECK(plateau_w == Approx(7050).epsilon(0.02));
}

TEST_CASE("steady node power of the LoRA runs from step shares") {
  const Cluster cluster = test::reference_cluster();
  const auto steady = [&](int nodes) { return *integrate_power(cluster, test::lora_timeline(lora(nodes))).steady_w; };
  CHECK(steady(1) == Approx(7031).epsilon(0.03));
  CHECK(steady(8) == Approx(6152).epsilon(0.03));
  CHECK(steady(64) == Approx(5990).epsilon(0.04));
}

TEST_CASE("node power in the run, waits and windows of the LoRA runs") {
  const Cluster cluster = test::reference_cluster();
  const PowerRun one = integrate_power(cluster, test::lora_timeline(lora(1)));
  const PowerRun eight = integrate_power(cluster, test::lora_timeline(lora(8)));
  CHECK(one.mean_w == Approx(6953).epsilon(0.03));
  CHECK(eight.mean_w == Approx(5713).epsilon(0.03));
  CHECK(*eight.wait_w == Approx(2635).epsilon(0.05));
  const EnergyWindow window = mlperf_window(cluster, eight, 16100, 0, 0, 3178.667 / 3072);
  CHECK(*window.total_dc_j == Approx(20.38e6).epsilon(0.03));
  CHECK(*window.total_ac_j == Approx(20.64e6).epsilon(0.03));
  CHECK(*window.network_j == Approx(5301877).epsilon(0.01));
}

TEST_CASE("parts add up to their totals") {
  Cluster cluster = test::reference_cluster();
  cluster.node.power.spread = 0.013;
  cluster.node.power.conversion_loss = 0.02;
  cluster.node.power.nvswitch_load = watts(80);
  cluster.node.power.nic_load = watts(60);
  const PowerRun run = integrate_power(cluster, test::lora_timeline(lora(8)));
  CHECK(run.parts.total() == Approx(run.nodes_dc_j).epsilon(1e-9));
  double nodes_j = 0, buses_j = 0, loss_j = 0;
  for (const NodePowerRun& node : run.nodes) nodes_j += node.dc_j;
  for (const BusPowerRun& bus : run.buses) {
    buses_j += bus.dc_j;
    loss_j += bus.loss_j;
    CHECK(bus.ac_j == Approx(bus.dc_j + bus.loss_j).epsilon(1e-12));
    CHECK(bus.dc->integral(0, run.run_end_s) == Approx(bus.dc_j).epsilon(1e-9));
  }
  CHECK(nodes_j == Approx(run.nodes_dc_j).epsilon(1e-9));
  CHECK(buses_j == Approx(run.nodes_dc_j).epsilon(1e-9));
  CHECK(loss_j == Approx(run.nodes_ac_j - run.nodes_dc_j).epsilon(1e-9));
  CHECK(run.min_w < run.max_w);
  CHECK(run.mean_w * 8 * run.duration_s() == Approx(run.nodes_dc_j).epsilon(1e-9));
}

TEST_CASE("bus loss within the measured rows") {
  const PowerDelivery delivery = test::reference_cluster().power_delivery;
  const CsvTable table = CsvTable::load(test::reference_file("smc_v4.0/rectifier.csv"));
  double square = 0, worst = 0;
  int rows = 0;
  for (size_t i = 0; i < table.rows(); ++i) {
    if (table.value(i, "use_in_fit") != 1) continue;
    const double error = rectifier_law(delivery).loss_w(table.value(i, "bus_dc_w")) - table.value(i, "bus_loss_w");
    square += error * error;
    worst = std::max(worst, std::abs(error));
    ++rows;
  }
  CHECK(rows == 26);
  CHECK(std::sqrt(square / rows) <= 25);
  CHECK(worst <= 50);
}

TEST_CASE("two nodes of a bus share its fixed loss, one node pays it alone") {
  const Cluster cluster = test::reference_cluster();
  const PowerRun one = integrate_power(cluster, flat(1, 100, ActivityTimes::only(A::spin)));
  const PowerRun two = integrate_power(cluster, flat(2, 100, ActivityTimes::only(A::spin)));
  const PowerRun nine = integrate_power(cluster, flat(9, 100, ActivityTimes::only(A::spin)));
  CHECK(one.buses.size() == 1);
  CHECK(two.buses.size() == 1);
  CHECK(nine.buses.size() == 5);
  const double share_j = 0.00798 * one.nodes_dc_j;
  CHECK(one.rectifier_loss_j == Approx(12970 + share_j));
  CHECK(two.rectifier_loss_j == Approx(12970 + 2 * share_j));
  CHECK(nine.rectifier_loss_j == Approx(5 * 12970 + 9 * share_j));
}

TEST_CASE("a run cut short equals its hand integral") {
  const Cluster cluster = test::reference_cluster();
  Timeline line = flat(2, 10, ActivityTimes::only(A::spin));
  line.groups[0].phases = {{PhaseKind::train, 0, 1, ActivityTimes::only(A::gemm_fp8), 1},
                           {PhaseKind::wait, 1, 10, ActivityTimes::only(A::spin), 0}};
  line.run_end_s = 2.5;
  const PowerRun run = integrate_power(cluster, line);
  const double busy_w = 8 * 693.0 + 1580, wait_w = 8 * 133.0 + 1580;
  CHECK(run.nodes_dc_j == Approx(2 * (busy_w * 1 + wait_w * 1.5)).epsilon(1e-9));
  CHECK(run.rectifier_loss_j == Approx(129.7 * 2.5 + 0.00798 * run.nodes_dc_j).epsilon(1e-9));
}

TEST_CASE("a cap lowers power; the meter file's margins enter one window only") {
  const Cluster cluster = test::reference_cluster();
  const Timeline line = flat(1, 100, ActivityTimes::only(A::gemm_fp8));
  const PowerRun full = integrate_power(cluster, line);
  PowerOptions options;
  options.gpu_limit = watts(500);
  const PowerRun capped = integrate_power(cluster, line, options);
  CHECK(full.nodes_dc_j - capped.nodes_dc_j == Approx(8 * 100 * 0.99 * 200).epsilon(1e-9));
  const EnergyWindow run = run_window(full, 0.0);
  CHECK(*run.total_dc_j == Approx(full.nodes_dc_j));
  const EnergyWindow file = mlperf_window(cluster, full, 0.0, 50, 50, 1.5);
  const double idle_j = full.idle_w * 100;
  CHECK(*file.total_dc_j == Approx((full.nodes_dc_j + idle_j) / 200 * 100 * 1.5).epsilon(1e-9));
  CHECK(*file.total_ac_j == Approx(*file.total_dc_j + file.rectifier_loss_j));
  const EnergyWindow unknown = run_window(full, std::nullopt);
  CHECK_FALSE(unknown.total_dc_j.has_value());
}

TEST_CASE("a bus beyond its rectifiers is refused with place and time") {
  Cluster cluster = test::reference_cluster();
  cluster.power_delivery.rectifier.rating = watts(1000);
  Timeline line = flat(2, 10, ActivityTimes::only(A::spin));
  line.groups[0].phases = {{PhaseKind::wait, 0, 4, ActivityTimes::only(A::spin), 0},
                           {PhaseKind::train, 4, 10, ActivityTimes::only(A::gemm_fp8), 1}};
  CHECK_THROWS_AS(integrate_power(cluster, line), DoesNotFit);
  CHECK_THROWS_WITH(integrate_power(cluster, line),
                    Catch::Contains("bus 0") && Catch::Contains("4.000 s") && Catch::Contains("8000 W"));
}

TEST_CASE("evaluating nodes count in steady power, not in waits") {
  const Cluster cluster = test::reference_cluster();
  Timeline line = flat(7, 100, ActivityTimes::only(A::gemm_bf16));
  NodeGroup other;
  other.role = "evaluate";
  other.nodes = {7, 8};
  other.phases.push_back({PhaseKind::wait, 0, 100, ActivityTimes::only(A::spin), 0});
  line.groups.push_back(other);
  const PowerRun run = integrate_power(cluster, line);
  CHECK(*run.steady_w == Approx((7 * (8 * 693.0 + 1580) + 2 * (8 * 133.0 + 1580)) / 9).epsilon(1e-9));
  CHECK_FALSE(run.wait_w.has_value());
  CHECK(*run.gpu_steady_w == Approx(693));
}

TEST_CASE("the bus loss law holds for benchmarks that its fit has not seen") {
  const CsvTable table = CsvTable::load(test::reference_file("smc_v4.0/rectifier.csv"));
  for (const std::string left_out : {"bert", "dlrm_dcnv2", "llama2_70b_lora", "resnet", "unet3d"}) {
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < table.rows(); ++i) {
      if (table.value(i, "use_in_fit") != 1 || table.text(i, "benchmark") == left_out) continue;
      const double weight = std::min(2000.0, table.value(i, "seconds"));
      const double dc = table.value(i, "bus_dc_w"), loss = table.value(i, "bus_loss_w");
      w += weight, x += weight * dc, y += weight * loss, xx += weight * dc * dc, xy += weight * dc * loss;
    }
    const double slope = (w * xy - x * y) / (w * xx - x * x), fixed = (y - slope * x) / w;
    double square = 0, worst = 0;
    int rows = 0;
    for (size_t i = 0; i < table.rows(); ++i) {
      if (table.value(i, "use_in_fit") != 1) continue;
      const double error = fixed + slope * table.value(i, "bus_dc_w") - table.value(i, "bus_loss_w");
      square += error * error, worst = std::max(worst, std::abs(error)), ++rows;
    }
    INFO(left_out << ": " << fixed << " W + " << slope);
    CHECK(std::sqrt(square / rows) <= 25);
    CHECK(worst <= 50);
  }
}
