#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "study/validate.hpp"

using namespace tw;

namespace {

SuiteOutcome outcome(const std::string& suite) {
  return validate({suite}, {}, 2, 300, [](size_t, size_t) {}).front();
}

double error_of(const SuiteOutcome& suite, const std::string& id) {
  for (const RowOutcome& r : suite.rows)
    if (r.row.id == id && r.error_pct) return *r.error_pct;
  FAIL("no row " + id);
  return 0;
}

}  // namespace

TEST_CASE("predicted steps stay within the mean error asked of their suite") {
  for (const char* name : {"llama31", "mlperf-gpt3", "mlperf-lora"}) {
    const SuiteOutcome suite = outcome(name);
    CAPTURE(name);
    CHECK(suite.errors.empty());
    REQUIRE(suite.step_mape_bound_pct);
    CHECK(*suite.mape_pct(RowKind::predicted, "step_s") <= *suite.step_mape_bound_pct);
  }
}

TEST_CASE("run rows, profiled benchmarks and one cluster's speed-ups: every bound is met, or the gap is known") {
  for (const char* name : {"mlperf-gpt3", "mlperf-lora", "lambda", "mlperf-profiled"}) {
    const SuiteOutcome suite = outcome(name);
    CAPTURE(name);
    CHECK(suite.errors.empty());
    if (suite.step_mape_bound_pct) CHECK(*suite.mape_pct(RowKind::predicted, "step_s") <= *suite.step_mape_bound_pct);
    if (suite.run_mape_bound_pct) CHECK(*suite.mape_pct(RowKind::predicted, "run_s") <= *suite.run_mape_bound_pct);
    for (const RowOutcome& r : suite.rows) {
      INFO(r.row.id << ": error " << r.error_pct.value_or(1e9) << " %");
      CHECK(r.predicted);
      CHECK_FALSE(r.worse_than_known());
    }
  }
}

TEST_CASE("rows of round v2.0 are simulated on their accelerators and counts") {
  const SuiteOutcome suite = outcome("mlperf-v2.0");
  CHECK(suite.errors.empty());
  CHECK(suite.rows.size() == 56);
  for (const RowOutcome& r : suite.rows) {
    INFO(r.row.id);
    REQUIRE(r.error_pct);
    if (r.row.kind == RowKind::fitted) CHECK(std::abs(*r.error_pct) <= 2);
  }
}

TEST_CASE("a speed-up is over another case of the suite") {
  SuiteTable table;
  table.csv = "reference/mlperf/lambda_64gpu.csv";
  table.scenario = "scenarios/mlperf-bert.json";
  table.id = "bert-{gpus}";
  table.where = {{"kind", {"measured"}}, {"benchmark", {"bert"}}, {"gpus", {"64"}}};
  table.set = {"/run={\"samples_by_run\": {run_samples:list}}"};
  TableRow row;
  row.quantity = "speedup", row.unit = "1", row.column = "speedup_vs_8_mean", row.over = "bert-8/run_s";
  table.rows = {row};
  const auto cases = expand_table(table);
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].rows[0].over == "bert-8/run_s");
  CHECK(cases[0].rows[0].measured == 6.0599);
  CHECK(cases[0].set[0].rfind("/run={\"samples_by_run\": [3004093,2850965,", 0) == 0);
}

TEST_CASE("Llama 3.1: BF16 and FP8 apart, and the growth with GPUs") {
  const SuiteOutcome suite = outcome("llama31");
  std::map<std::string, std::pair<double, int>> groups;
  for (const RowOutcome& r : suite.rows) {
    if (r.row.kind != RowKind::predicted || r.row.quantity != "step_s" || !r.error_pct) continue;
    auto& [sum, count] = groups[r.row.id.find("FP8") != std::string::npos ? "FP8" : "BF16"];
    sum += std::abs(*r.error_pct);
    ++count;
  }
  CHECK(groups["FP8"].first / groups["FP8"].second <= 2.5);
  CHECK(groups["BF16"].first / groups["BF16"].second <= 2.5);
  // Growth of the step from 64 to 1,024 GPUs, in points: the error moves by no more than one.
  CHECK(std::abs(error_of(suite, "70b-FP8-1024/step_s") - error_of(suite, "70b-FP8-64/step_s")) <= 1);
  CHECK(std::abs(error_of(suite, "70b-BF16-1024/step_s") - error_of(suite, "70b-BF16-64/step_s")) <= 1);
}

TEST_CASE("a table's row becomes a case: cells in place of placeholders") {
  SuiteTable table;
  table.csv = "reference/mlperf/dgxc_llama31.csv";
  table.scenario = "scenarios/llama3.1-pretraining.json";
  table.id = "{model}-{precision:lower}-{gpus}";
  table.where = {{"model", {"8b"}}, {"gpus", {"128"}}};
  table.set = {"/plan/nodes={gpus/8}", "/plan/vp={VP|1}"};
  table.fitted = {{{"precision", "FP8"}}};
  TableRow step;
  step.quantity = "step_s", step.unit = "s", step.column = "step_time_s";
  table.rows = {step};
  const auto cases = expand_table(table);
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].set == std::vector<std::string>{"/plan/nodes=16", "/plan/vp=1"});
  CHECK(cases[0].rows[0].id == "8b-bf16-128/step_s");
  CHECK(cases[0].rows[0].measured == 12.33);
  CHECK(cases[0].rows[0].kind == RowKind::predicted);
  CHECK(cases[1].rows[0].kind == RowKind::fitted);
  table.set = {"/plan/nodes={no such column}"};
  CHECK_THROWS_AS(expand_table(table), InputError);
}
