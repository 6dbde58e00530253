// How far runs to the target quality scatter: drawn from convergence data, against logged runs.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/csv.hpp"
#include "core/text.hpp"
#include "paths.hpp"
#include "study/simulate.hpp"

using namespace tw;

namespace {

double relative_sd(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / (n - 1)) / mean;
}

std::vector<double> list_of(const std::string& cell) {
  std::vector<double> values;
  for (const std::string& text : split(cell, ';')) values.push_back(std::stod(text));
  return values;
}

// Overrides of scenarios/mlperf-lora.json for a row of the table; empty for machines that it cannot stand for.
std::vector<std::string> overrides_of(const CsvTable& t, size_t i) {
  const std::string accelerator = t.text(i, "accelerator"), round = t.text(i, "round");
  const bool lambda = t.text(i, "submitter") == "Lambda";
  if (round == "v5.0") return {};  // no profile of that software
  std::vector<std::string> set;
  if (lambda && accelerator.find("H100") != std::string::npos) set.push_back("/cluster=topologies/lambda-1cc-64.json");
  for (const auto& [name, file] : {std::pair{"H200", "h200-sxm"}, std::pair{"B200-SXM", "b200-sxm-180gb"}})
    if (accelerator.find(name) != std::string::npos)
      set.push_back(fmt::format("/cluster/node/accelerator=models/accelerators/{}.json", file));
  if (accelerator.find("H100") == std::string::npos && set.empty()) return {};
  set.push_back(
      fmt::format("/software=models/software/mlperf-{}-nvidia.json", round == "v4.0" || lambda ? "v4.0" : "v4.1"));
  for (const auto& [key, column] : {std::pair{"nodes", "nodes"}, std::pair{"tp", "TP"}, std::pair{"cp", "CP"},
                                    std::pair{"mbs", "MBS"}, std::pair{"gbs", "GBS"}})
    set.push_back(fmt::format("/plan/{}={}", key, t.text(i, column)));
  set.push_back("/run/samples=null");
  set.push_back("/run/convergence=models/convergence/llama2-70b-lora.json");
  set.push_back("/run/first_evaluation_at=" + t.text(i, "eval_first_at_samples"));
  set.push_back("/run/evaluation_interval=" + t.text(i, "eval_interval_samples"));
  return set;
}

}  // namespace

TEST_CASE("runs to the target scatter as logged ones do") {
  const CsvTable t = CsvTable::load(source_folder() + "/reference/mlperf/llama2_70b_lora.csv");
  std::vector<LoadedScenario> scenarios;
  std::vector<size_t> rows;
  Faults faults;
  for (size_t i = 0; i < t.rows(); ++i) {
    const std::string& submitter = t.text(i, "submitter");
    if ((submitter != "NVIDIA" && submitter != "Lambda") || t.value(i, "n_runs") < 8) continue;
    const auto set = overrides_of(t, i);
    if (set.empty()) {
      std::printf("  %-18s %-7s %4.0f %-28s not simulated; logged %5.2f %%\n", t.text(i, "round").c_str(),
                  submitter.c_str(), t.value(i, "accelerators"), t.text(i, "accelerator").c_str(),
                  100 * relative_sd(list_of(t.text(i, "run_times_min"))));
      continue;
    }
    scenarios.push_back(load_scenario("scenarios/mlperf-lora.json", set, faults));
    rows.push_back(i);
  }
  faults.throw_if_any();
  SimulationOptions options;
  options.runs = 300;
  const auto outcomes = simulate_all(scenarios, options, 2, 300, [](size_t, size_t) {});
  std::vector<double> ratios;
  for (size_t k = 0; k < rows.size(); ++k) {
    const Result& r = outcomes[k].result;
    INFO(r.error);
    REQUIRE(r.error.empty());
    const Distribution& d = r.run.time_to_train_s;
    const double simulated = *d.sd / *d.mean, logged = relative_sd(list_of(t.text(rows[k], "run_times_min")));
    ratios.push_back(simulated / logged);
    std::printf(
        "  %-18s %-7s %4.0f %-28s simulated %5.2f %%, logged %5.2f %%, ratio %.2f; mean %.3f min, logged %.3f\n",
        t.text(rows[k], "round").c_str(), t.text(rows[k], "submitter").c_str(), t.value(rows[k], "accelerators"),
        t.text(rows[k], "accelerator").c_str(), 100 * simulated, 100 * logged, ratios.back(), *d.mean / 60,
        t.value(rows[k], "time_min_mean_raw"));
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios.size() % 2 == 1 ? ratios[ratios.size() / 2]
                                               : (ratios[ratios.size() / 2 - 1] + ratios[ratios.size() / 2]) / 2;
  std::printf("  median ratio over %zu rows: %.2f\n", ratios.size(), median);
  CHECK(ratios.size() >= 12);
  CHECK(median > 1 / 1.6);
  CHECK(median < 1.6);
}
