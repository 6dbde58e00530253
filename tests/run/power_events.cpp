// Power, node failures, limits and checkpoints meet in one order of events: times, energies and lost work by hand.
#include <catch2/catch.hpp>

#include "../power/reference_cluster.hpp"
#include "core/error.hpp"
#include "power/bus.hpp"
#include "power/delivery.hpp"
#include "power/throttle.hpp"
#include "run/run_model.hpp"

namespace {

using namespace tw;

constexpr double kBusy_w = 8 * 693.0 + 1580;

// Nothing is left for the network to do: steps are quiet.
struct NoEngine : network::Engine {
  double now_s() const override { return 0; }
  void at(double, std::function<void()>) override { FAIL("no events"); }
  void start(int, double, std::function<void()>) override { FAIL("no transfers"); }
  void run() override {}
};

// Steps of a second of FP8 products.
struct QuietJob {
  Cluster cluster = test::reference_cluster();
  Software software;
  Plan plan;
  RunPlan run;
  RunModel model;

  QuietJob(int nodes, double steps) {
    plan.nodes = nodes;
    plan.gbs = 8;
    plan.dp = 1;
    run.steps = steps;
    model.quiet.time_s = 1;
    model.quiet.stage_activity = {ActivityTimes::only(Activity::gemm_fp8)};
  }
  SimulatedRun play(uint64_t seed = 1) const {
    RunInputs in;
    in.step = {nullptr, nullptr, nullptr, &cluster, &software, &plan};
    in.run = &run;
    NoEngine engine;
    SeriesRun series;
    series.seed = seed;
    return play_run(in, model, engine, series);
  }
  PowerRun power(const SimulatedRun& played) const { return integrate_power(cluster, played.timeline, played.power); }
  double node_w(const ActivityTimes& shares, double limit_w = 700, bool in_step = false) const {
    return node_parts(cluster.node, shares, watts(limit_w), {true, in_step}).total();
  }
  double node_w(Activity activity) const { return node_w(ActivityTimes::only(activity)); }
};

PowerFailure shelf(double at_s, int count = 1, OverloadPolicy policy = OverloadPolicy::shed) {
  PowerFailure f;
  f.part = FailedPart::shelf;
  f.count = count;
  f.at = seconds(at_s);
  f.policy = policy;
  return f;
}

PowerFailure outage(double at_s, double lasts_s) {
  PowerFailure f;
  f.part = FailedPart::feed;
  f.at = seconds(at_s);
  f.lasts = seconds(lasts_s);
  return f;
}

PowerStage stage(const char* kind, int feeds, double rating_w, Redundancy redundancy = Redundancy::n, int modules = 1) {
  PowerStage s;
  s.kind = kind;
  s.feeds = feeds;
  s.rating = watts(rating_w);
  s.redundancy = redundancy;
  s.modules = modules;
  return s;
}

double stretch(const QuietJob& job, double limit_w) {
  return stretch_of(job.cluster.node.accelerator, ActivityTimes::only(Activity::gemm_fp8), watts(700), watts(limit_w));
}

}  // namespace

TEST_CASE("a shelf that fails and is not missed: its hand integral") {
  QuietJob job(2, 10);
  job.run.power_failures = {shelf(2.5)};
  const SimulatedRun played = job.play();
  CHECK(played.time_s == 10);
  CHECK(played.timeline.groups.front().phases.size() == QuietJob(2, 10).play().timeline.groups.front().phases.size());
  const PowerRun run = job.power(played);
  CHECK(run.nodes_dc_j == Approx(2 * kBusy_w * 10).epsilon(1e-9));
  CHECK(run.rectifier_loss_j == Approx(16.2125 * (8 * 2.5 + 4 * 7.5) + 0.00798 * 2 * kBusy_w * 10).epsilon(1e-9));
  CHECK(integrate_delivery(job.cluster, run).grid_j == Approx(run.nodes_ac_j).epsilon(1e-9));
}

