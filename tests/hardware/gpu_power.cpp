#include "hardware/gpu_power.hpp"

#include <catch2/catch.hpp>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "paths.hpp"

namespace {

using namespace tw;
using A = Activity;

Accelerator board(const std::string& power_file) {
  Accelerator a;
  a.board_limit = watts(700);
  a.power = load<GpuPower>(source_folder() + "/models/power/" + power_file);
  return a;
}

double at(const Accelerator& a, const ActivityTimes& shares, double limit_w) {
  return board_power(a, shares, watts(limit_w)).slowdown;
}

}  // namespace

TEST_CASE("a mix below the limit is the plain sum, at full speed") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  ActivityTimes shares;
  shares[A::gemm_bf16] = 0.25;
  const BoardPower power = board_power(h100, shares, h100.board_limit);
  CHECK(power.watts == Approx(0.25 * 870 + 0.75 * 133).epsilon(1e-12));
  CHECK(power.slowdown == 1);
  CHECK(power.memory_slowdown == 1);
}

TEST_CASE("sustained rates follow from burst rates and the limit") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  // TFLOP/s: bursts of gemm.csv and attention.csv, sustained rates of power.csv.
  CHECK(733 / at(h100, ActivityTimes::only(A::gemm_bf16), 700) == Approx(676).epsilon(0.01));
  CHECK(1399 / at(h100, ActivityTimes::only(A::gemm_fp8), 700) == Approx(1275).epsilon(0.01));
  CHECK(548 / at(h100, ActivityTimes::only(A::attention_forward), 700) == Approx(508).epsilon(0.015));
}

TEST_CASE("a lone kernel obeys the closed form") {
  Accelerator h100 = board("gpu-h100-sxm.json");
  h100.power.held_share = 1;
  const BoardPower power = board_power(h100, ActivityTimes::only(A::gemm_fp8), watts(500));
  CHECK(power.watts == Approx(500).epsilon(1e-9));
  // To the clock that FP8 products have at the fitted limit by the fitted exponent, below it by the limiter's.
  const double fitted = (900.0 - 120) / (700 - 120);
  CHECK(power.slowdown == Approx(std::pow(fitted, 0.30) * std::pow((700.0 - 120) / (500 - 120), 0.5)).epsilon(1e-9));
  CHECK(at(h100, ActivityTimes::only(A::gemm_fp8), 700) == Approx(std::pow(fitted, 0.30)).epsilon(1e-9));
  h100.power.limiter.reset();
  CHECK(at(h100, ActivityTimes::only(A::gemm_fp8), 500) ==
        Approx(std::pow((900.0 - 120) / (500 - 120), 0.30)).epsilon(1e-9));
}

TEST_CASE("products that never reach the fitted limit run at full speed, and under a cap by the fitted exponent") {
  Accelerator cool = board("gpu-h100-sxm.json");
  cool.power.held_share = 1;
  cool.power.gemm_bf16 = cool.power.gemm_fp8 = watts(600);
  CHECK(at(cool, ActivityTimes::only(A::gemm_bf16), 700) == 1);
  CHECK(at(cool, ActivityTimes::only(A::gemm_bf16), 500) ==
        Approx(std::pow((600.0 - 120) / (500 - 120), 0.30)).epsilon(1e-9));
}

TEST_CASE("a lower cap slows GEMMs monotonically and draws less") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  double last_slowdown = 0, last_watts = 1e9;
  for (const double cap : {1000.0, 700.0, 600.0, 500.0, 400.0, 350.0, 300.0, 200.0}) {
    const BoardPower power = board_power(h100, ActivityTimes::only(A::gemm_bf16), watts(cap));
    CHECK(power.slowdown >= last_slowdown);
    CHECK(power.watts <= last_watts);
    CHECK(power.watts <= cap);
    last_slowdown = power.slowdown;
    last_watts = power.watts;
  }
  const double ratio =
      at(h100, ActivityTimes::only(A::gemm_bf16), 700) / at(h100, ActivityTimes::only(A::gemm_bf16), 350);
  CHECK(ratio > 0.5);
  CHECK(ratio < 0.85);
}

TEST_CASE("energy per product falls under a moderate cap: fewer watts for longer, less in all") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  const auto joules = [&](double cap) {
    const BoardPower p = board_power(h100, ActivityTimes::only(A::gemm_bf16), watts(cap));
    return p.watts * p.slowdown;
  };
  CHECK(joules(500) < joules(700));
}

TEST_CASE("memory-bound kernels keep their speed until a deep cap") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  CHECK(board_power(h100, ActivityTimes::only(A::copy), watts(510)).memory_slowdown == 1);
  const BoardPower deep = board_power(h100, ActivityTimes::only(A::copy), watts(350));
  CHECK(deep.memory_slowdown > 1);
  CHECK(deep.watts <= 350);
  ActivityTimes mix;
  mix[A::gemm_bf16] = 0.7;
  mix[A::copy] = 0.3;
  const BoardPower shared = board_power(h100, mix, watts(600));
  CHECK(shared.slowdown > 1);
  CHECK(shared.memory_slowdown == 1);
}

TEST_CASE("watts by activity add up to the capped power") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  for (const double cap : {100.0, 200.0, 350.0, 700.0, 1200.0}) {
    ActivityTimes mix;
    mix[A::gemm_fp8] = 0.6;
    mix[A::copy] = 0.2;
    mix[A::collective] = 0.1;
    const double total = watts_by_activity(h100.power, mix, watts(cap)).total();
    CHECK(total == Approx(capped_watts(h100.power, mix, watts(cap))).epsilon(1e-12));
    CHECK(total <= cap);
  }
}

TEST_CASE("the capped sum of lengthened shares is the limiter's power") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  ActivityTimes burst;
  burst[A::gemm_bf16] = 0.9;
  burst[A::collective] = 0.1;
  const BoardPower power = board_power(h100, burst, h100.board_limit);
  ActivityTimes longer = burst;
  longer[A::gemm_bf16] *= power.slowdown;
  longer = longer.scaled(1 / longer.total());
  CHECK(capped_watts(h100.power, longer, h100.board_limit) == Approx(power.watts).epsilon(1e-9));
}

TEST_CASE("data of zeros draws what the lab saw") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  const GpuPower zeros = with_toggling(h100.power, 0);
  CHECK(zeros.gemm_bf16.value() == Approx(440.4).epsilon(0.01));  // power.csv gemm_bf16_8192_zeros
  CHECK(zeros.copy.value() == Approx(378).epsilon(0.03));         // power_duty.csv hbm_copy, not filled
  CHECK(with_toggling(h100.power, 1).gemm_bf16.value() == Approx(870));
}

TEST_CASE("a limit that cannot be held gives the lowest clock, not an endless search") {
  const Accelerator h100 = board("gpu-h100-sxm.json");
  const BoardPower power = board_power(h100, ActivityTimes::only(A::gemm_bf16), watts(50));
  CHECK(std::isfinite(power.slowdown));
  CHECK(power.slowdown == at(h100, ActivityTimes::only(A::gemm_bf16), 100));
  CHECK(1980 / power.slowdown == Approx(210).epsilon(0.02));
}
