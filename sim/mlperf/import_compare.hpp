// Imported runs beside a simulation of the same benchmark, and constants of a scenario fitted to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlperf/submission.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace tw {

// The imported benchmark that the scenario stands for: the only one, or the only one on as many nodes. Throws
// InputError that lists them otherwise.
const ImportedBenchmark& counterpart(const Import& import, const LoadedScenario& scenario);

// The runs that means are taken over: those in score, else all that succeeded, else all that are complete.
std::vector<const MeasuredRun*> counted_runs(const ImportedBenchmark& benchmark);

struct ImportComparison {
  std::string quantity, unit;
  std::optional<double> imported, simulated, error_pct;
};
// Means over the counted runs beside the simulation, in the units of the result contract. Energies are those of the
// nodes on the side of the rectifiers that the meters were on.
std::vector<ImportComparison> compare_import(const ImportedBenchmark& benchmark, const Result& result);

// Values of the scenario that make it repeat the runs, as its overrides.
struct FittedConstant {
  std::string pointer, value, source;
};
// Software: init, waits and evaluations as logged; what the simulation has too little of an evaluation goes to its
// fixed part. Cluster: device_speed, by the step. One fit is right to first order: simulate again and repeat.
std::vector<FittedConstant> fit_constants(const ImportedBenchmark& benchmark, const LoadedScenario& scenario,
                                          const Result& result);

}  // namespace tw
