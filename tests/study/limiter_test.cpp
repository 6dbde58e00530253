// The board's limiter on bursts that its constants were not fitted on.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "paths.hpp"
#include "study/limiter_rows.hpp"
#include "study/suite.hpp"
#include "study/validate.hpp"

using namespace tw;

namespace {

// fast_share, least_share, products_clock; what else the law has is the driver's: its period, its window of a second,
// when it looks, and the square law of watts and clock.
using Constants = std::array<double, 3>;

LimiterBursts bursts_of(const std::string& accelerator) {
  LimiterBursts b;
  b.bursts = source_folder() + "/reference/gpu_lab_3/limiter_bursts.csv";
  b.samples = source_folder() + "/reference/gpu_lab_3/limiter_samples.csv";
  b.accelerator = accelerator;
  b.kernels = {{"bf16_8192", Activity::gemm_bf16}, {"fp8_8192", Activity::gemm_fp8}, {"copy_512MiB", Activity::copy}};
  b.times = {seconds(0.025), seconds(0.1), seconds(0.5), seconds(1)};
  b.reading_mean = seconds(0.025), b.reading_lag = seconds(0.02);
  return b;
}

std::vector<RowOutcome> rows_with(const Constants& c) {
  const std::string file = "limiter_of_a_test.json";
  std::ofstream(file) << fmt::format(
      R"({{"use": "{0}/models/accelerators/h100-sxm.json",
          "power": {{"use": "{0}/models/power/gpu-h100-sxm.json",
                     "limiter": {{"fast_share": {1}, "least_share": {2}, "products_clock": {3}}}}}}})",
      source_folder(), c[0], c[1], c[2]);
  Faults faults;
  const auto rows = limiter_rows(bursts_of(file), faults);
  std::remove(file.c_str());
  faults.throw_if_any();
  return rows;
}

bool of_kernel(const RowOutcome& row, const std::string& kernel) {
  return row.row.id.find(kernel) != std::string::npos;
}

double mean_error(const Constants& c, const std::string& kernel) {
  double sum = 0, count = 0;
  for (const RowOutcome& row : rows_with(c))
    if (of_kernel(row, kernel)) sum += std::abs(row.error_pct.value()), ++count;
  return sum / count;
}

// One constant after the other, to the nearest 0.005.
Constants fitted_on(const std::string& kernel) {
  Constants best{1.05, 0.70, 0.70};
  double least = mean_error(best, kernel);
  for (double step = 0.04; step > 0.004; step /= 2)
    for (bool better = true; better;) {
      better = false;
      for (size_t k = 0; k < best.size(); ++k)
        for (const double by : {-step, step}) {
          Constants other = best;
          other[k] += by;
          const double error = mean_error(other, kernel);
          if (error >= least) continue;
          best = other, least = error, better = true;
        }
    }
  return best;
}

}  // namespace

// Seen: fitted on BF16 (1.66 %), FP8 within 3.02 % in the mean; fitted on FP8 (2.13 %), BF16 within 3.77 %. Rows of the
// kernel that was held out miss the bounds of the suite (8 %, energies 4 %) by a clock of 9.6 % and, the other way, by
// a clock of 9.3 %, watts of 8.4 % and an energy of 4.02 %: the clock that goes with a wattage is the kernel's own.
TEST_CASE("a limiter that is fitted on the bursts of one kernel predicts those of the other") {
  struct Way {
    const char *on, *held_out;
    double mean_pct;
    int missed;
  };
  for (const Way& way : {Way{"bf16_8192", "fp8_8192", 3.1, 1}, Way{"fp8_8192", "bf16_8192", 3.8, 3}}) {
    const Constants c = fitted_on(way.on);
    INFO(fmt::format("fitted on {}: fast {:.3f}, least {:.3f}, clock {:.3f}: {:.2f} %; {}: {:.2f} %", way.on, c[0],
                     c[1], c[2], mean_error(c, way.on), way.held_out, mean_error(c, way.held_out)));
    CHECK(mean_error(c, way.held_out) <= way.mean_pct);
    int missed = 0;
    for (const RowOutcome& row : rows_with(c)) {
      if (!of_kernel(row, way.held_out)) continue;
      const double error = std::abs(row.error_pct.value());
      INFO(row.row.id << " " << row.row.quantity << " " << row.error_pct.value() << " %");
      CHECK(error <= 10);
      missed += error > (row.row.quantity == "burst_j" ? 4 : 8) ? 1 : 0;
    }
    CHECK(missed <= way.missed);
  }
}