TEST_CASE("a shelf that is missed: its bus trips or sheds") {
  QuietJob job(4, 10);
  job.cluster.power_delivery.rectifier.rating = watts(3000);  // one shelf carries 12 kW, the bus asks for 14.2
  job.run.power_failures = {shelf(2.5, 1, OverloadPolicy::trip)};
  const SimulatedRun dark = job.play();
  CHECK(dark.stopped);
  CHECK(dark.time_s == 2.5);
  CHECK(dark.steps == 2);
  CHECK(dark.supply_lost_s == Approx(2.5));
  CHECK(dark.power_events.front().find("nodes 0, 1 go dark at 2.500 s") == 0);
  CHECK(job.power(dark).nodes_dc_j == Approx(4 * kBusy_w * 2.5).epsilon(1e-9));

  // The shelf comes back at 8 s: from then on at full pace.
  job.run.power_failures = {shelf(2.5)};
  for (const bool back : {false, true}) {
    if (back) job.run.power_failures[0].lasts = seconds(5.5);
    const SimulatedRun shed = job.play();
    CHECK_FALSE(shed.stopped);
    const PowerRun held = job.power(shed);
    double limit_w = 0;
    for (const NodeGroup& g : shed.timeline.groups)
      if (g.nodes == std::vector<int>{0, 1}) limit_w = g.phases[g.phases.size() - (back ? 8 : 4)].gpu_limit_w;
    const double s = stretch(job, limit_w), slow_s = back ? 5.5 : 7.5 * s;
    CHECK(s > 1.05);
    CHECK(shed.time_s == Approx(back ? 8 + 7.5 - 5.5 / s : 2.5 + slow_s).epsilon(1e-9));
    CHECK(shed.supply_lost_s == Approx(shed.time_s - 10).epsilon(1e-9));
    CHECK(held.buses[0].dc->at(5) == Approx(12000).epsilon(1e-8));
    CHECK(held.buses[0].dc_j == Approx(2 * kBusy_w * (shed.time_s - slow_s) + 12000 * slow_s).epsilon(1e-8));
    const double waits_w = job.node_w(ActivityTimes::only(Activity::gemm_fp8).scaled(1 / s), 700, true);
    CHECK(held.buses[1].dc_j == Approx(2 * kBusy_w * (shed.time_s - slow_s) + 2 * waits_w * slow_s).epsilon(1e-9));
    CHECK(integrate_delivery(job.cluster, held).grid_j == Approx(held.nodes_ac_j).epsilon(1e-9));
  }
}

TEST_CASE("an outage of the feed: batteries carry their buses and take back what they gave, or the job stops") {
  QuietJob job(4, 600);
  job.cluster.power_delivery.upstream = {stage("PDU", 3, 60e3), stage("UPS", 4, 500e3)};
  job.run.power_failures = {outage(4, 2)};
  const SimulatedRun none = job.play();
  CHECK(none.stopped);
  CHECK(none.time_s == 4);
  BatteryProfile& battery = job.cluster.power_delivery.battery.emplace();
  battery.capacity = joules(100e3);
  battery.power = watts(20e3);
  battery.discharge_efficiency = 0.9;
  battery.charge_efficiency = 0.8;
  battery.recharge = watts(500);
  const SimulatedRun carried = job.play();
  CHECK(carried.time_s == Approx(600).epsilon(1e-12));
  const PowerRun run = job.power(carried);
  const double bus_w = 2 * kBusy_w, given_j = bus_w * 2;
  CHECK(run.battery_j == Approx(2 * (given_j / 0.9 / 0.8 - given_j)).epsilon(1e-9));
  CHECK(run.rectifier_loss_j == Approx(2 * (129.7 * 598 + 0.00798 * (bus_w * 598 + given_j / 0.72))).epsilon(1e-9));
  CHECK(run.nodes_ac_j == Approx(run.nodes_dc_j + run.battery_j + run.rectifier_loss_j).epsilon(1e-12));
  const DeliveryRun d = integrate_delivery(job.cluster, run);
  CHECK(d.battery_j == Approx(run.battery_j).epsilon(1e-9));
  CHECK(d.grid_j == Approx(d.nodes_j + d.loss_j + d.battery_j).epsilon(1e-9));
  job.run.power_failures = {outage(4, 60)};
  const SimulatedRun dark = job.play();
  const double empty_s = 4 + 100e3 * 0.9 / bus_w;
  CHECK(dark.stopped);
  CHECK(dark.time_s == Approx(empty_s).epsilon(1e-9));
  CHECK(job.power(dark).nodes_dc_j == Approx(2 * bus_w * empty_s).epsilon(1e-9));

  // Rectifiers that are missed: the battery gives the rest, 2.2 kW, until it is empty; only then the bus sheds.
  job.cluster.power_delivery.rectifier.rating = watts(3000);
  job.run.power_failures = {shelf(10)};
  const SimulatedRun late = job.play();
  const double held_s = 10 + 90e3 / (bus_w - 12000);
  double first_s = 0;
  for (const NodeGroup& g : late.timeline.groups)
    for (const Phase& p : g.phases)
      if (p.gpu_limit_w > 0 && first_s == 0) first_s = p.begin_s;
  CHECK(first_s == Approx(held_s).epsilon(1e-9));
  CHECK(job.power(late).buses[0].supply->at(20) == Approx(12000).epsilon(1e-9));
}

