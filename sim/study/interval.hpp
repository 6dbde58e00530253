// How sure a prediction is: how wrong answers to questions of its kind have been (DESIGN of the intervals:
// docs/accuracy.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"

namespace tw {

struct Scenario;
struct Result;
struct SuiteOutcome;

// What a prediction rests on. Each is a word; a class is a path of them, coarse to fine: first the chip, since answers
// on one whose kernels were never measured spread two to three times as far, whatever the work.
struct RunClass {
  std::string chip;                        // measured, transferred
  std::string work;                        // dense, experts, profiled; towers, fp32: no row is of them
  std::string release;                     // fitted, neighbour (another release of its family is), new
  std::string bound;                       // compute, exchange, host: what else than compute takes a fifth of the step
  std::string fabric;                      // seen, new
  std::vector<std::string> paths() const;  // finest first
};

// Errors of one class in one suite: logarithms of measured over predicted.
struct Residuals {
  std::string suite, family, path;  // family: time, power, energy, memory; path: finest
  std::vector<double> log_ratios;
  bool in_view = false;  // rows that were seen while a form was chosen; else predicted ones
  static void describe(Description<Residuals>& d);
};

// models/accuracy/residuals.json: made by `trainwatt validate --residuals`, from rows that nothing was fitted on.
struct ResidualTable {
  std::vector<std::string> releases;           // software profiles that have a fitted row of a network
  std::vector<std::string> profiled_releases;  // and of a profiled workload, which says nothing of networks
  std::vector<std::string> fabrics;            // clusters that a predicted or fitted row ran on
  std::vector<Residuals> residuals;
  static void describe(Description<ResidualTable>& d);
};

struct Interval {
  double level = 0.8, low = 0, high = 0;
  std::string path;  // of the residuals that it was taken from: the class, or what of it has enough rows
  size_t rows = 0;
};

// Whether a class is of one kind of work; else nothing like the run was measured.
bool says_work(const std::string& path);

inline constexpr double kIntervalLevel = 0.8;

// Family of a quantity's errors by its unit; empty: none (samples, shares).
std::string error_family(const std::string& unit);

// Work, chip and bound of a run; release and fabric depend on what a table knows: placed().
RunClass run_class(const Scenario& scenario, const Result& result);
RunClass placed(RunClass run, const std::string& software, const std::string& cluster, const ResidualTable& table);

// Around `predicted`: where one more row of one more suite lies, given the predicted rows of the finest class of the
// same work that has enough of them, else those with the rows that were in view, else predicted rows of other work
// (random effects of suites: Higgins, Thompson and Spiegelhalter 2009, J. R. Stat. Soc. A 172, 137; unweighted means of
// suites: Thomas and Hultquist 1978, Ann. Stat. 6, 582). Absent where hardly any row of the family was measured;
// `without` leaves a suite out.
std::optional<Interval> interval_of(const ResidualTable& table, const RunClass& run, const std::string& family,
                                    double predicted, const std::string& without = "");

// The shipped table; empty where there is none.
const ResidualTable& residual_table();

// Fills result.intervals, that of an energy from those of time and power where few energies were measured; warns where
// only other kinds of work were measured, or nothing was.
void add_intervals(Result& result, const Scenario& scenario, const ResidualTable& table);

// What the rows of these suites say (a measurement that stands in two suites: once), and the share of each suite's rows
// that lie within the interval made without it.
ResidualTable residuals_of(const std::vector<SuiteOutcome>& suites);
struct Coverage {
  std::string suite;
  size_t rows = 0, inside = 0, unlike = 0;  // unlike: no row of another suite is like them
  double width_pct = 0;                     // median of half the interval over the prediction
};
std::vector<Coverage> coverage_of(const std::vector<SuiteOutcome>& suites, const ResidualTable& table);
std::string residual_table_text(const ResidualTable& table);

}  // namespace tw
