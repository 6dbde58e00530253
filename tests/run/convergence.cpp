#include "run/convergence.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "core/csv.hpp"
#include "inputs.hpp"
#include "paths.hpp"
#include "run/scoring.hpp"

using namespace tw;

namespace {

Convergence lora() {
  return input<Convergence>("models/convergence/llama2-70b-lora.json");
}

}  // namespace

TEST_CASE("every convergence point stands in the reference data of its round") {
  const CsvTable table = CsvTable::load(source_folder() + "/reference/mlperf/rcp_convergence.csv");
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/models/convergence")) {
    const auto c = input<Convergence>("models/convergence/" + entry.path().filename().string());
    ++models;
    size_t rows = 0;
    for (size_t i = 0; i < table.rows(); ++i)
      if (table.text(i, "benchmark") == c.name && table.text(i, "rcp_version_first") <= c.rcp_version &&
          c.rcp_version <= table.text(i, "rcp_version_last"))
        ++rows;
    INFO(c.name);
    CHECK(rows == c.points.size());
    for (const ConvergencePoint& p : c.points) {
      bool found = false;
      for (size_t i = 0; i < table.rows() && !found; ++i)
        found = table.text(i, "benchmark") == c.name && table.value(i, "GBS") == p.gbs &&
                std::abs(table.number(i, "samples_mean").value_or(0) - p.samples) < 0.06 &&
                std::abs(p.sd / p.samples - table.value(i, "rel_std")) < 1e-4;
      INFO(p.gbs);
      CHECK(found);
    }
  }
  CHECK(models == 10);
}

TEST_CASE("samples follow the points, and a power law between them") {
  const Convergence c = lora();
  CHECK(samples_to_target(c, 8).mean == Approx(3187.2));
  CHECK(samples_to_target(c, 128).sd == Approx(866.75).epsilon(1e-4));
  CHECK(samples_to_target(c, 64).mean == Approx(std::sqrt(6028.8 * 11289.6)));
  // S = 1175 B^0.466 fits all four points within 9 %.
  for (const double gbs : {8, 12, 16, 24, 32, 48, 64, 96, 128})
    CHECK(samples_to_target(c, gbs).mean == Approx(1175 * std::pow(gbs, 0.466)).epsilon(0.09));
  double before = 0;
  for (double gbs = 8; gbs <= 128; gbs *= 1.1) {
    CHECK(samples_to_target(c, gbs).mean > before);
    before = samples_to_target(c, gbs).mean;
  }
}

TEST_CASE("outside the points: a warning, far outside a refusal") {
  const Convergence c = lora();
  CHECK(convergence_warning(c, 8).empty());
  CHECK(convergence_warning(c, 100).empty());
  CHECK(convergence_warning(c, 256).find("extrapolated") != std::string::npos);
  CHECK(convergence_problem(c, 256).empty());
  CHECK(convergence_problem(c, 257).find("8 to 128") != std::string::npos);
  CHECK(convergence_problem(c, 3).find("far outside") != std::string::npos);
}

TEST_CASE("runs meet their target at an evaluation, with the mean and spread of the reference runs") {
  const Convergence c = lora();
  double sum = 0, squares = 0;
  constexpr int runs = 4000;
  for (int seed = 0; seed < runs; ++seed) {
    const double samples = draw_samples(c, 8, 1536, 384, static_cast<uint64_t>(seed));
    CHECK(std::fmod(samples, 384) == 0);
    CHECK(samples >= 1536);
    sum += samples;
    squares += samples * samples;
  }
  const double mean = sum / runs;
  CHECK(mean == Approx(3187.2).epsilon(0.01));
  CHECK(std::sqrt(squares / runs - mean * mean) == Approx(307.7).epsilon(0.05));
  CHECK(draw_samples(c, 8, 1536, 384, 7) == draw_samples(c, 8, 1536, 384, 7));
  CHECK(draw_samples(c, 8, 7296, 384, 7) == 7296);  // a late first evaluation tells late
  // Points without spread: every run needs the same.
  const auto ssd = input<Convergence>("models/convergence/ssd.json");
  for (uint64_t seed = 1; seed < 50; ++seed) CHECK(draw_samples(ssd, 256, 1170301, 1170301, seed) == 4 * 1170301.0);
}

TEST_CASE("the published RCP factors follow from the points") {
  const Convergence c = lora();
  CHECK(rcp_factor(reference_samples(c, 8), 3072) == Approx(1.034722222).epsilon(1e-6));
  CHECK(rcp_factor(reference_samples(c, 64), 6912) == Approx(1.031746032).epsilon(1e-7));
  CHECK(rcp_factor(reference_samples(c, 8), 3120) == Approx(1.0188034).epsilon(1e-6));
}
