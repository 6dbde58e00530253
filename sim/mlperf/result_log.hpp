// The result file of one simulated run in the form of MLPerf Training: ":::MLLOG" lines behind a rank prefix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "step/timeline.hpp"
#include "study/scenario.hpp"

namespace tw::mlperf {

// Between two evaluations. Seconds from run_start; samples since run_start.
struct LoggedBlock {
  double begin_s = 0, end_s = 0;
  double timed_s = 0;  // of its steps, with the data waits between them, without the wait before an evaluation
  double first_samples = 0, samples = 0;
};

struct LoggedEvaluation {
  double begin_s = 0, end_s = 0, samples = 0;
};

struct RunProgress {
  std::vector<LoggedBlock> blocks;
  std::vector<LoggedEvaluation> evaluations;
  // Corners of the samples over time, which is linear between them.
  std::vector<double> time_s, samples;
  double time_at(double wanted_samples) const;
};

// What the nodes that train, and those that only evaluate, did inside the run.
RunProgress run_progress(const Scenario& scenario, const Timeline& timeline);

// {"namespace": "", "time_ms": ..., ...} as Python's json writes it: a blank after colon and comma. value and metadata
// are JSON text.
std::string mllog_line(int64_t time_ms, const std::string& event, const std::string& key, const std::string& value,
                       const std::string& metadata);

// One run of the scenario, which names its benchmark. run_start falls on start_ms (UTC, milliseconds since 1970).
struct LoggedRun {
  const Scenario* scenario = nullptr;
  const Timeline* timeline = nullptr;
  uint64_t seed = 1;
  bool stopped = false;  // before its target
  int64_t start_ms = 0;
};
std::string result_log(const LoggedRun& run);

// "success" or, for a run that stopped or never evaluates, "aborted".
std::string run_status(const LoggedRun& run, const RunProgress& progress);

inline constexpr const char* kSimulatedOrg = "TrainWatt (simulated)";

}  // namespace tw::mlperf
