// A submission to MLPerf Training as files: systems, benchmarks, runs and their power, of one results folder or of a
// whole round. Layout: SUBMITTER/results/SYSTEM/BENCHMARK/result_*.txt, scaling.json, power/result_*/node_*.txt and
// sw_*.txt; SUBMITTER/systems/SYSTEM.json.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mlperf/meter_file.hpp"
#include "mlperf/scores.hpp"

namespace tw {

// Of systems/SYSTEM.json; empty or 0 where it does not say.
struct SubmittedSystem {
  std::string submitter, name, division, status, accelerator, framework, cooling;
  int nodes = 0, accelerators_per_node = 0;
};

// The runs of one benchmark on one system.
struct ImportedBenchmark {
  std::string folder;  // below the imported folder; "." is that folder itself
  std::string submitter, system, benchmark;
  SubmittedSystem description;
  int nodes = 0;                         // by the system's description, else by the power files; 0: unknown
  std::string meter;                     // "dc" or "ac", where folder or system name say so
  bool simulated = false;                // exported by TrainWatt
  std::optional<double> scaling_factor;  // scaling.json
  std::vector<MeasuredRun> runs;
  ImportedScore score;
};

struct Import {
  std::vector<ImportedBenchmark> benchmarks;
  std::vector<LogFinding> findings;
  size_t files = 0;     // read
  bool usable() const;  // some run is complete
};

// Reads `folder` (or one result file). `progress(done, all)` counts files. `select(system, benchmark)` says which to
// read. Throws InputError when there is no such folder or it holds no result file; all other damage is a finding.
Import import_submission(const std::string& folder,
                         const std::function<bool(const std::string&, const std::string&)>& select,
                         const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
