// The events of a hall against integrals done by hand, and its books in a thousand random halls.
#include "hall/hall.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "core/error.hpp"
#include "core/random.hpp"
#include "hall/accounts.hpp"
#include "jobs.hpp"

namespace {

using namespace tw;
using namespace tw::hall;
using test::plain_job;

hall::Cluster small_cluster(int nodes) {
  hall::Cluster c;
  c.name = "small";
  c.nodes = nodes;
  c.idle_w = 100;
  return c;
}

HallPlan plan_of(int nodes, std::vector<Job> jobs) {
  HallPlan plan;
  plan.clusters = {small_cluster(nodes)};
  plan.jobs = std::move(jobs);
  return plan;
}

}  // namespace

TEST_CASE("two jobs, one budget, a battery: times, energies and charge equal the integral by hand") {
  Job a = plain_job("a", 2, 0, 100, 1000), b = plain_job("b", 2, 50, 100, 1000);
  a.priority = 1;
  b.points.push_back({500, 1.5, 600});
  HallPlan plan = plan_of(4, {a, b});
  plan.clusters[0].network_w = 50;
  plan.clusters[0].rectifiers = {10, 0.01, 0};
  plan.cooling.proportional = 0.1;
  plan.limit_w = StepSeries(4000);
  plan.limit_w.then(80, 3500);
  plan.cap = true;
  plan.battery = BatteryType{10e3, 500, 0.9, 0.8, 100};
  plan.price_per_j = StepSeries(1e-6);
  plan.price_per_j.then(100, 3e-6);
  const HallOutcome out = run_hall(plan, 1);
  // Watts at the feed for DC watts of nodes. From 50 to 100 s b runs at its cap; from 80 on the two are 121.2 W above
  // the limit, which the battery gives; b alone is below it without a cap, and the battery takes 100 W until full.
  const auto load = [](double dc_w) { return 1.1 * (1.01 * dc_w + 10 + 50); };
  const double b_left_s = 100 - 50 / 1.5, given_j = 20 * (load(3200) - 3500), full_s = given_j / 0.9 / 80;
  CHECK(*out.jobs[0].end_s == Approx(100).epsilon(1e-9));
  CHECK(*out.jobs[1].end_s == Approx(100 + b_left_s).epsilon(1e-9));
  CHECK(out.jobs[1].capped_s == Approx(50).epsilon(1e-9));
  const double before_j = 50 * load(2200) + 30 * load(3200) + 20 * 3500, after_j = b_left_s * load(2200) + full_s * 100;
  CHECK(out.feed_j == Approx(before_j + after_j).epsilon(1e-9));
  CHECK(*out.cost_energy == Approx(before_j * 1e-6 + after_j * 3e-6).epsilon(1e-9));
  CHECK(out.battery_given_j == Approx(given_j).epsilon(1e-9));
  CHECK(out.battery_taken_j == Approx(full_s * 100).epsilon(1e-9));
  CHECK(*out.battery_charge_j == Approx(10e3).epsilon(1e-9));
  CHECK(out.energy.nodes_j == Approx(2 * 100 * 1000 + 2 * (50 * 600 + b_left_s * 1000)).epsilon(1e-9));
  CHECK(out.energy.idle_j == Approx(200 * (50 + b_left_s)).epsilon(1e-9));
  CHECK(out.energy.network_j == Approx(50 * *out.jobs[1].end_s).epsilon(1e-9));
  CHECK(out.above_limit_s == 0);
  CHECK(std::abs(out.books_error) < 1e-9);
  CHECK(out.jobs[0].energy_j + out.jobs[1].energy_j == Approx(out.feed_j).epsilon(1e-9));
}

