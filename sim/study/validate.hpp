// Suites of measured rows run against the simulator: how far off each row is (reference/suites/*.json).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/interval.hpp"
#include "study/result.hpp"
#include "study/simulate.hpp"
#include "study/suite.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// How much faster a case is than the one that row `over` belongs to: mean run times.
inline constexpr const char* kSpeedup = "speedup";
// 100 * (predicted - measured) / measured; 0 when both are 0, absent when only measured is 0 or predicted is absent.
Maybe error_pct(Maybe predicted, double measured);

struct RowOutcome {
  SuiteRow row;
  Maybe predicted;
  Maybe error_pct;
  Maybe known_gap_pct;
  Maybe null_predicted, null_error_pct;  // of the null model (suite_means.hpp)
  RunClass run_class;                    // and what its run was made with; empty for rows that need no run
  std::string software, cluster;
  // Within the bound; absent for a row without one, and for a refused row. A row without prediction does not meet it.
  std::optional<bool> met() const;
  // Misses its bound, and by more than the known gap.
  bool worse_than_known() const;
  static void describe(Outputs<RowOutcome>& d);
};

// A bound on rows taken together: a mean error, or how plans are ordered.
struct MeanOutcome {
  std::string name;    // step_s, run_s, a group, spearman, loss_mean_pct, loss_worst_pct
  Maybe value;         // absent: there is nothing to take it over
  Maybe bound;         // absent: reported only
  Maybe known;         // known gap
  size_t rows = 0;     // or choices
  Maybe null_value;    // of the null model
  bool high = false;   // high is good
  size_t in_view = 0;  // of these rows
  std::optional<bool> met() const;
  bool worse_than_known() const;
  static void describe(Outputs<MeanOutcome>& d);
};

struct SuiteOutcome {
  std::string name;
  std::vector<RowOutcome> rows;
  std::vector<MeanOutcome> means;
  std::vector<std::string> errors;  // of scenarios that failed
  std::vector<std::string> warnings;
  int exit_code = 0;  // highest of the scenarios'
  // Mean absolute error of the rows of a kind, in percent; absent when there are none. `quantity` empty: of all.
  Maybe mape_pct(RowKind kind, const std::string& quantity = "") const;
  static void describe(Outputs<SuiteOutcome>& d);
};

// Runs the suites of these names or files (none: all). Faults of all their inputs are thrown together, before anything
// is simulated.
std::vector<SuiteOutcome> validate(const std::vector<std::string>& suites, const SimulationOptions& options, int jobs,
                                   double deadline_s, const std::function<void(size_t done, size_t all)>& progress);

// The gaps of `known` without those that these outcomes close, and with those that they narrow: entries only shrink.
KnownGaps shrunk(KnownGaps known, const std::vector<SuiteOutcome>& suites);

}  // namespace tw
