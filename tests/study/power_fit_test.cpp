// A node's power profile, fitted to series that another profile made.
#include "study/power_fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "simulated.hpp"

using namespace tw;

namespace {

PowerReadings series_of(const LoadedScenario& s, bool gpu = false) {
  const auto r = simulate_all({s}, {}, 1, 600, {}).front().result;
  return {r.series.time_s, r.series.mean_w, gpu};
}

const FittedWatts& constant(const PowerFit& f, const std::string& name) {
  for (const FittedWatts& c : f.constants)
    if (c.name == name) return c;
  throw std::out_of_range(name);
}

}  // namespace

TEST_CASE("constants of a node's power come back from a series that they made") {
  LoadedScenario truth = loaded(k8);
  NodePower& power = truth.scenario.cluster.node.power;
  const NodePower profile = power;
  power.host_base = watts(power.host_base.value() + 180);
  power.gap_power = watts(power.gap_power.value_or(watts(200)).value() + 25);
  const PowerFit fit = fit_power(loaded(k8), series_of(truth), 2);
  CHECK(constant(fit, "host_base").after == Approx(power.host_base.value()).margin(15));
  CHECK(fit.rms_after_w < 2);
  CHECK(fit.rms_before_w > 100);
  CHECK(std::abs(fit.bias_after_w) < 0.5);
  // Loads of switches and adapters come and go together: one of them is held, and the other named.
  bool told = false;
  for (const FittedWatts& c : fit.constants) told = told || c.held.find("cannot tell") != std::string::npos;
  CHECK(told);
}

TEST_CASE("a series of GPUs tells what they draw between kernels, and nothing of the node") {
  const LoadedScenario base = loaded(k8);
  const int gpus = base.scenario.cluster.node.gpus;
  LoadedScenario bare = base;
  bare.scenario.cluster.node.power = NodePower{};
  bare.scenario.cluster.node.power.gap_power = watts(300);
  PowerReadings gpu = series_of(bare, true);
  for (double& w : gpu.watts) w /= gpus;
  const PowerFit fit = fit_power(base, gpu, 2);
  REQUIRE(fit.constants.size() == 1);
  CHECK(fit.constants.front().name == "gap_power");
  CHECK(fit.constants.front().after == Approx(300).margin(1));
  CHECK(fit.profile.host_base.value() == base.scenario.cluster.node.power.host_base.value());
}

TEST_CASE("readings outside the run are refused with its length") {
  PowerReadings late = series_of(loaded(k8));
  for (double& t : late.at_s) t += 1e6;
  CHECK_THROWS_AS(fit_power(loaded(k8), late, 1), InputError);
}
