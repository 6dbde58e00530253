// Simulated runs as a submission to MLPerf Training v4.0 lays them out, for tools that read such folders:
//   DIR/TrainWatt-simulated/results/<nodes>x<cluster>/<benchmark>/result_<i>.txt, scaling.json
//   .../<benchmark>/power/result_<i>/node_<k>.txt (DC, through the simulated meter), sw_0.txt (the switches' estimate)
//   DIR/TrainWatt-simulated/systems/<nodes>x<cluster>.json
// Every folder holds a file SIMULATED that says what this is.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw::mlperf {

// The runs of one scenario in the order of their seeds, each with its timeline.
struct MlperfRuns {
  const LoadedScenario* scenario = nullptr;
  std::vector<const Result*> runs;
};

// What can be told before anything is simulated: a scenario names no benchmark, two of them are the same system and
// benchmark, or DIR holds something else: files that are no simulated submission, another scenario under the same
// system and benchmark, the same one with other inputs or from another seed on, another system of the same name. Runs
// of the same scenario from `seed` on are replaced, other systems and benchmarks stay.
void check_mlperf_folder(const std::string& option, const std::string& folder,
                         const std::vector<LoadedScenario>& scenarios, uint64_t seed, Faults& faults);

// Writes the runs; a benchmark's folder appears whole or not at all. Throws InputError when it cannot be written or
// would hold too many readings.
void write_mlperf_logs(const std::string& folder, const MlperfRuns& runs);

}  // namespace tw::mlperf