TEST_CASE(
    "a failed stage without redundancy takes its nodes with it; one short of modules trips by its time and load") {
  QuietJob job(8, 100);
  job.cluster.power_delivery.upstream = {stage("PDU", 3, 60e3), stage("UPS", 4, 90e3, Redundancy::n_plus_1, 3)};
  PowerFailure f;
  f.part = FailedPart::stage;
  f.stage = "PDU";
  f.unit = 1;
  f.at = seconds(4);
  job.run.power_failures = {f};
  const SimulatedRun dark = job.play();
  CHECK(dark.stopped);
  CHECK(dark.power_events.front().find("nodes 6, 7 go dark at 4.000 s") == 0);
  f.stage = "UPS";
  f.unit = 0;
  job.run.power_failures = {f};
  CHECK_FALSE(job.play().stopped);  // n + 1
  // Three of four modules: 30 kW are left for 57.9 kW.
  f.count = 3;
  job.run.power_failures = {f};
  const double load_w = 8 * kBusy_w * 1.00798 + 4 * 129.7, r = load_w / 30e3;
  const SimulatedRun hot = job.play();
  CHECK(hot.stopped);
  CHECK(hot.time_s == Approx(4 + 80 / (r * r - 1)).epsilon(1e-9));
  // Without a spare module what is left is left all the same: 60 kW, then 30 kW.
  job.cluster.power_delivery.upstream[1].redundancy = Redundancy::n;
  job.run.power_failures[0].count = 1;
  CHECK_FALSE(job.play().stopped);
  job.run.power_failures[0].count = 2;
  CHECK(job.play().time_s == Approx(hot.time_s).epsilon(1e-9));
  job.run.power_failures[0].count = 3;
  CHECK(job.play().time_s == Approx(4));
  job.cluster.power_delivery.upstream[1].redundancy = Redundancy::n_plus_1;
  // Mended in time, nothing happens.
  job.run.power_failures[0].lasts = seconds(20);
  CHECK_FALSE(job.play().stopped);

  f.stage = "generator";
  job.run.power_failures = {f};
  CHECK_THROWS_AS(job.play(), InputError);
  job.run.power_failures = {shelf(1)};
  job.run.power_failures[0].unit = 30;
  CHECK_THROWS_AS(job.play(), InputError);
}

