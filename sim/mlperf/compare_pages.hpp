// Imported runs beside a simulation: table, JSON, figure; and the scenario with constants fitted to them.
#pragma once

#include <string>
#include <vector>

#include "mlperf/import_compare.hpp"

namespace tw::mlperf {

std::string import_comparison_table(const ImportedBenchmark& benchmark, const Result& result,
                                    const std::vector<ImportComparison>& rows);
std::string import_comparison_json(const std::string& scenario, const ImportedBenchmark& benchmark,
                                   const std::vector<ImportComparison>& rows);

// A scenario that uses the scenario file `base` and overrides it with `constants`, each with its source as a comment.
std::string fitted_scenario(const std::string& base, const std::string& name,
                            const std::vector<FittedConstant>& constants);

// FOLDER/imported-SUBMITTER-SYSTEM-BENCHMARK.{csv,svg,png}: node power over time of the first counted run that has
// power, with its events; `simulated` (null: none) over it. `imported_folder` is where the run's files are. Returns
// what a user should hear.
std::vector<std::string> import_figure(const std::string& folder, const std::string& imported_folder,
                                       const ImportedBenchmark& benchmark, const Result* simulated);

}  // namespace tw::mlperf
