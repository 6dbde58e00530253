// Intervals from residuals, and workloads on other chips than they were measured on.
#include "study/interval.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "core/document.hpp"
#include "core/error.hpp"
#include "core/quantile.hpp"
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
  t.residuals = {{"a", "time", "measured/dense/fitted/compute/seen", small},
                 {"b", "time", "transferred/dense/neighbour/exchange/new", large}};
  return t;
}

RunClass dense(const char* chip, const char* bound) {
  RunClass c;
  c.work = "dense", c.chip = chip, c.bound = bound;
  return c;
}

}  // namespace

TEST_CASE("an interval comes from the finest class that has rows enough") {
  ResidualTable t = toy();
  const RunClass near = placed(dense("measured", "compute"), "nemo-25.04", "eos-h100", t);
  CHECK(near.paths().front() == "measured/dense/fitted/compute/seen");
  const auto one = interval_of(t, near, "time", 100);
  REQUIRE(one);
  CHECK(one->path == "measured/dense/fitted/compute/seen");
  CHECK(one->rows == 21);
  // Of another kind of work there is nothing: all classes speak.
  RunClass other = near;
  other.work = "experts";
  CHECK(interval_of(t, other, "time", 100)->path == "all");
  CHECK(interval_of(t, other, "time", 100)->rows == 42);
  t.residuals.push_back({"c", "time", "measured/dense/fitted/compute/seen", {-0.03, 0.0, 0.03}});
  const auto i = interval_of(t, near, "time", 100);
  REQUIRE(i);
  CHECK(i->path == "measured/dense/fitted/compute/seen");
  CHECK(i->rows == 24);
  // Without suite c there is one suite again, and without b, too, nothing that tells how suites differ.
  CHECK(interval_of(t, near, "time", 100, "c")->rows == 21);
  t.residuals.erase(t.residuals.begin() + 1, t.residuals.end());
  CHECK_FALSE(interval_of(t, near, "time", 100));
  t.residuals.push_back({"c", "time", "measured/dense/fitted/compute/seen", {-0.03, 0.0, 0.03}});
  // Another bound: the class above it.
  CHECK(interval_of(t, placed(dense("measured", "host"), "nemo-25.04", "eos-h100", t), "time", 1)->path ==
        "measured/dense/fitted");
  CHECK(placed(dense("measured", "host"), "nemo-26.02", "other", t).release == "neighbour");
  CHECK(placed(dense("measured", "host"), "internlm-2023", "other", t).release == "new");
}

TEST_CASE("where one more row of one more suite lies: random effects of suites, by hand") {
  const std::string path = "measured/dense/new/compute/new";
  const RunClass run = placed(dense("measured", "compute"), "x", "y", ResidualTable{});
  ResidualTable t;
  // Suites that differ: means -0.1, 0.02, 0.08; about them 0.02 to either side. among = 0.0084, within = 6 * 0.0004
  // / 3.
  t.residuals = {
      {"a", "time", path, {-0.12, -0.08}}, {"b", "time", path, {0.0, 0.04}}, {"c", "time", path, {0.06, 0.10}}};
  CHECK_FALSE(interval_of(t, run, "time", 1));  // six rows are too few
  t.residuals[0].log_ratios = {-0.12, -0.12, -0.08, -0.08};
  t.residuals[1].log_ratios = {0.0, 0.0, 0.04, 0.04};
  t.residuals[2].log_ratios = {0.06, 0.06, 0.10, 0.10};
  const double within = 12 * 0.0004 / 9, among = 0.0084, a = 4.0 / 3 * among, b = 0.75 * within, v = a + b;
  const double degrees = v * v / (a * a / 2 + b * b / 9);
  const auto apart = interval_of(t, run, "time", 100);
  REQUIRE(apart);
  CHECK(apart->high == Approx(100 * std::exp(student_quantile(degrees, 0.9) * std::sqrt(v))));
  CHECK(apart->low == Approx(100 * std::exp(-student_quantile(degrees, 0.9) * std::sqrt(v))));
  // Suites alike: rows alone spread, about a mean that twelve of them give.
  for (Residuals& r : t.residuals) r.log_ratios = {-0.02, -0.02, 0.02, 0.02};
  const auto alike = interval_of(t, run, "time", 100);
  REQUIRE(alike);
  CHECK(alike->high == Approx(100 * std::exp(student_quantile(9, 0.9) * std::sqrt(within * 13 / 12))));
}

TEST_CASE("a class of one suite takes from all work how suites differ, by hand") {
  const std::string path = "measured/experts/new/compute/new";
  RunClass run = placed(dense("measured", "compute"), "x", "y", ResidualTable{});
  run.work = "experts";
  ResidualTable t;
  const std::vector<double> about{-0.02, -0.02, -0.02, -0.02, 0.02, 0.02, 0.02, 0.02};
  for (const auto& [suite, work, mean] :
       {std::tuple{"a", "experts", -0.1}, {"b", "dense", 0.02}, {"c", "dense", 0.08}}) {
    auto ratios = about;
    for (double& r : ratios) r += mean;
    t.residuals.push_back({suite, "time", std::string("measured/") + work + "/new/compute/new", ratios});
  }
  const auto i = interval_of(t, run, "time", 1);
  REQUIRE(i);
  CHECK(i->path == path);
  CHECK(i->rows == 8);
  // Means as above: among 0.0084; of all 24 rows within = 24 * 0.0004 / 21, and of the suites' effects among - within
  // / 8.
  const double effects = 0.0084 - 24 * 0.0004 / 21 / 8, within = 8 * 0.0004 / 7;
  const double a = 2 * effects, b = (1 + 1.0 / 8) * within, v = a + b;
  const double half = student_quantile(v * v / (a * a / 2 + b * b / 7), 0.9) * std::sqrt(v);
  CHECK(i->high == Approx(std::exp(-0.1 + half)));
  CHECK(i->low == Approx(std::exp(-0.1 - half)));
}