TEST_CASE("cap, trip, failure and checkpoint meet: a trip loses the work since the last checkpoint, no more") {
  QuietJob job(4, 12);
  job.run.checkpoints.emplace();
  job.run.checkpoints->every_steps = 4;
  job.run.checkpoints->size = bytes(1e9);
  job.cluster.storage.write_bandwidth = bytes_per_second(2e9);
  job.cluster.storage.read_bandwidth = bytes_per_second(4e9);
  job.run.reliability.emplace();
  job.run.reliability->detect = seconds(1);
  job.run.reliability->reschedule = seconds(0.5);
  job.run.spare_nodes = 1;
  SlowNode capped;
  capped.nodes = {3};
  capped.from = seconds(2.25);
  capped.to = seconds(3);
  capped.gpu_limit = watts(400);
  job.run.slow_nodes = {capped};
  PowerFailure f = shelf(7, 2, OverloadPolicy::trip);
  f.lasts = seconds(3);
  job.run.power_failures = {f};
  const double read_s = 0.25;
  const double s = stretch(job, 400), slow_s = 0.75 * (1 - 1 / s);  // what the cap costs
  const double saved_s = 4 + slow_s, again_s = 10.5 + read_s;
  REQUIRE(s > 1.1);

  SECTION("cap and trip") {
    const SimulatedRun r = job.play();
    CHECK(r.time_s == Approx(again_s + 4 + 0.5 + 4).epsilon(1e-9));
    CHECK(r.rework_s == Approx(7 - saved_s).epsilon(1e-9));
    CHECK(r.restart_s == Approx(again_s - 7).epsilon(1e-9));
    CHECK(r.checkpoints == 2);
    CHECK(r.slow_s == Approx(slow_s).epsilon(1e-9));
    CHECK(r.failures[static_cast<size_t>(Component::power)] == 1);
    CHECK(r.power_events.front() == "nodes 0, 1 go dark at 7.000 s; the job starts again when they are back");
    const PowerRun power = job.power(r);
    // Both nodes of bus 0: at work, at their checkpoints, off for three seconds, coming back.
    const ActivityTimes gemm = ActivityTimes::only(Activity::gemm_fp8);
    const double waits_w = job.node_w(gemm.scaled(1 / s), 700, true), spin_w = job.node_w(Activity::spin);
    const double loaded_w = job.node_w(Activity::context), work_s = r.time_s - 3.5 - read_s - 1 - 0.75;
    CHECK(power.buses[0].dc_j ==
          Approx(2 * (kBusy_w * work_s + waits_w * 0.75 + spin_w * 1 + loaded_w * (0.5 + read_s))).epsilon(1e-9));
    CHECK(power.buses[0].dc->at(8) == 0);
    CHECK(power.buses[0].loss_j == Approx(129.7 * (r.time_s - 3) + 0.00798 * power.buses[0].dc_j).epsilon(1e-9));
    // Bus 1 waits a second for the failure to be seen, and two for the power; node 3 was capped.
    const double capped_w =
        job.node_w(lengthened(job.cluster.node.accelerator, gemm, watts(700), watts(400), s), 400, true);
    const double idle_w = job.node_w(Activity::idle);
    CHECK(power.buses[1].dc_j == Approx(2 * (kBusy_w * work_s + spin_w * 2 + idle_w * 2 + loaded_w * (0.5 + read_s)) +
                                        (waits_w + capped_w) * 0.75)
                                     .epsilon(1e-9));
    const DeliveryRun d = integrate_delivery(job.cluster, power);
    CHECK(d.grid_j == Approx(power.nodes_ac_j).epsilon(1e-9));
  }
  SECTION("and a node that fails within a checkpoint, which is then worth nothing") {
    // The first failure after 11.25 s of running time, the next one long after the run.
    uint64_t seed = 1;
    double first_s = 0;
    for (;; ++seed) {
      FailureRates rates;
      rates.per_s[static_cast<size_t>(Component::node)] = 1;
      FailureSource source(rates, seed);
      first_s = source.next_gap_s();
      if (source.next_gap_s() > 10 * first_s) break;
    }
    job.run.reliability->node_mtbf = seconds(4 * 11.25 / first_s);
    const SimulatedRun r = job.play(seed);
    CHECK(r.failures[static_cast<size_t>(Component::node)] == 1);
    CHECK(r.rework_s == Approx(7 - saved_s + 4.25).epsilon(1e-9));
    CHECK(r.restart_s == Approx(again_s - 7 + 1.5 + read_s).epsilon(1e-9));
    CHECK(r.time_s == Approx(again_s + 4.25 + 1.5 + read_s + 4 + 0.5 + 4).epsilon(1e-9));
  }
  SECTION("power that goes while the job starts again makes it wait, and costs no more work") {
    job.run.power_failures.push_back(outage(10.25, 4));
    const SimulatedRun r = job.play();
    CHECK(r.rework_s == Approx(7 - saved_s).epsilon(1e-9));
    CHECK_FALSE(r.stopped);
    CHECK(r.time_s == Approx(14.25 + 0.5 + read_s + 4 + 0.5 + 4).epsilon(1e-9));
  }
  SECTION("without a way to start again it stops there") {
    job.run.reliability.reset();
    const SimulatedRun r = job.play();
    CHECK(r.stopped);
    CHECK(r.time_s == 7);
    CHECK(r.supply_lost_s == Approx(7 - saved_s).epsilon(1e-9));
  }
}