TEST_CASE("first come holds the queue up, backfill fills the holes without delaying the head, priority goes first") {
  HallPlan plan = plan_of(4, {plain_job("long", 3, 0, 100, 500), plain_job("wide", 4, 1, 50, 500),
                              plain_job("short", 1, 2, 20, 500), plain_job("late", 1, 3, 200, 500)});
  HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[1].start_s == Approx(100));
  CHECK(*out.jobs[2].start_s == Approx(150));
  CHECK(out.jobs[2].wait_by_s.at("queue") == Approx(98));  // then the nodes of "wide"
  plan.queue = Queue::backfill;
  out = run_hall(plan, 1);
  CHECK(*out.jobs[1].start_s == Approx(100));
  CHECK(*out.jobs[2].start_s == Approx(2));    // done before "wide" can start
  CHECK(*out.jobs[3].start_s == Approx(150));  // would have delayed it
  plan.queue = Queue::priority;
  plan.jobs[3].priority = 5;
  out = run_hall(plan, 1);
  CHECK(*out.jobs[3].start_s == Approx(3));
}

TEST_CASE("a job waits for power, for clean energy until its deadline presses, and says so") {
  HallPlan plan = plan_of(4, {plain_job("a", 2, 0, 100, 1000), plain_job("b", 2, 0, 100, 1000)});
  plan.limit_w = StepSeries(2300);
  HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[1].start_s == Approx(100));
  CHECK(out.jobs[1].wait_by_s.at("power") == Approx(100));
  plan.limit_w = StepSeries(kNever);
  plan.carbon_kg_per_j = StepSeries(2);
  plan.carbon_kg_per_j.then(70, 0.5);
  plan.jobs[0].carbon_below = plan.jobs[1].carbon_below = 1;
  plan.jobs[1].deadline_s = 150;
  out = run_hall(plan, 1);
  CHECK(*out.jobs[0].start_s == Approx(70));
  CHECK(*out.jobs[1].start_s == Approx(50));
  CHECK(*out.jobs[1].in_time);
  plan.price_per_j = StepSeries(3e-8);
  plan.price_per_j.then(90, 1e-8);
  plan.jobs[0].price_below = 2e-8;
  out = run_hall(plan, 1);
  CHECK(*out.jobs[0].start_s == Approx(90));
  CHECK(out.jobs[0].wait_by_s.at("price") == Approx(20));  // 70 s for carbon before
}

TEST_CASE("a job that only waiting may keep below the budget starts only where it fits all the way") {
  HallPlan plan = plan_of(2, {plain_job("a", 2, 0, 100, 1000)});
  plan.limit_w = StepSeries(3000);
  plan.limit_w.then(60, 1000);
  plan.limit_w.then(90, 3000);
  CHECK(*run_hall(plan, 1).jobs[0].start_s == Approx(90));
  plan.cap = true;  // it could be capped, so it starts; there is no cap low enough, and the meter tells
  const HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[0].start_s == 0);
  CHECK(out.above_limit_s == Approx(30));
  CHECK(out.above_limit_j == Approx(30 * 1000));
}

TEST_CASE("a cap on one job leaves the other as it was") {
  Job a = plain_job("a", 2, 0, 100, 1000), b = plain_job("b", 2, 0, 100, 1000);
  a.priority = 1;
  a.points.push_back({500, 1.5, 600}), b.points.push_back({500, 1.5, 600});
  HallPlan plan = plan_of(4, {a, b});
  const HallOutcome free = run_hall(plan, 1);
  plan.limit_w = StepSeries(3500);
  plan.cap = true;
  const HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[0].end_s == *free.jobs[0].end_s);
  CHECK(out.jobs[0].energy.nodes_j == free.jobs[0].energy.nodes_j);
  // 100 s at 2/3 of its pace; then alone, without a cap.
  CHECK(*out.jobs[1].end_s == Approx(100 + 100.0 / 3).epsilon(1e-9));
  CHECK(out.jobs[1].energy.nodes_j == Approx(2 * (100 * 600 + 100.0 / 3 * 1000)).epsilon(1e-9));
  CHECK(std::abs(out.books_error) < 1e-9);
}

