// A site's power as its utility sees it, against closed forms.
#include "power/grid_limits.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace {

using namespace tw;

PiecewiseWatts square(double high_w, double half_s, int periods) {
  PiecewiseWatts w;
  w.begin(0);
  for (int i = 0; i < periods; ++i) w.append(2 * i * half_s + half_s, high_w), w.append(2 * (i + 1) * half_s, 0);
  return w;
}

}  // namespace

TEST_CASE("a square wave of 100 MW at 0.5 Hz through battery and capacitor equals the closed form") {
  const PiecewiseWatts load = square(100e6, 1, 20);
  const double tau = 0.3;
  Smoothing s;
  s.battery_power = watts(20e6);
  s.capacitor = seconds(tau);
  const SmoothedPower out = smooth(s, load, 0, 40);
  CHECK(out.battery_given_j == Approx(20 * 20e6).epsilon(1e-9));
  CHECK(out.battery_taken_j == Approx(20 * 20e6).epsilon(1e-9));
  CHECK(out.battery_swing_j == Approx(20e6).epsilon(1e-6));
  CHECK(out.capacitor_swing_j == Approx(tau * 60e6 * std::tanh(1 / (2 * tau))).epsilon(1e-6));
  double energy = 0;
  for (const CurvePiece& p : out.curve) energy += p.integral_j();
  CHECK(energy == Approx(40 * 50e6).epsilon(1e-9));
  for (const auto& [curve, half_w, constant] :
       {std::tuple{curve_of(load, 0, 40), 50e6, 0.0}, std::tuple{out.curve, 30e6, tau}})
    for (const SpectrumLine& line : spectrum(curve, 0.05, 20)) {
      const auto k = static_cast<int>(std::lround(line.hz / 0.5));
      const bool harmonic = std::abs(line.hz - 0.5 * k) < 1e-9 && k % 2 == 1;
      const double w = 2 * M_PI * line.hz * constant;
      const double wanted = harmonic ? 4 / M_PI * half_w / k / std::sqrt(1 + w * w) : 0;
      CAPTURE(line.hz);
      CHECK(line.amplitude_w == Approx(wanted).epsilon(1e-6).margin(1e-6 * half_w));
    }
}

TEST_CASE("ramps, floors and small batteries as counted by hand; the three limits are judged") {
  const PiecewiseWatts load = square(100e6, 5, 4);
  Smoothing s;
  s.floor = watts(40e6);
  SmoothedPower out = smooth(s, load, 0, 40);
  CHECK(out.burned_j == Approx(20 * 40e6));
  s.ramp_up = watts(20e6), s.ramp_down = watts(30e6);  // 3 s up, 2 s down
  out = smooth(s, load, 0, 40);
  CHECK(out.withheld_j == Approx(4 * 3 * 30e6));
  CHECK(out.burned_j == Approx(20 * 40e6 + 4 * 2 * 30e6));
  GridLimits limits;
  limits.ramp = watts(25e6), limits.dynamic_range = watts(70e6), limits.amplitude = watts(1e6);
  GridAnswer answer = ask_grid(limits, out.curve, spectrum(out.curve, 0.05, 20));
  CHECK(*answer.ramp.value == Approx(30e6));
  CHECK_FALSE(*answer.ramp.kept);
  CHECK(*answer.dynamic_range.value == Approx(60e6));
  CHECK(*answer.dynamic_range.kept);
  CHECK(*answer.amplitude.at == Approx(0.1));
  CHECK_FALSE(*answer.amplitude.kept);
  const Curve raw = curve_of(load, 0, 40);
  answer = ask_grid({}, raw, {});
  CHECK(*answer.ramp.value == Approx(100e6));  // a step, over a second
  CHECK_FALSE(answer.ramp.kept.has_value());
  limits.window = seconds(0.5);
  CHECK(*ask_grid(limits, raw, {}).dynamic_range.value == Approx(100e6));
  // Where there is nothing to look at, nothing is kept.
  limits.ramp_over = seconds(41), limits.band_from = limits.band_to = Frequency::from_value(0.06);
  answer = ask_grid(limits, raw, spectrum(raw, 0.05, 20));
  for (const LimitAnswer* unseen : {&answer.ramp, &answer.amplitude}) {
    CHECK(unseen->limit);
    CHECK_FALSE(unseen->value);
    CHECK_FALSE(unseen->kept);
  }
  // A battery that is empty half way lets the rest pass.
  Smoothing small;
  small.battery_power = watts(50e6), small.battery_capacity = joules(250e6);
  out = smooth(small, load, 0, 40);
  CHECK(out.curve.front().level_w == Approx(50e6));
  CHECK(out.curve[1].begin_s == Approx(2.5));
  CHECK(out.curve[1].level_w == Approx(100e6));
}