TEST_CASE("random failures of power, nodes and clocks: runs end, books close, nothing is done twice in time") {
  for (uint64_t n = 0; n < 400; ++n) {
    SplitMix64 dice = random_stream(n, "power events");
    const auto below = [&](double most) { return most * uniform(dice); };
    const auto one_in = [&](double k) { return uniform(dice) * k < 1; };
    QuietJob job(2 + static_cast<int>(below(12)), 20 + std::floor(below(200)));
    job.cluster.power_delivery.rectifier.rating = watts(2000 + below(3000));
    if (one_in(2))
      job.cluster.power_delivery.upstream = {
          stage("PDU", 2, 200e3), stage("UPS", 2, 100e3, one_in(2) ? Redundancy::n_plus_1 : Redundancy::two_n, 4)};
    if (one_in(2)) {
      BatteryProfile& battery = job.cluster.power_delivery.battery.emplace();
      battery.capacity = joules(10e3 + below(1e6));
      battery.power = watts(20e3);
      battery.recharge = watts(below(2000));
    }
    if (one_in(2)) {
      job.run.checkpoints.emplace();
      job.run.checkpoints->interval = seconds(3 + below(30));
      job.run.checkpoints->size = bytes(1e9);
      job.run.checkpoints->asynchronous = one_in(2);
      job.cluster.storage.write_bandwidth = job.cluster.storage.read_bandwidth = bytes_per_second(5e8 + below(2e9));
    }
    if (one_in(2)) {
      job.run.reliability.emplace();
      job.run.reliability->detect = seconds(below(3));
      job.run.reliability->reschedule = seconds(below(3));
      job.run.reliability->repair = seconds(below(60));
      if (one_in(2)) job.run.reliability->node_mtbf = seconds(job.plan.nodes * (100 + below(300)));
    }
    if (one_in(2)) {
      SlowNode slow;
      slow.nodes = {static_cast<int>(below(job.plan.nodes))};
      slow.from = seconds(below(60));
      slow.to = slow.from + seconds(below(30));
      slow.gpu_limit = watts(350 + below(300));
      job.run.slow_nodes = {slow};
    }
    for (int k = 0; k < 4; ++k) {
      if (one_in(3)) job.run.power_failures.push_back(outage(below(120), 0.1 + below(20)));
      PowerFailure f =
          shelf(below(120), 1 + static_cast<int>(below(2)), one_in(2) ? OverloadPolicy::shed : OverloadPolicy::trip);
      if (one_in(2)) f.part = FailedPart::rectifier, f.count = 1 + static_cast<int>(below(7));
      f.unit = job.plan.nodes > 3 ? static_cast<int>(below(job.plan.nodes / 2)) : 0;
      if (!one_in(3)) f.lasts = seconds(0.01 + below(40));
      if (!job.cluster.power_delivery.upstream.empty() && one_in(3)) {
        f.part = FailedPart::stage, f.stage = "UPS", f.unit = 0, f.count = 1 + static_cast<int>(below(4));
      }
      if (one_in(2)) job.run.power_failures.push_back(f);
    }
    INFO("case " << n);
    const SimulatedRun r = job.play(n);
    CHECK(r.time_s > 0);
    CHECK(r.time_s < 20000);
    CHECK((r.stopped || r.steps == job.run.steps));
    CHECK(r.power_events.size() == job.run.power_failures.size());
    // Every second is work that counts, is done again, is waited for a checkpoint or for a restart, or is held.
    if (!r.stopped) CHECK(r.time_s == Approx(r.useful_s + r.checkpoint_s + r.rework_s + r.restart_s).epsilon(0.08));
    const PowerRun power = job.power(r);
    const DeliveryRun d = integrate_delivery(job.cluster, power);
    CHECK(d.grid_j == Approx(d.nodes_j + d.loss_j + d.battery_j).epsilon(1e-9));
    CHECK(d.nodes_j == Approx(power.nodes_dc_j).epsilon(1e-9));
    CHECK(power.parts.total() == Approx(power.nodes_dc_j).epsilon(1e-9));
    CHECK(d.stages[2].loss_j == Approx(power.rectifier_loss_j).epsilon(1e-9).margin(1e-6));
    for (const NodeGroup& g : r.timeline.groups)
      for (size_t i = 1; i < g.phases.size(); ++i) {
        CHECK(g.phases[i].begin_s == g.phases[i - 1].end_s);
        CHECK(g.phases[i].end_s > g.phases[i].begin_s);
      }
    CHECK(job.play(n).time_s == r.time_s);
  }
}
