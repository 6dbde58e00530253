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

template <class T>
class Outputs;  // core/outputs.hpp

// fitted: a constant of some profile was fitted on it; predicted: none was; given: an input, or what follows from
// inputs alone.
enum class RowKind { fitted, predicted, given };
template <>
struct Choices<RowKind> {
  static std::vector<std::pair<std::string, RowKind>> table();
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
  static void describe(Description<SuiteRow>& d);
};

struct SuiteCase {
  std::string scenario;
  std::vector<std::string> set;
  std::vector<SuiteRow> rows;
  static void describe(Description<SuiteCase>& d);
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
  static void describe(Description<Suite>& d);
};

// Rows that do not meet their bound, with the error reached: tests assert no worse (reference/known_gaps.json).
struct KnownGaps {
  std::string note;
  std::map<std::string, double> gaps;
  static void describe(Description<KnownGaps>& d);
};

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
  static void describe(Outputs<RowOutcome>& d);
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
  static void describe(Outputs<SuiteOutcome>& d);
};

// Names of the suites in reference/suites/, sorted.
std::vector<std::string> suite_names();

// Runs the suites of these names or files (none: all). Faults of all their inputs are thrown together, before anything
// is simulated.
std::vector<SuiteOutcome> validate(const std::vector<std::string>& suites, const SimulationOptions& options, int jobs,
                                   double deadline_s, const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
