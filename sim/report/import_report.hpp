// Imported MLPerf results for people and for programs.
#pragma once

#include <string>

#include "study/mlperf_submission.hpp"

namespace tw::report {

// Runs, scores and findings, at most 100 columns wide. Of a kind of finding that concerns the quality of data three are
// shown, of damage twenty; JSON and CSV hold all.
std::string import_table(const Import& import);

// {"trainwatt", "benchmarks": [{"folder", "submitter", "system", ..., "runs": [...], "score": {...}}], "findings":
// [...]} in SI units; null where something was not logged.
std::string import_json(const Import& import);

// One row a run; columns named as in reference/smc_v4.0/runs.csv where they mean the same.
std::string import_csv(const Import& import);
std::string findings_csv(const Import& import);

}  // namespace tw::report
