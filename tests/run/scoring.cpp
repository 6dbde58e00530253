#include "run/scoring.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "paths.hpp"
#include "run/benchmark.hpp"

namespace {

using namespace tw;

struct Submission {
  std::vector<ScoredRun> runs;
  double factor = 1;
};

// From the measured runs: folder and nodes of the LoRA benchmark.
std::map<std::string, Submission> submissions(const std::string& benchmark) {
  const CsvTable table = CsvTable::load(source_folder() + "/reference/smc_v4.0/runs.csv");
  std::map<std::string, Submission> all;
  for (size_t i = 0; i < table.rows(); ++i) {
    if (table.text(i, "benchmark") != benchmark) continue;
    Submission& s = all[table.text(i, "folder") + " " + table.text(i, "nodes")];
    s.runs.push_back({table.value(i, "run_s"), table.number(i, "node_energy_official_j"),
                      table.number(i, "net_power_w").value_or(0)});
    s.factor = table.value(i, "scaling_factor");
  }
  return all;
}

}  // namespace

TEST_CASE("published scores follow from the measured runs") {
  auto all = submissions("llama2_70b_lora");
  const auto minutes = [&](const std::string& key) {
    const OfficialScore score = official_score(all.at(key).runs, 1, all.at(key).factor);
    return std::round(score.time_s / 60 * 1e5) / 1e5;
  };
  CHECK(minutes("smc 1") == 29.10069);
  CHECK(minutes("smc 8") == 5.40279);
  CHECK(minutes("smc 64") == 2.10304);
  // The energy runs are other runs at 8 and 64 nodes, with times of their own.
  CHECK(minutes("smc-dc-power 8") == 5.48849);
  CHECK(minutes("smc-dc-power 64") == 2.01484);
  const auto joules = [&](const std::string& key) {
    return *official_score(all.at(key).runs, 1, all.at(key).factor).energy_j;
  };
  // Node energies of the table are whole joules, so the mean is right to half a joule.
  CHECK(joules("smc-dc-power 1") == Approx(11769962).margin(1));
  CHECK(joules("smc-dc-power 8") == Approx(20381549).margin(1));
  CHECK(joules("smc-dc-power 64") == Approx(45837402).margin(1));
  CHECK(joules("smc-ac-power 1") == Approx(12127904).margin(1));
  CHECK(joules("smc-ac-power 8") == Approx(20644275).margin(1));
  CHECK(joules("smc-ac-power 64") == Approx(46574813).margin(1));
}

TEST_CASE("every score of the reference cluster is reproduced") {
  const CsvTable scores = CsvTable::load(source_folder() + "/reference/smc_v4.0/scores.csv");
  for (size_t i = 0; i < scores.rows(); ++i) {
    const auto all = submissions(scores.text(i, "benchmark"));
    const Submission& s = all.at(scores.text(i, "folder") + " " + scores.text(i, "nodes"));
    const int drop = find_benchmark(scores.text(i, "benchmark"))->dropped_each_side;
    CHECK(drop == scores.value(i, "dropped_each_side"));
    const OfficialScore score = official_score(s.runs, drop, s.factor);
    CHECK(score.time_s / 60 == Approx(scores.value(i, "score_minutes")).margin(5.1e-6));
    if (const auto energy = scores.number(i, "energy_official_j"))
      CHECK(*score.energy_j == Approx(*energy).margin(1));
    else
      CHECK_FALSE(score.energy_j.has_value());
  }
}

TEST_CASE("the factor never rewards slow convergence") {
  CHECK(rcp_factor(3178.667, 3072) == Approx(1.0347222).epsilon(1e-6));
  CHECK(rcp_factor(3000, 3072) == 1);
  CHECK(olympic_mean({5, 1, 3, 100}, 1) == 4);
  CHECK_THROWS_AS(olympic_mean({1, 2}, 1), InputError);
}

TEST_CASE("benchmarks are files: found by name or alias however it is spelt, with their runs and drops") {
  REQUIRE(find_benchmark("3D-UNet") != nullptr);
  CHECK(find_benchmark("3D-UNet")->dropped_each_side == 4);
  CHECK(find_benchmark("retinanet") == find_benchmark("ssd"));
  CHECK(find_benchmark("single_stage_detector") == find_benchmark("ssd"));
  CHECK(find_benchmark("rgat") == find_benchmark("gnn"));
  CHECK(find_benchmark("dlrm")->required_runs == 5);  // rounds up to v2.1
  CHECK(find_benchmark("dlrm_dcnv2")->required_runs == 10);
  CHECK(find_benchmark("lora") == nullptr);
  CHECK(find_benchmark("") == nullptr);
  const std::vector<std::string> names = benchmark_names();
  CHECK(names.size() == 18);
  for (const char* name : {"llama31_405b", "llama31_8b", "flux1", "deepseekv3_671b", "gpt_oss_20b"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  for (const std::string& name : names) {
    INFO(name);
    const Benchmark& b = *find_benchmark(name);
    CHECK(b.name == name);
    CHECK((b.plausible_samples.empty() || b.plausible_samples.size() == 2));
    CHECK_FALSE(b.source.empty());
  }
}
