#include "power/ramps.hpp"

#include <catch2/catch.hpp>

using namespace tw;

TEST_CASE("swings of a square wave in closed form") {
  PiecewiseWatts power;
  power.begin(0);
  for (int k = 0; k < 10; ++k) {
    power.append(20 * k + 15, 1000);
    power.append(20 * k + 20, 200);
  }
  const PowerSwings s = power_swings(power, 0, 200, {1, 10, 500});
  CHECK(s.mean_w == Approx(800));
  CHECK(s.sd_w == Approx(std::sqrt(0.75 * 200 * 200 + 0.25 * 600 * 600)));
  CHECK(s.p5_w == 200);
  CHECK(s.p50_w == 1000);
  CHECK(s.least_w == 200);
  CHECK(s.peak_w == 1000);
  CHECK(s.largest_step_w == -800);
  REQUIRE(s.ramps.size() == 2);  // the third window is longer than the wave
  CHECK(s.ramps[0].up_w_per_s == Approx(800));
  CHECK(s.ramps[0].down_w_per_s == Approx(800));
  CHECK(s.ramps[0].down_at_s == Approx(15));
  // 10 s windows: 1000 W then half of it at 200 W.
  CHECK(s.ramps[1].down_w_per_s == Approx(400.0 / 10));
}

TEST_CASE("a step shorter than the window ramps less") {
  PiecewiseWatts power(0);
  power.begin(0);
  power.append(50, 100);
  power.append(50.5, 900);
  power.append(100, 100);
  const PowerSwings s = power_swings(power, 0, 100, {1});
  CHECK(s.ramps[0].up_w_per_s == Approx(400));
}

TEST_CASE("steady power does not ramp by what its integrals round") {
  PiecewiseWatts power(0);
  power.begin(0);
  for (int k = 1; k <= 1000; ++k) power.append(k * 0.1, k % 2 == 0 ? 115321.7 : 115321.7 * (1 + 1e-15));
  for (const Ramp& r : power_swings(power, 0, 100, {1, 10}).ramps) {
    CHECK(r.up_w_per_s == 0);
    CHECK(r.down_w_per_s == 0);
  }
}
