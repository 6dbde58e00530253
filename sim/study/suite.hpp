// Suites of measured rows: what stands in reference/suites/*.json, and the list of known gaps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "study/lab_rows.hpp"
#include "study/limiter_rows.hpp"
#include "study/table_cases.hpp"

namespace tw {

// fitted: a constant of some profile was fitted on it; in_view: not fitted, but seen while a form or a constant was
// chosen; predicted: neither; given: an input, or what follows from inputs alone.
enum class RowKind { fitted, in_view, predicted, given };

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
  std::string group;    // rows that are reported apart
  std::string choice;   // rows of one choice are plans to choose from: their order is held too
  std::string refused;  // why nothing is predicted
  std::string source;
  static void describe(Description<SuiteRow>& d);
};

struct SuiteCase {
  std::string scenario;
  std::vector<std::string> set;
  std::vector<SuiteRow> rows;
  std::string refused;  // the program cannot say this case, and why
  static void describe(Description<SuiteCase>& d);
};

// How well plans of one choice (same model, accelerators and batch) are ordered.
struct RankingBounds {
  double spearman = 0;
  double loss_mean_pct = 100, loss_worst_pct = 100;  // of the plan that would be chosen, against the best measured
  static void describe(Description<RankingBounds>& d);
};

struct Suite {
  std::string name;
  std::string description;
  int runs = 0;
  std::vector<std::string> set;
  std::vector<SuiteCase> cases;
  std::vector<SuiteTable> tables;
  std::vector<PowerPhases> power_phases;
  std::vector<LimiterBursts> limiter_bursts;
  std::optional<double> step_mape_bound_pct;  // of the predicted steps together
  std::optional<double> run_mape_bound_pct;   // and of the predicted run times
  std::map<std::string, double> group_mape_bound_pct;
  std::optional<RankingBounds> ranking;
  std::optional<double> null_mfu;  // where no row of the suite is fitted
  static void describe(Description<Suite>& d);
};

// Rows that do not meet their bound, with the error reached: tests assert no worse (reference/known_gaps.json).
struct KnownGaps {
  std::string note;
  std::map<std::string, double> gaps;
  static void describe(Description<KnownGaps>& d);
};

// Names of the suites in reference/suites/, sorted.
std::vector<std::string> suite_names();
// Suite by name or file, its tables made into cases. A measurement that stands in a second row of its case under
// another name (days for a trillion tokens beside the step, AC beside DC energy) is not counted again.
Suite load_suite(const std::string& name, Faults& faults);
KnownGaps load_known_gaps(Faults& faults);

}  // namespace tw
