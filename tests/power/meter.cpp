#include "power/meter.hpp"

#include <catch2/catch.hpp>

#include "reference_cluster.hpp"
#include "traces.hpp"

using namespace tw;

TEST_CASE("a meter is late, polled and rounded") {
  PiecewiseWatts power(100);
  power.begin(0);
  power.append(10, 1000.4);
  power.append(20, 500);
  const Readings r = sample(Meter{2, 0.7, 1}, power, 0, 12);
  REQUIRE(r.watts.size() == 7);
  CHECK(r.watts[0] == 100);  // still what was before
  CHECK(r.watts[1] == 1000);
  CHECK(r.watts[5] == 1000);  // at 10 s: power of 9.3 s
  CHECK(r.watts[6] == 500);
}

TEST_CASE("integrals of piecewise power are exact and sums agree") {
  PiecewiseWatts a(10), b(1);
  a.begin(-5);
  a.append(0, 100);
  a.append(7, 200);
  b.begin(-1);
  b.append(3, 50);
  CHECK(a.integral(-5, 7) == Approx(500 + 1400));
  CHECK(a.integral(-7, 8) == Approx(20 + 1900 + 10));
  const PiecewiseWatts sum = PiecewiseWatts::sum({&a, &b});
  CHECK(sum.integral(-5, 7) == Approx(a.integral(-5, 7) + b.integral(-5, 7)).epsilon(1e-12));
  CHECK(sum.at(2) == 250);
  CHECK(sum.at(5) == 201);
  CHECK(a.peak(-5, 7).time_s == 0);
  CHECK(a.affine(5, 2).at(1) == 405);
}

TEST_CASE("simulated traces follow the measured ones event by event") {
  const Cluster cluster = test::reference_cluster();
  test::LoraTimes t;  // 8 nodes
  const Timeline line = test::lora_timeline(t);
  const PowerRun run = integrate_power(cluster, line);
  const std::string stem = test::reference_file("smc_v4.0/traces/8n_llama2_70b_lora");
  CHECK(test::trace_correlation(stem, line,
                                [&](double from, double to) { return run.group_dc[0].integral(from, to); }) >= 0.87);
  // A flat line follows nothing.
  CHECK(test::trace_correlation(stem, line, [](double from, double to) { return 5000 * (to - from); }) == 0);
}

TEST_CASE("quantiles over nodes enclose the mean when nodes differ") {
  Cluster cluster = test::reference_cluster();
  cluster.node.power.spread = 0.013;
  const PowerRun run = integrate_power(cluster, test::lora_timeline({}));
  const NodeSeries series = node_series(run, dc_meter, 0, run.run_end_s);
  CHECK(series.time_s.size() > 100);
  for (size_t k = 1; k < series.time_s.size(); ++k) {
    CHECK(series.p5_w[k] <= series.mean_w[k]);
    CHECK(series.p95_w[k] >= series.mean_w[k]);
  }
}
