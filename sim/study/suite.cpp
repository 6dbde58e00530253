#include "study/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "study/validate.hpp"

namespace tw {
namespace {

namespace fs = std::filesystem;

// Quantities that are another one of the same case in other words: the same clock, the same meter.
const std::map<std::string, std::vector<std::string>> kRestates{{"days_per_1T_tokens", {"step_s"}},
                                                                {"speedup", {"run_s"}},
                                                                {"ac_j", {"dc_j"}},
                                                                {"facility_j", {"dc_j", "ac_j"}},
                                                                {"kg_co2e", {"dc_j", "ac_j"}},
                                                                {"ac_mlperf_j", {"dc_mlperf_j"}},
                                                                {"facility_mlperf_j", {"dc_mlperf_j", "ac_mlperf_j"}},
                                                                {"kg_co2e_mlperf", {"dc_mlperf_j", "ac_mlperf_j"}}};

void count_once(SuiteCase& c) {
  const auto stands = [&](const std::string& quantity) {
    return std::any_of(c.rows.begin(), c.rows.end(), [&](const SuiteRow& r) { return r.quantity == quantity; });
  };
  for (SuiteRow& row : c.rows)
    if (const auto of = kRestates.find(row.quantity); of != kRestates.end())
      if (std::any_of(of->second.begin(), of->second.end(), stands)) row.counted = false;
}

std::string suite_file(const std::string& name) {
  const bool is_file = name.size() > 5 && name.compare(name.size() - 5, 5, ".json") == 0;
  return is_file ? name : "reference/suites/" + name + ".json";
}

void check_quantity(const SuiteRow& row, const std::string& file, const std::string& place, Faults& faults) {
  if (row.quantity == kSpeedup) {
    if (row.unit != "1") faults.add({file, place + "/unit", "a speedup has no unit", "allowed: 1"});
    return;
  }
  if (const auto unit = quantity_unit(row.quantity)) {
    if (row.unit != *unit)
      faults.add({file, place + "/unit", fmt::format("\"{}\" is not the unit of {}", row.unit, row.quantity),
                  fmt::format("allowed: {}", *unit)});
    return;
  }
  std::vector<std::string> names{kSpeedup};
  for (const auto& [name, unit] : quantity_units()) names.push_back(name);
  faults.add({file, place + "/quantity", fmt::format("unknown quantity \"{}\"", row.quantity),
              suggest(row.quantity, names, 32)});
}

void check_rows(const Suite& suite, const std::string& file, Faults& faults) {
  std::set<std::string> ids;
  for (size_t c = 0; c < suite.cases.size(); ++c) {
    for (size_t r = 0; r < suite.cases[c].rows.size(); ++r) {
      const SuiteRow& row = suite.cases[c].rows[r];
      const std::string place = fmt::format("/cases/{}/rows/{}", c, r);
      if (!ids.insert(row.id).second) faults.add({file, place + "/id", fmt::format("\"{}\" stands twice", row.id), ""});
      check_quantity(row, file, place, faults);
    }
  }
  for (size_t c = 0; c < suite.cases.size(); ++c)
    for (size_t r = 0; r < suite.cases[c].rows.size(); ++r)
      if (const SuiteRow& row = suite.cases[c].rows[r]; row.quantity == kSpeedup && ids.count(row.over) == 0)
        faults.add({file, fmt::format("/cases/{}/rows/{}/over", c, r), fmt::format("there is no row \"{}\"", row.over),
                    suggest(row.over, {ids.begin(), ids.end()})});
}

}  // namespace

Suite load_suite(const std::string& name, Faults& faults) {
  const std::string file = suite_file(name);
  if (!find_input_file(file, "")) {
    faults.add({file, "", fmt::format("there is no suite \"{}\"", name), suggest(name, suite_names())});
    return {};
  }
  const size_t before = faults.size();
  const Document document = Document::load(file, description<Suite>().info(), {}, faults);
  Suite suite = read<Suite>(document, faults);
  if (faults.size() != before) return suite;
  for (const SuiteTable& table : suite.tables)
    for (SuiteCase& c : expand_table(table)) suite.cases.push_back(std::move(c));
  for (SuiteCase& c : suite.cases) count_once(c);
  check_rows(suite, document.origin("").file, faults);
  return suite;
}

KnownGaps load_known_gaps(Faults& faults) {
  const std::string file = "reference/known_gaps.json";
  if (!find_input_file(file, "")) return {};
  const Document document = Document::load(file, description<KnownGaps>().info(), {}, faults);
  return read<KnownGaps>(document, faults);
}

std::vector<std::string> suite_names() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const std::string& folder : data_folders())
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "reference" / "suites", ignored))
      if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

