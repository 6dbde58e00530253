#include "run/reliability.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "inputs.hpp"

using namespace tw;

TEST_CASE("the profile gives back the interruptions that it was taken from") {
  const auto profile = input<Reliability>("models/reliability/llama3-h100.json");
  const FailureRates rates = failure_rates(profile, 2048, 8, 8, 0);
  const double span_s = 54 * 86400.0;
  CHECK(rates.total() * span_s == Approx(419).margin(1));
  CHECK(rates.per_s[static_cast<size_t>(Component::gpu)] * span_s == Approx(268).margin(0.5));
  CHECK(takes_node(Component::gpu));
  CHECK_FALSE(takes_node(Component::link));
}

TEST_CASE("failures of a run: as often as their rates, of each kind in proportion") {
  FailureRates rates;
  rates.per_s[static_cast<size_t>(Component::gpu)] = 3e-5;
  rates.per_s[static_cast<size_t>(Component::software)] = 1e-5;
  FailureSource source(rates, 5);
  double sum = 0, gpus = 0;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) {
    sum += source.next_gap_s();
    gpus += source.next_kind() == Component::gpu ? 1 : 0;
  }
  CHECK(sum / count == Approx(25000).epsilon(0.03));
  CHECK(gpus / count == Approx(0.75).margin(0.01));
  CHECK(std::isinf(FailureSource(FailureRates{}, 1).next_gap_s()));
}

TEST_CASE("Daly's interval is Young's for cheap checkpoints, and the simulation agrees with renewal theory") {
  CHECK(daly_interval_s(1, 1e6) == Approx(std::sqrt(2e6)).epsilon(1e-3));
  CHECK(daly_interval_s(100, 40) == 40);
  const double mtbf_s = 30000, write_s = 60, restart_s = 900;
  for (const double interval_s : {600.0, 1800.0, 7200.0}) {
    const double theory = interval_s / (std::exp((interval_s + write_s) / mtbf_s) - 1) / (mtbf_s + restart_s);
    CHECK(interval_goodput(interval_s, write_s, write_s, restart_s, mtbf_s, 3, 100000) == Approx(theory).epsilon(0.01));
  }
  const auto trials = try_intervals(write_s, write_s, restart_s, mtbf_s, 10, 1);
  CHECK(trials.front().interval_s == Approx(daly_interval_s(write_s, mtbf_s)).epsilon(0.5));
  for (const IntervalTrial& t : trials) CHECK(t.goodput <= trials.front().goodput);
  // Writing beside training: intervals are as short as the write allows, and less is lost.
  const auto beside = try_intervals(write_s, 1, restart_s, mtbf_s, 10, 1);
  CHECK(beside.front().goodput > trials.front().goodput);
  CHECK(beside.front().interval_s >= write_s - 1);
}
