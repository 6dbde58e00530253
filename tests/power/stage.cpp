#include "power/stage.hpp"

#include <catch2/catch.hpp>

namespace {

using namespace tw;

PiecewiseWatts steps(std::initializer_list<std::pair<double, double>> pieces) {  // end, watts
  PiecewiseWatts load;
  load.begin(0);
  for (const auto& [end_s, watts] : pieces) load.append(end_s, watts);
  return load;
}

BatteryType battery() {
  BatteryType b;
  b.capacity_j = 100e3;
  b.power_w = 20e3;
  b.discharge_efficiency = 0.9;
  b.charge_efficiency = 0.8;
  b.recharge_w = 2e3;
  return b;
}

template <class... T>
std::vector<std::unique_ptr<Stage>> chain(T&&... stage) {
  std::vector<std::unique_ptr<Stage>> list;
  (list.push_back(std::make_unique<std::decay_t<T>>(std::forward<T>(stage))), ...);
  return list;
}

const BatteryShelf& shelf(const std::vector<std::unique_ptr<Stage>>& stages) {
  return dynamic_cast<const BatteryShelf&>(*stages.front());
}

}  // namespace

TEST_CASE("a chain of converters takes what its laws say") {
  const auto stages = chain(Converter("rectifiers", {100, 0.01, 0}, 20e3), Converter("UPS", {50, 0, 1e-6}, 50e3));
  const ChainRun run = run_chain(stages, steps({{10, 5e3}, {20, 10e3}}), 0, 20);
  CHECK(run.dark.empty());
  const auto ups_w = [](double w) { return w + 50 + 1e-6 * w * w; };
  CHECK(run.input[1].integral(0, 20) ==
        Approx(10 * ups_w(100 + 1.01 * 5e3) + 10 * ups_w(100 + 1.01 * 10e3)).epsilon(1e-12));
}

TEST_CASE("a breaker lets go by its time and the load, and cools below its rating") {
  // At twice the rating: 80 / (4 - 1) s.
  auto stages = chain(Converter("PDU", {}, 10e3));
  ChainRun run = run_chain(stages, steps({{5, 10e3}, {100, 20e3}}), 0, 100);
  CHECK(run.dark == "PDU");
  CHECK(run.dark_at_s == Approx(5 + 80.0 / 3).epsilon(1e-9));
  // Peaks of 10 s at twice the rating warm by 3/8 of the way; 40 s at half of it cool by 0.75 * 40 / 80 = 3/8.
  stages = chain(Converter("PDU", {}, 10e3));
  PiecewiseWatts load;
  load.begin(0);
  for (int i = 0; i < 10; ++i) {
    load.append(50 * i + 10, 20e3);
    load.append(50 * i + 50, 5e3);
  }
  CHECK(run_chain(stages, load, 0, 500).dark.empty());
}

TEST_CASE("a battery rides through, and what it takes back equals the hand integral") {
  const auto stages = chain(BatteryShelf("BBU", battery()), Converter("rectifiers", {}, 50e3));
  const double out_s = 6, load_w = 10e3, given_j = load_w * out_s / 0.9;
  const ChainRun run = run_chain(stages, steps({{1000, load_w}}), 0, 1000, {{10, 10 + out_s}});
  CHECK(run.dark.empty());
  CHECK(run.input[1].integral(10, 16) == 0);
  CHECK(shelf(stages).charge_j() == Approx(100e3).epsilon(1e-12));
  CHECK(run.input[1].integral(0, 1000) == Approx(load_w * (1000 - out_s) + given_j / 0.8).epsilon(1e-9));
  CHECK(run.input[1].peak(0, 1000).watts == Approx(12e3));  // recharging
}

TEST_CASE("a battery that runs empty leaves its load in the dark at that moment") {
  const auto stages = chain(BatteryShelf("BBU", battery()), Converter("rectifiers", {}, 50e3));
  const ChainRun run = run_chain(stages, steps({{100, 10e3}}), 0, 100, {{10, 60}});
  CHECK(run.dark == "BBU");
  CHECK(run.dark_at_s == Approx(10 + 100e3 * 0.9 / 10e3).epsilon(1e-9));
  const auto weak = chain(BatteryShelf("BBU", battery()));
  CHECK(run_chain(weak, steps({{100, 25e3}}), 0, 100, {{10, 60}}).dark_at_s == 10);  // beyond its power
}

TEST_CASE("a battery holds the load from above at a level until it is empty") {
  BatteryType type = battery();
  type.shave_above_w = 8e3;
  const auto stages = chain(BatteryShelf("BBU", type));
  // 4 kW above the level: 90 kJ / 4 kW = 22.5 s.
  const ChainRun run = run_chain(stages, steps({{10, 5e3}, {50, 12e3}, {200, 5e3}}), 0, 200);
  CHECK(run.input[0].at(20) == Approx(8e3));
  CHECK(run.input[0].at(40) == Approx(12e3));
  CHECK(run.input[0].at(60) == Approx(7e3));
  const double recharge_s = 100e3 / (2e3 * 0.8);
  CHECK(run.input[0].integral(0, 200) ==
        Approx(50e3 + 22.5 * 8e3 + 17.5 * 12e3 + 150 * 5e3 + recharge_s * 2e3).epsilon(1e-9));
  CHECK(shelf(stages).charge_j() == Approx(100e3));
}