TEST_CASE("a pause waits for the next checkpoint and costs a start-up, no work") {
  Job job = plain_job("a", 2, 0, 100, 1000);
  job.start_up_s = 5, job.start_up_w = 300;
  job.checkpoint_s = 20, job.write_s = 2;  // every 22 s of training
  HallPlan plan = plan_of(2, {job});
  plan.limit_w = StepSeries(3000);
  plan.limit_w.then(40, 1000);
  plan.limit_w.then(100, 3000);
  plan.pause = true;
  const HallOutcome out = run_hall(plan, 1);
  // 5 + 2 x 22 = 49 s: the second checkpoint; again from 100 s: 5 + 3 x 22.
  CHECK(out.jobs[0].pauses == 1);
  CHECK(out.jobs[0].wait_by_s.at("power") == Approx(51));
  CHECK(*out.jobs[0].end_s == Approx(171));
  CHECK(out.above_limit_s == Approx(9));
  CHECK(out.jobs[0].lost_s == 0);
}

TEST_CASE(
    "an outage is ridden through as long as the battery carries the hall; then work since the checkpoint is lost") {
  Job job = plain_job("a", 2, 0, 100, 1000);
  job.checkpoint_s = 20;
  HallPlan plan = plan_of(2, {job});
  plan.outages = {{30, 60}};
  plan.battery = BatteryType{100e3, 2500, 1, 1, 1000};
  HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[0].end_s == Approx(100));
  CHECK(*out.battery_charge_j == Approx(100e3 - 30 * 2000 + 40 * 1000));
  CHECK(out.feed_j == Approx(70 * 2000 + 40 * 1000));
  plan.battery->capacity_j = 20e3;  // ten seconds
  out = run_hall(plan, 1);
  CHECK(out.dark_s == Approx(20));
  CHECK(out.jobs[0].lost_s == Approx(0).margin(1e-9));  // dark at 40 s, just after a checkpoint
  CHECK(*out.jobs[0].end_s == Approx(120));
  plan.battery.reset();
  out = run_hall(plan, 1);
  CHECK(out.jobs[0].lost_s == Approx(10));
  CHECK(*out.jobs[0].end_s == Approx(140));
  CHECK(out.feed_j == Approx(110 * 2000));
}

TEST_CASE("a failed node stops its job, which goes on on a spare from its checkpoint") {
  Job job = plain_job("a", 3, 0, 1e6, 1000);
  job.checkpoint_s = 1000;
  HallPlan plan = plan_of(4, {job});
  plan.clusters[0].spares = 1;
  plan.clusters[0].node_mtbf_s = 4e5, plan.clusters[0].repair_s = 3600;
  const HallOutcome out = run_hall(plan, 3);
  REQUIRE(out.jobs[0].failures > 0);
  CHECK(out.jobs[0].lost_s < 1000.0 * out.jobs[0].failures);
  CHECK(*out.jobs[0].end_s == Approx(1e6 + out.jobs[0].lost_s + out.jobs[0].wait_s).epsilon(1e-9));
  CHECK(run_hall(plan, 3).feed_j == out.feed_j);  // same seed, same bytes
  CHECK(run_hall(plan, 4).feed_j != out.feed_j);
}

TEST_CASE("nodes in maintenance are free when it begins") {
  Job job = plain_job("a", 2, 0, 100, 1000);
  job.checkpoint_s = 30;
  HallPlan plan = plan_of(3, {job, plain_job("b", 2, 5, 50, 1000)});
  plan.maintenance = {{0, {0, 1}, 120, 200}};
  HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[0].end_s == Approx(100));
  CHECK(*out.jobs[1].start_s == Approx(200));  // it would not be done by 120 s
  plan.maintenance = {{0, {0, 1}, 50, 200}};   // a starts elsewhere only if it can: one node is left
  out = run_hall(plan, 1);
  CHECK(*out.jobs[0].start_s == Approx(200));
}

