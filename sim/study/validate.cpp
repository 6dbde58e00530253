#include "study/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"

namespace tw {
namespace {

namespace fs = std::filesystem;

struct LoadedSuite {
  Suite suite;
  std::vector<LoadedScenario> scenarios;  // one a case
  std::vector<RowOutcome> laboratory;     // rows that need no run
};

std::string suite_file(const std::string& name) {
  const bool is_file = name.size() > 5 && name.compare(name.size() - 5, 5, ".json") == 0;
  return is_file ? name : "reference/suites/" + name + ".json";
}

// How much faster a case is than the one that row `over` belongs to: mean run times.
constexpr const char* kSpeedup = "speedup";

void check_rows(const Suite& suite, const std::string& file, Faults& faults) {
  std::set<std::string> ids;
  for (size_t c = 0; c < suite.cases.size(); ++c) {
    for (size_t r = 0; r < suite.cases[c].rows.size(); ++r) {
      const SuiteRow& row = suite.cases[c].rows[r];
      const std::string place = fmt::format("/cases/{}/rows/{}", c, r);
      if (!ids.insert(row.id).second) faults.add({file, place + "/id", fmt::format("\"{}\" stands twice", row.id), ""});
      if (row.quantity == kSpeedup) {
        if (row.unit != "1") faults.add({file, place + "/unit", "a speedup has no unit", "allowed: 1"});
        continue;
      }
      const auto unit = quantity_unit(row.quantity);
      std::vector<std::string> names{kSpeedup};
      for (const auto& [name, its_unit] : quantity_units()) names.push_back(name);
      if (!unit)
        faults.add({file, place + "/quantity", fmt::format("unknown quantity \"{}\"", row.quantity),
                    suggest(row.quantity, names, 32)});
      else if (row.unit != *unit)
        faults.add({file, place + "/unit", fmt::format("\"{}\" is not the unit of {}", row.unit, row.quantity),
                    fmt::format("allowed: {}", *unit)});
    }
  }
  for (size_t c = 0; c < suite.cases.size(); ++c)
    for (size_t r = 0; r < suite.cases[c].rows.size(); ++r)
      if (const SuiteRow& row = suite.cases[c].rows[r]; row.quantity == kSpeedup && ids.count(row.over) == 0)
        faults.add({file, fmt::format("/cases/{}/rows/{}/over", c, r), fmt::format("there is no row \"{}\"", row.over),
                    suggest(row.over, {ids.begin(), ids.end()})});
}

Maybe speedup(const Suite& suite, const std::vector<Outcome>& outcomes, size_t at, const std::string& over) {
  const Maybe own = outcomes[at].result.run.time_to_train_s.mean;
  for (size_t c = 0; c < suite.cases.size(); ++c)
    for (const SuiteRow& row : suite.cases[c].rows)
      if (const Maybe base = outcomes[c].result.run.time_to_train_s.mean; row.id == over && base && own)
        return *base / *own;
  return std::nullopt;
}

LoadedSuite load_suite(const std::string& name, Faults& faults) {
  const std::string file = suite_file(name);
  LoadedSuite loaded;
  if (!find_input_file(file, "")) {
    faults.add({file, "", fmt::format("there is no suite \"{}\"", name), suggest(name, suite_names())});
    return loaded;
  }
  const size_t before = faults.size();
  const Document document = Document::load(file, description<Suite>().info(), {}, faults);
  loaded.suite = read<Suite>(document, faults);
  if (faults.size() != before) return loaded;
  for (const SuiteTable& table : loaded.suite.tables)
    for (SuiteCase& c : expand_table(table)) loaded.suite.cases.push_back(std::move(c));
  for (const PowerPhases& phases : loaded.suite.power_phases)
    for (RowOutcome& row : phase_rows(phases, faults)) loaded.laboratory.push_back(std::move(row));
  check_rows(loaded.suite, document.origin("").file, faults);
  for (const SuiteCase& c : loaded.suite.cases) {
    std::vector<std::string> overrides = loaded.suite.set;
    overrides.insert(overrides.end(), c.set.begin(), c.set.end());
    loaded.scenarios.push_back(load_scenario(c.scenario, overrides, faults));
  }
  return loaded;
}

SuiteOutcome compare(const Suite& suite, const std::vector<Outcome>& outcomes, const KnownGaps& known) {
  SuiteOutcome out;
  out.name = suite.name;
  out.step_mape_bound_pct = suite.step_mape_bound_pct;
  out.run_mape_bound_pct = suite.run_mape_bound_pct;
  for (size_t c = 0; c < suite.cases.size(); ++c) {
    const Outcome& outcome = outcomes[c];
    out.exit_code = std::max(out.exit_code, outcome.exit_code);
    if (!outcome.result.error.empty())
      out.errors.push_back(fmt::format("{}: {}", suite.cases[c].scenario, outcome.result.error));
    for (const std::string& warning : outcome.result.warnings)
      out.warnings.push_back(fmt::format("{}: {}", suite.cases[c].scenario, warning));
    for (const SuiteRow& row : suite.cases[c].rows) {
      RowOutcome r;
      r.row = row;
      if (outcome.result.error.empty())
        r.predicted = row.quantity == kSpeedup ? speedup(suite, outcomes, c, row.over)
                                               : result_quantity(outcome.result, row.quantity, row.rule);
      r.error_pct = error_pct(r.predicted, row.measured);
      const auto gap = known.gaps.find(suite.name + "/" + row.id);
      if (gap != known.gaps.end()) r.known_gap_pct = gap->second;
      out.rows.push_back(std::move(r));
    }
  }
  return out;
}

KnownGaps load_known_gaps(Faults& faults) {
  const std::string file = "reference/known_gaps.json";
  if (!find_input_file(file, "")) return {};
  const Document document = Document::load(file, description<KnownGaps>().info(), {}, faults);
  return read<KnownGaps>(document, faults);
}

}  // namespace

Maybe error_pct(Maybe predicted, double measured) {
  if (!predicted || !std::isfinite(*predicted)) return std::nullopt;
  if (*predicted == measured) return 0.0;
  if (measured == 0) return std::nullopt;
  return 100 * (*predicted - measured) / std::abs(measured);
}

std::optional<bool> RowOutcome::met() const {
  if (!row.bound_pct) return std::nullopt;
  // "Exact" allows the last bits of a sum.
  return error_pct.has_value() && std::abs(*error_pct) <= *row.bound_pct + 1e-9;
}

bool RowOutcome::worse_than_known() const {
  if (met().value_or(true)) return false;
  // Known gaps are written with two decimals.
  return !known_gap_pct || !error_pct || std::abs(*error_pct) > std::abs(*known_gap_pct) + 0.005;
}

Maybe SuiteOutcome::mape_pct(RowKind kind, const std::string& quantity) const {
  double sum = 0;
  int count = 0;
  for (const RowOutcome& r : rows) {
    if (r.row.kind != kind || !r.row.counted || !r.error_pct || (!quantity.empty() && r.row.quantity != quantity))
      continue;
    sum += std::abs(*r.error_pct);
    ++count;
  }
  return count == 0 ? std::nullopt : Maybe(sum / count);
}

std::vector<std::string> suite_names() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const std::string& folder : data_folders())
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "reference" / "suites", ignored))
      if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