TEST_CASE("rows that were in view count where too few of the same work were predicted") {
  ResidualTable t = toy();
  RunClass run = dense("measured", "compute");
  run.work = "experts";
  const RunClass experts = placed(run, "nemo-25.04", "eos-h100", t);
  const std::string path = "measured/experts/fitted/host/seen";
  t.residuals.push_back({"a", "time", path, std::vector<double>(7, -0.1)});
  CHECK(interval_of(t, experts, "time", 100)->path == "all");  // seven are too few
  t.residuals.push_back({"a", "time", path, {-0.2, 0.1}, true});
  const auto i = interval_of(t, experts, "time", 100);
  CHECK(i->path == "measured/experts/fitted");
  CHECK(i->rows == 9);
  // Dense work has predicted rows enough and does without.
  t.residuals.push_back({"a", "time", "measured/dense/fitted/compute/seen", {1.0}, true});
  CHECK(interval_of(t, placed(dense("measured", "compute"), "nemo-25.04", "eos-h100", t), "time", 100)->rows == 21);
}

TEST_CASE("no row like this: the interval of all work, or none, and a warning that says which") {
  ResidualTable t = toy();
  RunClass experts = dense("measured", "compute");
  experts.work = "experts";
  const RunClass far = placed(experts, "nemo-25.04", "eos-h100", t);
  const auto any = interval_of(t, far, "time", 1);
  REQUIRE(any);
  CHECK(any->path == "all");
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
  CHECK(r.warnings[0].find("step: too few runs of experts work are known") == 0);
  CHECK(r.warnings[1].find("node_dc_w: no row like this was ever measured") == 0);
}

TEST_CASE("towers, FP32 and a release of other work: nothing like them was measured") {
  const auto class_of = [](const std::string& file, const std::vector<std::string>& set) {
    Faults faults;
    const LoadedScenario s = load_scenario(file, set, faults);
    faults.throw_if_any();
    return run_class(s.scenario, {});
  };
  const std::string llama = "scenarios/llama3.1-pretraining.json";
  CHECK(class_of(llama, {}).work == "dense");
  CHECK(class_of(llama, {"/training/precision=fp32"}).work == "fp32");
  CHECK(class_of(llama, {"/network=models/networks/qwen2.5-vl-7b.json"}).work == "towers");
  ResidualTable t = toy();
  t.profiled_releases = {"mxnet-v4.0-nvidia"};
  for (const char* work : {"towers", "fp32"}) {
    RunClass far = dense("measured", "compute");
    far.work = work;
    CHECK(interval_of(t, placed(far, "nemo-25.04", "eos-h100", t), "time", 1)->path == "all");
  }
  RunClass run = dense("measured", "compute");
  CHECK(placed(run, "mxnet-v4.0-nvidia", "eos-h100", t).release == "new");
  CHECK(placed(run, "mxnet-v4.1-nvidia", "eos-h100", t).release == "new");
  run.work = "profiled";
  CHECK(placed(run, "mxnet-v4.0-nvidia", "eos-h100", t).release == "fitted");
  CHECK(placed(run, "mxnet-v4.1-nvidia", "eos-h100", t).release == "neighbour");
  CHECK(placed(run, "nemo-25.04", "eos-h100", t).release == "new");
}

TEST_CASE("an energy that was seldom measured has the errors of its time and of its power") {
  ResidualTable t = toy();
  for (const char* family : {"time", "power"})
    for (const char* suite : {"a", "c"})
      t.residuals.push_back({suite, family, "measured/dense/fitted/compute/seen", t.residuals[0].log_ratios});
  t.residuals.push_back({"a", "energy", "measured/dense/fitted/compute/seen", {0.01}});
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
  for (const char* family : {"time", "power"})
    for (const char* suite : {"a", "b"})
      t.residuals.push_back({suite, family, "measured/dense/new/compute/new", above});
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

TEST_CASE("the middle of an interval is that of suites, however many rows one has") {
  const std::string path = "measured/dense/new/compute/new";
  const RunClass run = placed(dense("measured", "compute"), "x", "y", ResidualTable{});
  const auto middle = [&](size_t rows) {
    ResidualTable t;
    t.residuals = {{"a", "time", path, std::vector<double>(rows, 0.1)},
                   {"b", "time", path, {-0.11, -0.1, -0.1, -0.09}}};
    const auto i = interval_of(t, run, "time", 1);
    REQUIRE(i);
    return std::log(i->high) + std::log(i->low);
  };
  CHECK(middle(4) == Approx(0).margin(1e-12));
  CHECK(middle(400) == Approx(0).margin(1e-12));
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