TEST_CASE("placement: packed fills units, spread deals out, units keeps others away") {
  HallPlan plan = plan_of(8, {plain_job("a", 2, 0, 100, 500), plain_job("b", 2, 1, 100, 500)});
  plan.clusters[0].unit = {0, 0, 0, 0, 1, 1, 1, 1};
  const auto first = [&](Placing placing) {
    plan.placing = placing;
    std::map<int, int> node;
    for (const Stay& s : run_hall(plan, 1).stays) node[s.job] = s.first_node;
    return node;
  };
  CHECK(first(Placing::packed) == std::map<int, int>{{0, 0}, {1, 2}});
  CHECK(first(Placing::spread) == std::map<int, int>{{0, 0}, {1, 1}});
  CHECK(first(Placing::units) == std::map<int, int>{{0, 0}, {1, 4}});
}

TEST_CASE("a higher priority takes nodes at the next checkpoint of a lower one, which loses no work") {
  Job low = plain_job("low", 4, 0, 100, 1000), high = plain_job("high", 2, 30, 50, 1000);
  low.checkpoint_s = 20, low.start_up_s = 5, low.start_up_w = 300;
  high.priority = 1;
  HallPlan plan = plan_of(4, {low, high, plain_job("small", 2, 31, 1000, 500)});
  plan.queue = Queue::backfill;
  CHECK(*run_hall(plan, 1).jobs[1].start_s == Approx(105));
  plan.preempt = true;
  const HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[1].start_s == Approx(45));  // two checkpoints after the start-up
  CHECK(*out.jobs[1].end_s == Approx(95));
  CHECK(out.jobs[0].pauses == 1);
  CHECK(out.jobs[0].lost_s == 0);
  CHECK(*out.jobs[0].end_s == Approx(95 + 5 + 60));  // before "small", which came later
  CHECK(*out.jobs[2].start_s == Approx(160));
  CHECK(std::abs(out.books_error) < 1e-9);
}

TEST_CASE("jobs without checkpoints, and of equal priority, keep their nodes") {
  HallPlan plan = plan_of(4, {plain_job("low", 4, 0, 100, 1000), plain_job("high", 2, 30, 50, 1000)});
  plan.queue = Queue::priority, plan.preempt = true;
  plan.jobs[1].priority = 1;
  CHECK(*run_hall(plan, 1).jobs[1].start_s == Approx(100));
  plan.jobs[0].checkpoint_s = 20;
  CHECK(*run_hall(plan, 1).jobs[1].start_s == Approx(40));
  plan.jobs[1].priority = 0;
  CHECK(*run_hall(plan, 1).jobs[1].start_s == Approx(100));
}

TEST_CASE("two jobs on the uplinks of the same units slow each other; a cap on one changes the other by links alone") {
  // A step of 0.6 of work and 0.4 of traffic; both jobs have a node in each unit, whose uplinks carry one of them.
  Job a = plain_job("a", 2, 0, 100, 1000), b = plain_job("b", 2, 0, 1000, 1000);
  a.priority = 1;
  a.points[0].links = {{1, 1, 1000}, {2, 1.4, 900}, {4, 2.2, 800}};
  b.points[0].links = a.points[0].links;
  // At its cap the work takes 1.1 and the traffic 0.4.
  b.points.push_back({500, 1.5, 600, {{1, 1, 600}, {2, 1.9 / 1.5, 600}, {4, 2.7 / 1.5, 600}}});
  HallPlan plan = plan_of(4, {a, b});
  plan.clusters[0].unit = {0, 0, 1, 1};
  plan.clusters[0].uplink_nodes = 1;
  plan.placing = Placing::spread;
  plan.cap = true;
  // Either sends for half of its time then: 0.4 x (1 + 0.5) of 1.2.
  HallOutcome out = run_hall(plan, 1);
  CHECK(*out.jobs[0].end_s == Approx(120).epsilon(1e-9));
  CHECK(out.jobs[0].links_s == Approx(20).epsilon(1e-9));
  CHECK(out.jobs[0].energy.nodes_j == Approx(2 * 100 * (0.5 * 1000 + 0.5 * 1.4 * 900)).epsilon(1e-9));
  CHECK(std::abs(out.books_error) < 1e-9);
  plan.limit_w = StepSeries(3500);
  out = run_hall(plan, 1);
  double of_a = 0.4, of_b = 0.4 / 1.5;  // part of its time that it sends
  for (int i = 0; i < 200; ++i) {
    const double next_a = 0.4 * (1 + of_b) / (1 + 0.4 * of_b);
    of_b = 0.4 / 1.5 * (1 + of_a) / (1 + 0.4 / 1.5 * of_a), of_a = next_a;
  }
  CHECK(*out.jobs[0].end_s == Approx(100 * (1 + 0.4 * of_b)).epsilon(1e-9));
  CHECK(*out.jobs[0].end_s < 120);
  CHECK(std::abs(out.books_error) < 1e-9);
  // Wide uplinks, or units of its own: nothing.
  plan.placing = Placing::packed;
  CHECK(*run_hall(plan, 1).jobs[0].end_s == Approx(100));
  plan.placing = Placing::spread, plan.clusters[0].uplink_nodes = 2;
  CHECK(*run_hall(plan, 1).jobs[0].end_s == Approx(100));
}

