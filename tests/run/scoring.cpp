#include "run/scoring.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "paths.hpp"

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
    CHECK(olympic_drop(static_cast<int>(s.runs.size())) == scores.value(i, "dropped_each_side"));
    const OfficialScore score = official_score(s.runs, olympic_drop(static_cast<int>(s.runs.size())), s.factor);
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