std::vector<SuiteOutcome> validate(const std::vector<std::string>& suites, const SimulationOptions& options, int jobs,
                                   double deadline_s, const std::function<void(size_t done, size_t all)>& progress) {
  const std::vector<std::string> names = suites.empty() ? suite_names() : suites;
  if (names.empty()) throw InputError({{"reference/suites", "", "there is no suite to validate against", ""}});
  Faults faults;
  std::vector<LoadedSuite> loaded;
  size_t all = 0;
  for (const std::string& name : names) {
    loaded.push_back(load_suite(name, faults));
    all += loaded.back().scenarios.size();
  }
  const KnownGaps known = load_known_gaps(faults);
  faults.throw_if_any();

  std::vector<SuiteOutcome> outcomes;
  size_t finished = 0;
  for (const LoadedSuite& one : loaded) {
    SimulationOptions chosen = options;
    chosen.runs = std::max(options.runs, one.suite.runs);
    const auto results = simulate_all(one.scenarios, chosen, jobs, deadline_s,
                                      [&](size_t done, size_t) { progress(finished + done, all); });
    finished += one.scenarios.size();
    outcomes.push_back(compare(one.suite, results, known));
    for (RowOutcome row : one.laboratory) {
      const auto gap = known.gaps.find(one.suite.name + "/" + row.row.id);
      if (gap != known.gaps.end()) row.known_gap_pct = gap->second;
      outcomes.back().rows.push_back(std::move(row));
    }
  }
  return outcomes;
}

std::vector<std::pair<std::string, RowKind>> Choices<RowKind>::table() {
  return {{"fitted", RowKind::fitted}, {"predicted", RowKind::predicted}, {"given", RowKind::given}};
}

void SuiteRow::describe(Description<SuiteRow>& d) {
  d.object("suite_row", "A measured figure and how close its prediction has to be.");
  d.required("id", &SuiteRow::id, "name of the row, unique in its suite");
  d.required("quantity", &SuiteRow::quantity, "a quantity of a result, such as step_s or dc_mlperf_j");
  d.optional("rule", &SuiteRow::rule, "the rule of apportionment, for network_w; olympic, for run_s over several runs");
  d.required("unit", &SuiteRow::unit, "unit of the measured value, as in results");
  d.required("measured", &SuiteRow::measured, "what was measured");
  d.required("kind", &SuiteRow::kind, "whether a constant was fitted on it");
  d.optional("bound_pct", &SuiteRow::bound_pct, "largest error allowed, in percent; absent: reported only");
  d.optional("over", &SuiteRow::over, "of a speedup: id of a row of the case that it is taken over");
  d.optional("counted", &SuiteRow::counted, "whether it counts in the suite's mean errors (default: yes)");
  d.required("source", &SuiteRow::source, "where the measured value stands");
}

void SuiteCase::describe(Description<SuiteCase>& d) {
  d.object("suite_case", "A scenario and the rows that it predicts.");
  d.required("scenario", &SuiteCase::scenario, "scenario file");
  d.optional("set", &SuiteCase::set, "overrides of it, /pointer=value, after those of the suite");
  d.required("rows", &SuiteCase::rows, "measured figures");
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
  d.optional("step_mape_bound_pct", &Suite::step_mape_bound_pct,
             "largest mean absolute error of the predicted steps (quantity step_s), in percent");
  d.optional("run_mape_bound_pct", &Suite::run_mape_bound_pct,
             "largest mean absolute error of the predicted run times (quantity run_s), in percent");
}

void KnownGaps::describe(Description<KnownGaps>& d) {
  d.object("known_gaps", "Rows that miss their bound, with the error reached. Entries may only shrink.");
  d.optional("note", &KnownGaps::note, "for the reader");
  d.optional("gaps", &KnownGaps::gaps, "SUITE/ROW to the error reached, in percent");
}

}  // namespace tw