TEST_CASE("what can never run is refused in one line") {
  HallPlan plan = plan_of(4, {plain_job("a", 5, 0, 1, 1000)});
  CHECK_THROWS_WITH(check_hall(plan), Catch::Contains("a can never start: it wants 5 nodes, small has 4"));
  plan = plan_of(4, {plain_job("a", 4, 0, 1, 1000)});
  plan.limit_w = StepSeries(3000);
  CHECK_THROWS_WITH(check_hall(plan), Catch::Contains("a can never start: the hall takes 4 kW with it alone"));
  plan.limit_w = StepSeries(300);
  CHECK_THROWS_WITH(check_hall(plan), Catch::Contains("below the 400 W that the hall takes with every node idle"));
  // 4 nodes of 10 ms, repaired at once: 400 failures a second of a job that each of them begins anew.
  plan = plan_of(4, {plain_job("a", 4, 0, 1000, 1000)});
  plan.clusters[0].node_mtbf_s = 0.01, plan.clusters[0].repair_s = 0;
  CHECK_THROWS_WITH(check_hall(plan), Catch::Contains("4e+05 nodes would fail in 0.0116 days; at most 1e+05"));
  plan.clusters[0].node_mtbf_s = 1;
  check_hall(plan);
  CHECK_THROWS_WITH(run_hall(plan, 1), Catch::Contains("nodes fail too often: 0 of 1 jobs are done"));
}

TEST_CASE("demand is the highest mean of a quarter of an hour of each month") {
  std::vector<Moment> power(3);
  power[0].feed_w = 1000;
  power[1].time_s = 900 * 2 + 450, power[1].feed_w = 3000;
  power[2].time_s = 900 * 3, power[2].feed_w = 500;
  CHECK(demand_by_month(power, 40 * 86400.0) == std::vector<double>{2000, 500});
}

