// Who may start: power now and later, heads of queues that others pass without moving them, and what is refused.
#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "hall/hall.hpp"
#include "jobs.hpp"

namespace {

using namespace tw;
using namespace tw::hall;
using test::plain_job;

// A node without a job draws 100 W; there is nothing between nodes and feed.
HallPlan queue_plan(int nodes, std::vector<Job> jobs) {
  HallPlan plan;
  plan.queue = Queue::backfill;
  plan.clusters.resize(1);
  plan.clusters[0].name = "small", plan.clusters[0].nodes = nodes, plan.clusters[0].idle_w = 100;
  plan.jobs = std::move(jobs);
  return plan;
}

double start_of(const HallOutcome& out, size_t j) {
  return out.jobs[j].start_s.value_or(-1);
}

}  // namespace

TEST_CASE("boards that start up take no cap: a job starts when the others are below the budget with that") {
  Job a = plain_job("a", 2, 0, 100, 1000);
  a.points.push_back({500, 1.5, 600});
  a.start_up_s = 20, a.start_up_w = 1000;
  Job b = a;
  b.name = "b", b.arrival_s = 1;
  HallPlan plan = queue_plan(4, {a, b});
  plan.limit_w = StepSeries(3500);
  plan.cap = true;
  for (const bool pause : {false, true}) {
    plan.pause = pause;
    check_hall(plan);
    const HallOutcome out = run_hall(plan, 1);
    CHECK(start_of(out, 1) == Approx(20));  // when a can be capped
    CHECK(out.jobs[1].wait_by_s.at("power") == Approx(19));
    CHECK(out.above_limit_s == 0);
    CHECK(out.jobs[0].pauses + out.jobs[1].pauses == 0);
    // a is capped while b starts up, b from then until a is done.
    const double a_end_s = 40 + 100 - 20 / 1.5;
    CHECK(*out.jobs[0].end_s == Approx(a_end_s).epsilon(1e-9));
    CHECK(*out.jobs[1].end_s == Approx(a_end_s + 100 - (a_end_s - 40) / 1.5).epsilon(1e-9));
  }
}

TEST_CASE("backfill keeps whole units for the head where jobs share none") {
  HallPlan plan = queue_plan(
      12, {plain_job("s1", 1, 0, 100, 500), plain_job("s2", 1, 0, 150, 500), plain_job("big", 5, 10, 50, 500),
           plain_job("late", 1, 20, 100, 500), plain_job("short", 1, 21, 50, 500)});
  plan.clusters[0].unit = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  plan.placing = Placing::units;
  const HallOutcome out = run_hall(plan, 1);
  CHECK(start_of(out, 2) == Approx(100));  // the units of s1 and the third
  CHECK(out.jobs[2].wait_by_s.at("placement") == Approx(90));
  CHECK(start_of(out, 3) == Approx(150));
  CHECK(start_of(out, 4) == Approx(21));  // done before
}

TEST_CASE("backfill keeps power for a head of one cluster from jobs of another") {
  HallPlan plan = queue_plan(
      4, {plain_job("long", 3, 0, 1000, 1000), plain_job("wide", 4, 1, 10, 1000), plain_job("first", 1, 2, 40, 1000),
          plain_job("head", 4, 10, 100, 1000), plain_job("second", 1, 30, 40, 1000)});
  plan.clusters.push_back(plan.clusters[0]);
  plan.clusters[1].name = "other";
  plan.jobs[3].cluster = 1;
  plan.limit_w = StepSeries(7500);
  HallOutcome out = run_hall(plan, 1);
  CHECK(start_of(out, 2) == Approx(2));
  CHECK(start_of(out, 3) == Approx(42));  // when "first" is done
  CHECK(start_of(out, 4) == Approx(142));
  plan.jobs[4].work_s = 12;  // in time
  out = run_hall(plan, 1);
  CHECK(start_of(out, 3) == Approx(42));
  CHECK(start_of(out, 4) == Approx(142));  // there is no power beside "first" and "long"
  plan.limit_w = StepSeries(8100);
  CHECK(start_of(run_hall(plan, 1), 3) == Approx(10));
}

TEST_CASE("what passes the head is taken to run at its lowest cap, and pushes nobody down") {
  Job run = plain_job("run", 2, 0, 100, 1000), head = plain_job("head", 4, 1, 100, 700),
      small = plain_job("small", 2, 2, 90, 1000);
  run.priority = head.priority = 5;
  head.points.push_back({500, 2, 400}), small.points.push_back({500, 2, 500});
  HallPlan plan = queue_plan(4, {run, head, small});
  plan.limit_w = StepSeries(3200);
  plan.cap = true;
  HallOutcome out = run_hall(plan, 1);
  CHECK(start_of(out, 1) == Approx(100));
  CHECK(start_of(out, 2) == Approx(200));
  plan.jobs[2].work_s = 45;  // 90 s at its cap
  out = run_hall(plan, 1);
  CHECK(start_of(out, 1) == Approx(100));
  CHECK(start_of(out, 2) == Approx(2));
  CHECK(*out.jobs[2].end_s == Approx(92));
  plan.limit_w = StepSeries(4000);  // no cap is needed
  plan.jobs[2].work_s = 90;
  CHECK(start_of(run_hall(plan, 1), 2) == Approx(2));
  // One that would have "run" capped first, and so be done later.
  plan.limit_w = StepSeries(3200);
  plan.jobs[0].priority = 0, plan.jobs[0].points.push_back({500, 2, 400});
  plan.jobs[2].priority = 1, plan.jobs[2].work_s = 40, plan.jobs[2].points[1].node_w = 900;
  CHECK(start_of(run_hall(plan, 1), 1) == Approx(100));
}

