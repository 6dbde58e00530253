// Suites of measured rows, the runs that predict them, and how far off each is (reference/suites/*.json).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "study/lab_rows.hpp"
#include "study/result.hpp"
#include "study/simulate.hpp"
#include "study/table_cases.hpp"

namespace tw {

// fitted: a constant of some profile was fitted on it; predicted: none was; given: an input, or what follows from
// inputs alone.
enum class RowKind { fitted, predicted, given };
template <>
struct Choices<RowKind> {
  static std::vector<std::pair<std::string, RowKind>> table() {
    return {{"fitted", RowKind::fitted}, {"predicted", RowKind::predicted}, {"given", RowKind::given}};
  }
};

struct SuiteRow {
  std::string id;
  std::string quantity;
  std::string rule;  // of network_w
  std::string unit;
  double measured = 0;
  RowKind kind = RowKind::predicted;
  std::optional<double> bound_pct;
  std::string over;     // of a speedup: a row of the case that it is taken over
  bool counted = true;  // in the suite's mean errors
  std::string source;
  static void describe(Description<SuiteRow>& d) {
    d.object("suite_row", "A measured figure and how close its prediction has to be.");
    d.required("id", &SuiteRow::id, "name of the row, unique in its suite");
    d.required("quantity", &SuiteRow::quantity, "a quantity of a result, such as step_s or dc_mlperf_j");
    d.optional("rule", &SuiteRow::rule,
               "the rule of apportionment, for network_w; olympic, for run_s over several runs");
    d.required("unit", &SuiteRow::unit, "unit of the measured value, as in results");
    d.required("measured", &SuiteRow::measured, "what was measured");
    d.required("kind", &SuiteRow::kind, "whether a constant was fitted on it");
    d.optional("bound_pct", &SuiteRow::bound_pct, "largest error allowed, in percent; absent: reported only");
    d.optional("over", &SuiteRow::over, "of a speedup: id of a row of the case that it is taken over");
    d.optional("counted", &SuiteRow::counted, "whether it counts in the suite's mean errors (default: yes)");
    d.required("source", &SuiteRow::source, "where the measured value stands");
  }
};

struct SuiteCase {
  std::string scenario;
  std::vector<std::string> set;
  std::vector<SuiteRow> rows;
  static void describe(Description<SuiteCase>& d) {
    d.object("suite_case", "A scenario and the rows that it predicts.");
    d.required("scenario", &SuiteCase::scenario, "scenario file");
    d.optional("set", &SuiteCase::set, "overrides of it, /pointer=value, after those of the suite");
    d.required("rows", &SuiteCase::rows, "measured figures");
  }
};

struct Suite {
  std::string name;
  std::string description;
  int runs = 0;
  std::vector<std::string> set;
  std::vector<SuiteCase> cases;
  std::vector<SuiteTable> tables;
  std::vector<PowerPhases> power_phases;
  std::optional<double> step_mape_bound_pct;  // of the predicted steps together
  std::optional<double> run_mape_bound_pct;   // and of the predicted run times
  static void describe(Description<Suite>& d) {
    d.object("suite", "Measured rows that the simulator is held against.");
    d.required("name", &Suite::name, "name of the suite");
    d.optional("description", &Suite::description, "what is measured, and what was fitted");
    d.optional("runs", &Suite::runs,
               "seeded runs that a prediction is taken over; 0: as many as each scenario asks for", between(0, 10000));
    d.optional("set", &Suite::set, "overrides of all scenarios, /pointer=value");
    d.optional("cases", &Suite::cases, "scenarios and their rows");
    d.optional("tables", &Suite::tables, "cases generated from tables of measurements");
    d.optional("power_phases", &Suite::power_phases, "steady power phases of accelerators in a laboratory");
    d.optional("step_mape_bound_pct", &Suite::step_mape_bound_pct,
               "largest mean absolute error of the predicted steps (quantity step_s), in percent");
    d.optional("run_mape_bound_pct", &Suite::run_mape_bound_pct,
               "largest mean absolute error of the predicted run times (quantity run_s), in percent");
  }
};

// Rows that do not meet their bound, with the error reached: tests assert no worse (reference/known_gaps.json).
struct KnownGaps {
  std::string note;
  std::map<std::string, double> gaps;
  static void describe(Description<KnownGaps>& d) {
    d.object("known_gaps", "Rows that miss their bound, with the error reached. Entries may only shrink.");
    d.optional("note", &KnownGaps::note, "for the reader");
    d.optional("gaps", &KnownGaps::gaps, "SUITE/ROW to the error reached, in percent");
  }
};

// The value of a named quantity of a result, in SI; absent where it does not apply. `rule` chooses among the
// apportionments of network_w; empty: the rule of the scenario.
Maybe result_quantity(const Result& result, const std::string& quantity, const std::string& rule = "");
// All names that result_quantity() knows, with their units.
const std::vector<std::pair<std::string, std::string>>& quantity_units();
// 100 * (predicted - measured) / measured; 0 when both are 0, absent when only measured is 0 or predicted is absent.
Maybe error_pct(Maybe predicted, double measured);

struct RowOutcome {
  SuiteRow row;
  Maybe predicted;
  Maybe error_pct;
  Maybe known_gap_pct;
  // Within the bound; absent for a row without one. A row without prediction does not meet its bound.
  std::optional<bool> met() const;
  // Misses its bound, and by more than the known gap.
  bool worse_than_known() const;
};

struct SuiteOutcome {
  std::string name;
  std::vector<RowOutcome> rows;
  std::vector<std::string> errors;  // of scenarios that failed
  std::vector<std::string> warnings;
  int exit_code = 0;  // highest of the scenarios'
  Maybe step_mape_bound_pct, run_mape_bound_pct;
  // Mean absolute error of the rows of a kind, in percent; absent when there are none. `quantity` empty: of all.
  Maybe mape_pct(RowKind kind, const std::string& quantity = "") const;
};

// Names of the suites in reference/suites/, sorted.
std::vector<std::string> suite_names();

// Runs the suites of these names or files (none: all). Faults of all their inputs are thrown together, before anything
// is simulated.
std::vector<SuiteOutcome> validate(const std::vector<std::string>& suites, const SimulationOptions& options, int jobs,
                                   double deadline_s, const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
