// Tables of measurements made into cases, and what rows of a suite say together.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "study/suite.hpp"
#include "study/suite_means.hpp"

using namespace tw;

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
  table.in_view = {{{"precision", "BF16"}}};
  table.when = {{{{"precision", {"FP8"}}}, {"/plan/tp=1"}, "", "no such precision"}};
  const auto chosen = expand_table(table);
  CHECK(chosen[0].rows[0].kind == RowKind::in_view);
  CHECK(chosen[0].refused.empty());
  CHECK(chosen[1].refused == "no such precision");
  CHECK(chosen[1].set.back() == "/plan/tp=1");
  table.set = {"/plan/nodes={no such column}"};
  CHECK_THROWS_AS(expand_table(table), InputError);
}

TEST_CASE("a joined table gives its columns to the rows of the same key") {
  CsvTable table = CsvTable::parse("id,a\nx,1\ny,2\n", "left");
  table.join(CsvTable::parse("id,a,b\ny,9,7\nz,9,8\n", "right"), "id");
  CHECK(table.text(0, "b").empty());
  CHECK(table.text(1, "b") == "7");
  CHECK(table.text(1, "a") == "2");
}

TEST_CASE("rank correlation and the loss of the chosen plan") {
  CHECK(*spearman({1, 2, 3, 4}, {10, 20, 30, 40}) == Approx(1));
  CHECK(*spearman({1, 2, 3, 4}, {4, 3, 2, 1}) == Approx(-1));
  CHECK(*spearman({1, 2, 3, 4, 5}, {1, 2, 3, 5, 4}) == Approx(0.9));
  CHECK(!spearman({1, 1}, {1, 2}));
  Suite suite;
  suite.ranking = RankingBounds{0.9, 2, 10};
  SuiteOutcome out;
  const double predicted[] = {1, 2, 3, 4, 5}, measured[] = {11, 10, 30, 40, 50};
  for (int i = 0; i < 5; ++i) {
    RowOutcome r;
    r.row.quantity = "step_s", r.row.choice = "one", r.row.measured = measured[i];
    r.predicted = predicted[i], r.error_pct = error_pct(predicted[i], measured[i]);
    out.rows.push_back(r);
  }
  const auto means = suite_means(suite, out);
  REQUIRE(means.size() == 4);
  CHECK(means[1].name == "spearman");
  CHECK(*means[1].value == Approx(0.9));
  CHECK(*means[2].value == Approx(10));  // 11 where 10 could be had
  CHECK(*means[3].value == Approx(10));
}

TEST_CASE("a measurement is counted once, whatever it is called") {
  Faults faults;
  for (const char* name : {"smc", "smc-calibrated", "llama31", "lambda"})
    for (const SuiteCase& c : load_suite(name, faults).cases)
      for (const SuiteRow& row : c.rows)
        for (const char* again : {"days_per_1T_tokens", "ac_mlperf_j", "facility_j", "speedup"})
          if (row.quantity == again) CHECK_FALSE(row.counted);
  CHECK(faults.empty());
}

TEST_CASE("the null model keeps the share of peak of the smallest fitted row") {
  Suite suite;
  std::vector<Outcome> outcomes;
  SuiteOutcome out;
  for (const auto& [id, gpus, measured, kind] :
       {std::tuple{"small", 8, 10.0, RowKind::fitted}, {"large", 64, 5.0, RowKind::predicted}}) {
    SuiteCase c;
    SuiteRow row;
    row.id = id, row.quantity = "step_s", row.measured = measured, row.kind = kind;
    c.rows = {row};
    suite.cases.push_back(c);
    Outcome o;
    o.result.plan.gpus = gpus;
    o.result.step.time_s = 4, o.result.step.mfu = 1.0;  // 4 s at the peak, whatever the prediction
    outcomes.push_back(o);
    RowOutcome r;
    r.row = row;
    out.rows.push_back(r);
  }
  add_null_model(suite, outcomes, out);
  CHECK(*out.rows[0].null_predicted == Approx(10));
  CHECK(*out.rows[1].null_predicted == Approx(10));
  CHECK(*out.rows[1].null_error_pct == Approx(100));
  // A share that the suite names holds where none of its rows is fitted.
  suite.null_mfu = 0.8;
  add_null_model(suite, outcomes, out);
  CHECK(*out.rows[1].null_predicted == Approx(10));
  suite.cases[0].rows[0].kind = RowKind::predicted;
  add_null_model(suite, outcomes, out);
  CHECK(*out.rows[1].null_predicted == Approx(5));
}
