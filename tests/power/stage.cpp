#include "power/stage.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>

#include "power/piecewise.hpp"

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

struct ChainRun {
  std::vector<PiecewiseWatts> input;  // of each stage, from the load up; the last is what the feed gives
  std::string dark;                   // the stage that let go, or could not give what was asked; empty: none
  double dark_at_s = 0;
};

// A load through stages, lowest first, from one change of anything to the next, until one lets go.
ChainRun run_chain(const std::vector<std::unique_ptr<Stage>>& stages, const PiecewiseWatts& load, double from_s,
                   double to_s, const std::vector<Outage>& outages = {}) {
  std::vector<double> times{from_s, to_s};
  for (size_t i = 0; i < load.pieces(); ++i) times.push_back(load.piece_begin_s(i));
  times.push_back(load.end_s());
  for (const Outage& outage : outages) times.insert(times.end(), {outage.from_s, outage.to_s});
  std::sort(times.begin(), times.end());
  ChainRun run;
  run.input.assign(stages.size(), PiecewiseWatts(load.outside_w()));
  for (PiecewiseWatts& input : run.input) input.begin(from_s);
  for (double now_s = from_s; now_s < to_s;) {
    const bool feed = std::none_of(outages.begin(), outages.end(),
                                   [&](const Outage& o) { return o.from_s <= now_s && now_s < o.to_s; });
    // Whether something is above a stage is known from the top, what it must give from below.
    std::vector<bool> fed(stages.size(), feed);
    for (size_t i = stages.size(); i-- > 1;) fed[i - 1] = stages[i]->limit_w(fed[i]) > 0;
    std::vector<double> output_w(stages.size());
    double end_s = std::min(to_s, *std::upper_bound(times.begin(), times.end(), now_s)), wanted_w = load.at(now_s);
    for (size_t i = 0; i < stages.size(); ++i) {
      output_w[i] = wanted_w;
      if (wanted_w > stages[i]->limit_w(fed[i]) * (1 + 1e-9)) {
        run.dark = stages[i]->name;
        run.dark_at_s = now_s;
        return run;
      }
      wanted_w = stages[i]->input_w(wanted_w, fed[i]);
      const double until_s = stages[i]->until_change_s(output_w[i], fed[i]);
      if (until_s > 0) end_s = std::min(end_s, now_s + until_s);
    }
    if (end_s <= now_s) end_s = std::nextafter(now_s, std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < stages.size(); ++i) {
      run.input[i].append(end_s, stages[i]->input_w(output_w[i], fed[i]));
      stages[i]->advance(end_s - now_s, output_w[i], fed[i]);
    }
    now_s = end_s;
  }
  return run;
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
