// A hall and its power delivery: ratings, what a PUE covers, a battery's charge over time.
#include <catch2/catch.hpp>

#include "hall/accounts.hpp"
#include "hall/hall.hpp"

namespace {

using namespace tw;
using namespace tw::hall;

Job steady_job(const std::string& name, double arrival_s, double node_w) {
  Job job;
  job.name = job.kind = name;
  job.nodes = 2, job.arrival_s = arrival_s, job.work_s = 100;
  job.points = {{0, 1, node_w}};
  return job;
}

// Four nodes on two buses under one UPS, which loses 5 %.
HallPlan rated_plan(std::vector<Job> jobs, double ups_w) {
  HallPlan plan;
  hall::Cluster c;
  c.name = "small", c.nodes = 4, c.idle_w = 100;
  c.upstream = {{0, 0.05, 0}};
  c.rated = {{"bus", 2500, {}, {0, 0, 1, 1}}, {"UPS", ups_w, {0, 0.05, 0}, {0, 0}}};
  plan.clusters = {c};
  plan.jobs = std::move(jobs);
  return plan;
}

}  // namespace

TEST_CASE("jobs that together ask a stage for more than it gives are refused: which, when, watts") {
  HallPlan plan = rated_plan({steady_job("a", 0, 1000), steady_job("b", 50, 1000)}, 4000);
  CHECK(run_hall(plan, 1).finished == 2);  // at the rating, not beyond
  plan.clusters[0].rated[1].rating_w = 3900;
  CHECK_THROWS_WITH(run_hall(plan, 1), "UPS-0 of small is asked for 4000 W at 50.000 s; it gives 3900 W (a, b)");
  plan.jobs[1].arrival_s = 100;  // one after the other
  CHECK(run_hall(plan, 1).finished == 2);
  plan.jobs[1].points[0].highest_w = 1300;  // in its highest phase
  CHECK_THROWS_WITH(run_hall(plan, 1), "bus-0 of small is asked for 2600 W at 100.000 s; it gives 2500 W (b)");
  // What caps keep below the budget is below the rating, too.
  plan = rated_plan({steady_job("a", 0, 1000), steady_job("b", 50, 1000)}, 3900);
  plan.jobs[1].points.push_back({500, 1.5, 600});
  plan.cap = true, plan.limit_w = StepSeries(1.05 * 3500);
  CHECK(run_hall(plan, 1).finished == 2);
  // A stage above another is asked for what that takes.
  plan = rated_plan({steady_job("a", 0, 1000)}, 4000);
  plan.clusters[0].rated.push_back({"PDU", 2300, {}, {0}});
  CHECK_THROWS_WITH(run_hall(plan, 1), Catch::Contains("PDU-0 of small is asked for 2310 W"));
}

TEST_CASE("a PUE covers all between the grid and its base, so stages above the rectifiers are inside it") {
  HallPlan plan = rated_plan({steady_job("a", 0, 1000)}, 4000);
  plan.clusters[0].rectifiers = {50, 0.02, 0};
  plan.clusters[0].network_w = 300;
  const double dc_w = 2200, ac_w = 1.02 * dc_w + 50, losses_w = 1.05 * ac_w - dc_w;
  plan.cooling.of_pue = true, plan.cooling.proportional = 0.3;
  for (const bool dc : {false, true}) {
    plan.cooling.dc_base = dc;
    const HallOutcome out = run_hall(plan, 1);
    CHECK(out.feed_j == Approx(100 * 1.3 * ((dc ? dc_w : ac_w) + 300)).epsilon(1e-12));
    CHECK(out.energy.loss_j == Approx(100 * losses_w).epsilon(1e-12));
    CHECK(*out.pue == Approx(1.3).epsilon(1e-12));
    CHECK(std::abs(out.books_error) < 1e-12);
  }
  plan.cooling.proportional = 0.01;  // less than is lost, which is there all the same
  CHECK(run_hall(plan, 1).feed_j == Approx(100 * (dc_w + losses_w + 300)).epsilon(1e-12));
  // A law of cooling goes by all that is cooled, those losses included; PUE by the base all the same.
  plan.cooling.of_pue = plan.cooling.dc_base = false, plan.cooling.proportional = 0.3;
  const HallOutcome out = run_hall(plan, 1);
  CHECK(out.feed_j == Approx(100 * 1.3 * (dc_w + losses_w + 300)).epsilon(1e-12));
  CHECK(*out.pue == Approx(1.3 * (dc_w + losses_w + 300) / (ac_w + 300)).epsilon(1e-12));
}

TEST_CASE("one more watt of a node at the feed is the slope of all stages") {
  hall::Cluster c;
  c.rectifiers = {50, 0.02, 1e-6};
  c.upstream = {{10, 0.01, 2e-6}, {100, 0.04, 0}};
  const auto feed_w = [&](double dc_w) { return dc_w + delivery_loss_w(c, dc_w); };
  CHECK(delivery_slope(c, 5000) == Approx((feed_w(5001) - feed_w(4999)) / 2).epsilon(1e-9));
}

TEST_CASE("the charge of a battery stands beside the power of a moment as that moment begins") {
  HallPlan plan = rated_plan({steady_job("a", 50, 1000)}, 4000);
  plan.clusters[0].rated.clear(), plan.clusters[0].upstream.clear();
  plan.battery = BatteryType{50e3, 2000, 1, 1, 0};
  plan.limit_w = StepSeries(1e4);
  plan.limit_w.then(100, 2000);
  plan.cap = true;
  const HallOutcome out = run_hall(plan, 1);  // from 100 to 150 s it gives 200 W
  REQUIRE(out.power.size() >= 3);
  for (const Moment& m : out.power) CHECK(m.charge_j == Approx(m.time_s <= 100 ? 50e3 : 40e3));
  CHECK(*out.battery_charge_j == Approx(40e3));
}
