// Imported MLPerf results for people and for programs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "mlperf/submission.hpp"

namespace tw::mlperf {

// Runs and scores, at most 100 columns wide, and findings. Of a kind of finding that concerns the quality of data three
// are shown, of damage twenty; JSON and CSV hold all.
std::string import_table(const Import& import);

// {"trainwatt", "benchmarks": [{"folder", "submitter", "system", ..., "runs": [...], "score": {...}}], "findings":
// [...]} in SI units; null where something was not logged.
// `comparison` (JSON, may be empty) becomes the key "comparison". It is handed over piece by piece: a whole round's
// would fill the memory.
void import_json(const Import& import, const std::string& comparison,
                 const std::function<void(std::string_view)>& write);

// One row a run; columns named as in reference/smc_v4.0/runs.csv where they mean the same.
std::string import_csv(const Import& import);
std::string findings_csv(const Import& import);

}  // namespace tw::mlperf