TEST_CASE("books close in a thousand random halls with failures, outages and batteries") {
  SplitMix64 dice = random_stream(7, "random halls"), links = random_stream(7, "random links"),
             pues = random_stream(7, "random pues");
  const auto below = [&](double high) { return uniform(dice) * high; };
  const auto one_in = [&](int n) { return below(n) < 1; };
  double worst = 0;
  int stopped = 0, failures = 0, paused = 0, dark = 0;
  double slowed_s = 0;
  for (int i = 0; i < 1000; ++i) {
    HallPlan plan;
    for (int c = 0; c < 1 + static_cast<int>(below(2)); ++c) {
      hall::Cluster cluster = small_cluster(4 + static_cast<int>(below(20)));
      cluster.idle_w = below(300);
      cluster.network_w = below(2000);
      cluster.rectifiers = {below(200), below(0.05), 0};
      cluster.upstream = {{below(100), below(0.02), below(1e-7)}};
      cluster.spares = static_cast<int>(below(2));
      for (int n = 0; n < cluster.nodes; ++n) cluster.unit.push_back(n / 4);
      if (one_in(2)) cluster.node_mtbf_s = 2e4 + below(2e5), cluster.repair_s = below(1e4);
      plan.clusters.push_back(cluster);
    }
    for (int j = 0; j < 2 + static_cast<int>(below(12)); ++j) {
      Job job = plain_job("j", 1, below(3e4), 10 + below(2e4), 500 + below(1000));
      job.cluster = static_cast<int>(below(static_cast<double>(plan.clusters.size())));
      const hall::Cluster& cluster = plan.clusters[static_cast<size_t>(job.cluster)];
      job.nodes = 1 + static_cast<int>(below(cluster.nodes - cluster.spares));
      job.priority = static_cast<int>(below(3));
      if (one_in(2)) job.start_up_s = below(300), job.start_up_w = below(600);
      if (one_in(2)) job.checkpoint_s = 10 + below(2000), job.write_s = below(20);
      for (int k = 0; k < static_cast<int>(below(3)); ++k)
        job.points.push_back({500, job.points.back().slowdown * (1 + below(0.3)), job.points.back().node_w * 0.8});
      for (CapPoint& p : job.points) {
        const double rises = uniform(links) - 0.3, falls = 0.2 * uniform(links);
        if (rises > 0) p.links = {{1, 1, p.node_w}, {2, 1 + rises, p.node_w * (1 - falls)}};
      }
      plan.jobs.push_back(job);
    }
    plan.queue = static_cast<Queue>(static_cast<int>(below(3)));
    plan.placing = static_cast<Placing>(static_cast<int>(below(3)));
    plan.cap = one_in(2), plan.pause = one_in(2);
    for (hall::Cluster& c : plan.clusters)
      if (uniform(links) < 0.5) c.uplink_nodes = 0.5 + 3 * uniform(links);
    plan.preempt = plan.queue != Queue::first_come && uniform(links) < 0.5;
    plan.cooling = {below(500), below(0.3), below(0.01), 15, uniform(pues) < 0.5, one_in(2), 1.8, 10};
    for (int h = 0; h < 40; ++h) {
      plan.outside_c.then(3600.0 * h, below(40));
      plan.carbon_kg_per_j.then(3600.0 * h, below(1e-6));
      plan.price_per_j.then(3600.0 * h, below(1e-7));
    }
    if (one_in(2))
      for (int h = 0; h < 40; ++h) plan.limit_w.then(3600.0 * h, 8000 + below(40000));
    if (one_in(2)) plan.battery = BatteryType{below(1e8), below(2e4), 0.9, 0.95, below(5e3)};
    if (one_in(3)) plan.outages = {{5000, 5000 + below(4000)}};
    if (one_in(3)) plan.maintenance = {{0, {0, 1, 2}, 10000, 15000}};
    plan.end_s = 40 * 3600.0;
    const HallOutcome out = run_hall(plan, static_cast<uint64_t>(i));
    worst = std::max(worst, std::abs(out.books_error));
    double sum_j = 0, held_s = 0, kg = 0, water_l = 0, money = 0;
    for (const JobOutcome& job : out.jobs) {
      sum_j += job.energy_j, kg += job.kg_co2e, water_l += job.water_l, money += *job.cost_energy;
      held_s += job.node_s;
      failures += job.failures, paused += job.pauses, slowed_s += job.links_s;
      // On nodes or waiting, from arrival to the end; work done is what speed and caps allow.
      const double to_s = job.end_s.value_or(out.end_s);
      if (job.arrival_s < out.end_s) CHECK(job.run_s + job.wait_s == Approx(to_s - job.arrival_s).epsilon(1e-9));
      if (job.end_s) ++stopped;
    }
    dark += out.dark_s > 0 ? 1 : 0;
    if (held_s > 0)
      for (const auto& [jobs, meter] :
           {std::pair{sum_j, out.feed_j}, {kg, out.kg_co2e}, {water_l, out.water_l}, {money, *out.cost_energy}})
        worst = std::max(worst, std::abs(jobs / meter - 1));
    CHECK(out.peak_w >= out.mean_w);
  }
  CHECK(worst < 1e-9);
  CHECK(stopped > 3000);
  CHECK(failures > 300);
  CHECK(paused > 30);
  CHECK(dark > 100);
  CHECK(slowed_s > 1e5);
}
