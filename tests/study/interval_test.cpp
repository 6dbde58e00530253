// Intervals from residuals, and workloads on other chips than they were measured on.
#include "study/interval.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/document.hpp"
#include "core/error.hpp"
#include "hardware/transfer.hpp"
#include "study/profiled_chip.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

using namespace tw;

namespace {

ResidualTable toy() {
  ResidualTable t;
  t.releases = {"nemo-25.04"};
  t.fabrics = {"eos-h100"};
  std::vector<double> small, large;
  for (int i = -10; i <= 10; ++i) {
    small.push_back(0.01 * i);
    large.push_back(0.03 * i);
  }
  t.residuals = {{"a", "time", "dense/measured/fitted/compute/seen", small},
                 {"b", "time", "dense/transferred/neighbour/exchange/new", large}};
  return t;
}

RunClass dense(const char* chip, const char* bound) {
  RunClass c;
  c.work = "dense", c.chip = chip, c.bound = bound;
  return c;
}

}  // namespace

TEST_CASE("an interval comes from the finest class that has rows enough") {
  const ResidualTable t = toy();
  const RunClass near = placed(dense("measured", "compute"), "nemo-25.04", "eos-h100", t);
  CHECK(near.paths().front() == "dense/measured/fitted/compute/seen");
  const auto i = interval_of(t, near, "time", 100);
  REQUIRE(i);
  CHECK(i->rows == 21);
  CHECK(i->low == Approx(100 * std::exp(-0.08)).epsilon(0.01));
  CHECK(i->high == Approx(100 * std::exp(0.08)).epsilon(0.01));
  // Without suite a nothing was measured on this chip: all dense rows speak, and the interval widens.
  const auto wide = interval_of(t, near, "time", 100, "a");
  REQUIRE(wide);
  CHECK(wide->path == "dense");
  CHECK(wide->high > i->high);
  // Another bound: the class above it.
  CHECK(interval_of(t, placed(dense("measured", "host"), "nemo-25.04", "eos-h100", t), "time", 1)->path ==
        "dense/measured/fitted");
  CHECK(placed(dense("measured", "host"), "nemo-26.02", "other", t).release == "neighbour");
  CHECK(placed(dense("measured", "host"), "internlm-2023", "other", t).release == "new");
}

TEST_CASE("no row like this: the interval of all work, or none, and a warning that says which") {
  ResidualTable t = toy();
  RunClass experts = dense("measured", "compute");
  experts.work = "experts";
  const RunClass far = placed(experts, "nemo-25.04", "eos-h100", t);
  const auto any = interval_of(t, far, "time", 1);
  REQUIRE(any);
  CHECK(any->path == "any work");
  CHECK(any->rows == 42);
  CHECK_FALSE(interval_of(t, placed(dense("measured", "compute"), "nemo-25.04", "eos-h100", t), "power", 1));
  Faults faults;
  const LoadedScenario s = load_scenario("scenarios/mixtral-8x7b.json", {}, faults);
  REQUIRE(faults.empty());
  Result r;
  r.step.time_s = 1;
  r.power.mean = 1;
  add_intervals(r, s.scenario, t);
  CHECK(r.intervals.size() == 1);
  REQUIRE(r.warnings.size() == 2);
  CHECK(r.warnings[0].find("step: no run of experts work was measured") == 0);
  CHECK(r.warnings[1].find("node_dc_w: no row like this was ever measured") == 0);
}

TEST_CASE("an energy that was seldom measured has the errors of its time and of its power") {
  ResidualTable t = toy();
  t.residuals.push_back({"a", "power", "dense/measured/fitted/compute/seen", t.residuals[0].log_ratios});
  t.residuals.push_back({"a", "energy", "dense/measured/fitted/compute/seen", {0.01}});
  Faults faults;
  const LoadedScenario s = load_scenario("scenarios/llama3.1-pretraining.json", {}, faults);
  REQUIRE(faults.empty());
  Result r;
  r.step.time_s = 1;
  r.run.time_to_train_s.mean = 100, r.power.mean = 5000, r.energy.total_dc_j = 4e6;
  add_intervals(r, s.scenario, t);
  CHECK(r.warnings.empty());
  const auto log_width = [](const tw::Interval& i) { return std::log(i.high / i.low); };
  CHECK(log_width(r.intervals.at("energy")) ==
        Approx(std::hypot(log_width(r.intervals.at("time_to_train")), log_width(r.intervals.at("node_dc_w")))));
}

TEST_CASE("an energy lies within the interval of its time and power, where both are known to be low alone") {
  ResidualTable t;
  const std::vector<double> above(10, 0.3);  // all that was measured lies above what was predicted
  t.residuals = {{"a", "time", "dense/measured/new/compute/new", above},
                 {"a", "power", "dense/measured/new/compute/new", above}};
  Result r;
  r.step.time_s = 1;
  r.run.time_to_train_s.mean = 100;
  r.power.mean = 1000;
  r.energy.total_dc_j = 1e5;
  add_intervals(r, Scenario{}, t);
  REQUIRE(r.intervals.count("energy") == 1);
  CHECK(r.intervals["energy"].low <= 1e5);
  CHECK(r.intervals["energy"].high >= 1e5 * std::exp(0.3));
}

TEST_CASE("a suite weighs the same, however many rows it has") {
  ResidualTable t = toy();
  const RunClass run = placed(dense("measured", "exchange"), "x", "y", t);
  const auto before = interval_of(t, run, "time", 1);
  for (int i = 0; i < 20; ++i) t.residuals[0].log_ratios.insert(t.residuals[0].log_ratios.end(), {-0.02, 0.0, 0.02});
  std::sort(t.residuals[0].log_ratios.begin(), t.residuals[0].log_ratios.end());
  const auto after = interval_of(t, run, "time", 1);
  REQUIRE((before && after));
  CHECK(after->path == "dense/measured");
  CHECK(interval_of(t, run, "time", 1, "a")->high == Approx(interval_of(toy(), run, "time", 1, "a")->high));
}

TEST_CASE("a profiled workload keeps its times on its own chip, and scales with peaks and bandwidth elsewhere") {
  const auto there = load<Accelerator>("models/accelerators/h100-sxm.json");
  Accelerator here = there;
  here.peak_bf16 = FlopRate::from_value(2 * there.peak_bf16.value());
  CHECK(chip_ratio({{"convolution", 0.6}, {"memory_bound", 0.3}}, there, here) == Approx(0.3 + 0.3 + 0.1));
  here.memory_bandwidth = bytes_per_second(3 * there.memory_bandwidth.value());
  CHECK(chip_ratio({{"convolution", 0.6}, {"memory_bound", 0.3}}, there, here) == Approx(0.3 + 0.1 + 0.1));
  Faults faults;
  const LoadedScenario own = load_scenario("scenarios/mlperf-resnet.json", {}, faults);
  const LoadedScenario other = load_scenario(
      "scenarios/mlperf-resnet.json", {"/cluster/node/accelerator=models/accelerators/b200-sxm-180gb.json"}, faults);
  REQUIRE(faults.empty());
  CHECK(own.warnings.empty());
  REQUIRE(other.warnings.size() == 1);
  CHECK(other.warnings[0].find("measured on NVIDIA H100") != std::string::npos);
  CHECK(other.scenario.workload->per_sample.value() < 0.6 * own.scenario.workload->per_sample.value());
}