TEST_CASE("where it may only wait a job fits until its end under the weather and the maintenance to come") {
  HallPlan plan = queue_plan(4, {plain_job("a", 2, 0, 60, 1000)});
  plan.cooling.proportional = 0.2, plan.cooling.per_degree = 0.01, plan.cooling.above_c = 15;
  plan.outside_c = StepSeries(15);
  plan.outside_c.then(50, 35);  // 3.08 kW with a
  plan.outside_c.then(90, 15);  // 2.64 kW
  plan.limit_w = StepSeries(2800);
  check_hall(plan);
  HallOutcome out = run_hall(plan, 1);
  CHECK(start_of(out, 0) == Approx(90));
  CHECK(out.above_limit_s == 0);
  plan = queue_plan(6, {plain_job("a", 2, 0, 100, 1000), plain_job("b", 2, 0, 100, 1000)});
  plan.maintenance = {{0, {0, 1}, 0, 50}};
  plan.limit_w = StepSeries(4100);  // 4.2 kW when they are back
  out = run_hall(plan, 1);
  CHECK(start_of(out, 1) == Approx(100));
  CHECK(out.above_limit_s == 0);
}

TEST_CASE("a daily budget repeats for ever, and what never fits into it is refused") {
  HallPlan plan = queue_plan(4, {plain_job("a", 2, 0, 160, 1000)});
  plan.limit_w = StepSeries(1000);
  plan.limit_w.then(80, 3000);
  plan.limit_w.repeat(240);
  CHECK(plan.limit_w.at(240e3 + 79) == 1000);
  CHECK(plan.limit_w.at(240e3 + 80) == 3000);
  CHECK(plan.limit_w.next_change_s(239) == 240);
  CHECK(plan.limit_w.next_change_s(240) == 320);
  for (const double arrival_s : {0.0, 100.0, 240e3 + 100}) {
    plan.jobs[0].arrival_s = arrival_s;
    check_hall(plan);
    CHECK(start_of(run_hall(plan, 1), 0) == Approx(arrival_s < 80 ? 80 : arrival_s + 220));
  }
  plan.jobs[0].work_s = 170;
  CHECK_THROWS_WITH(check_hall(plan),
                    Catch::Contains("a can never start: it takes 0.04722 h, there is power for it for "
                                    "0.04444 h at a time, and it may only wait"));
  plan.pause = true;  // it starts, and the budget is not kept
  check_hall(plan);
}

TEST_CASE("a budget is held against idle nodes of the same hour, while the hall is looked at") {
  HallPlan plan = queue_plan(4, {plain_job("a", 2, 0, 100, 1000)});
  plan.cooling.proportional = 0.2, plan.cooling.per_degree = 0.01, plan.cooling.above_c = 15;
  plan.outside_c = StepSeries(15);
  plan.limit_w = StepSeries(3000);
  plan.limit_w.then(1000, 500);
  check_hall(plan);
  plan.outside_c.then(1000, 35);  // idle nodes take 560 W then
  check_hall(plan);
  CHECK(*run_hall(plan, 1).jobs[0].end_s == Approx(100));  // nobody looks at the low hour
  plan.end_s = 2000;
  CHECK_THROWS_WITH(check_hall(plan),
                    Catch::Contains("falls to 500 W, below the 560 W that the hall takes with every"));
  plan.end_s = kNever, plan.jobs[0].arrival_s = 950, plan.jobs[0].work_s = 10;
  plan.jobs.push_back(plain_job("b", 3, 955, 10, 1000));  // both cannot run at once
  plan.limit_w.then(1050, 3000), plan.limit_w.then(2000, 500);
  plan.jobs[1].carbon_below = 1, plan.carbon_kg_per_j = StepSeries(2);
  CHECK_THROWS_AS(run_hall(plan, 1), DoesNotFit);  // b waits for cleaner energy until then
}

TEST_CASE("who waits for the feed to come back says so") {
  HallPlan plan = queue_plan(4, {plain_job("a", 2, 0, 100, 500), plain_job("late", 2, 40, 10, 500)});
  plan.outages = {{30, 60}};
  HallOutcome out = run_hall(plan, 1);
  CHECK(out.jobs[0].wait_by_s.at("outage") == Approx(30));
  CHECK(out.jobs[1].wait_by_s.at("outage") == Approx(20));
  plan.battery = BatteryType{100e3, 2500, 1, 1, 1000};  // a goes on, and nothing starts
  out = run_hall(plan, 1);
  CHECK(out.jobs[0].wait_s == 0);
  CHECK(out.jobs[1].wait_by_s == std::map<std::string, double>{{"outage", 20}});
}