void SuiteRow::describe(Description<SuiteRow>& d) {
  d.object("suite_row", "A measured figure and how close its prediction has to be.");
  d.required("id", &SuiteRow::id, "name of the row, unique in its suite");
  d.required("quantity", &SuiteRow::quantity, "a quantity of a result, such as step_s or dc_mlperf_j");
  d.optional("rule", &SuiteRow::rule, "the rule of apportionment, for network_w; olympic, for run_s over several runs");
  d.required("unit", &SuiteRow::unit, "unit of the measured value, as in results");
  d.required("measured", &SuiteRow::measured, "what was measured");
  d.required(
      "kind", &SuiteRow::kind,
      "fitted: a constant was fitted on it; in_view: seen while a form or constant was chosen; predicted; given: "
      "an input");
  d.optional("bound_pct", &SuiteRow::bound_pct, "largest error allowed, in percent; absent: reported only");
  d.optional("over", &SuiteRow::over, "of a speedup: id of a row of the case that it is taken over");
  d.optional("counted", &SuiteRow::counted, "whether it counts in the suite's mean errors (default: yes)");
  d.optional("group", &SuiteRow::group, "rows of one group are reported apart");
  d.optional("choice", &SuiteRow::choice, "rows of one choice are plans to choose from: their order is held too");
  d.optional("refused", &SuiteRow::refused, "why nothing is predicted");
  d.required("source", &SuiteRow::source, "where the measured value stands");
}

void SuiteCase::describe(Description<SuiteCase>& d) {
  d.object("suite_case", "A scenario and the rows that it predicts.");
  d.required("scenario", &SuiteCase::scenario, "scenario file");
  d.optional("set", &SuiteCase::set, "overrides of it, /pointer=value, after those of the suite");
  d.required("rows", &SuiteCase::rows, "measured figures");
  d.optional("refused", &SuiteCase::refused, "why this cannot be simulated; its rows are listed, and nothing runs");
}

void RankingBounds::describe(Description<RankingBounds>& d) {
  d.object("ranking_bounds", "How well plans of one choice have to be ordered.");
  d.required("spearman", &RankingBounds::spearman, "rank correlation, mean over the choices of five plans and more",
             between(-1, 1));
  d.required("loss_mean_pct", &RankingBounds::loss_mean_pct,
             "time lost by taking the plan predicted best instead of the best measured, mean over choices");
  d.required("loss_worst_pct", &RankingBounds::loss_worst_pct, "and in the worst of them");
}

void Suite::describe(Description<Suite>& d) {
  d.object("suite", "Measured rows that the simulator is held against.");
  d.required("name", &Suite::name, "name of the suite");
  d.optional("description", &Suite::description, "what is measured, and what was fitted");
  d.optional("runs", &Suite::runs, "seeded runs that a prediction is taken over; 0: as many as each scenario asks for",
             between(0, 10000));
  d.optional("set", &Suite::set, "overrides of all scenarios, /pointer=value");
  d.optional("cases", &Suite::cases, "scenarios and their rows");
  d.optional("tables", &Suite::tables, "cases generated from tables of measurements");
  d.optional("power_phases", &Suite::power_phases, "steady power phases of accelerators in a laboratory");
  d.optional("limiter_bursts", &Suite::limiter_bursts, "bursts that show a board's limiter in time");
  d.optional("step_mape_bound_pct", &Suite::step_mape_bound_pct,
             "largest mean absolute error of the predicted steps (quantity step_s), in percent");
  d.optional("run_mape_bound_pct", &Suite::run_mape_bound_pct,
             "largest mean absolute error of the predicted run times (quantity run_s), in percent");
  d.optional("group_mape_bound_pct", &Suite::group_mape_bound_pct,
             "largest mean absolute error of a group's predicted steps, in percent");
  d.optional("ranking", &Suite::ranking, "how well plans to choose from have to be ordered");
  d.optional("null_mfu", &Suite::null_mfu,
             "MFU of the null model where no row of the suite is fitted (default: of the smallest fitted row)",
             between(0, 1));
}

void KnownGaps::describe(Description<KnownGaps>& d) {
  d.object("known_gaps", "Rows that miss their bound, with the error reached. Entries may only shrink.");
  d.optional("note", &KnownGaps::note, "for the reader");
  d.optional("gaps", &KnownGaps::gaps, "SUITE/ROW or SUITE/mean/WHAT to the error (or rank correlation) reached");
}

}  // namespace tw
