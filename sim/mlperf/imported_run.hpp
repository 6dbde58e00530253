// One result file of MLPerf Training (result_*.txt): the run that it logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlperf/mllog.hpp"

namespace tw {

// Times in seconds; absent: not logged, or logged as something that cannot be, which is a finding.
struct ImportedRun {
  using Maybe = std::optional<double>;
  std::string id;    // name of the file without its ending
  std::string file;  // below the imported folder
  std::string benchmark, division, organisation, platform, status;
  std::string duplicate_of;           // another run of the folder with the same events
  std::string not_compliant;          // which rule of the compliance checker it breaks; empty: none that is known here
  int64_t start_ms = 0, stop_ms = 0;  // run_start, run_stop; 0: absent
  Maybe run_s, init_s;
  Maybe seed, global_batch_size, gradient_accumulation, learning_rate, train_samples, eval_samples, sequence;
  Maybe samples, steps;  // to convergence
  std::string samples_from;
  int evaluations = 0;                          // inside the run; those of checkpoints after it are left out
  Maybe eval_s, eval_first_s, eval_blocking_s;  // mean of all; the first; from its start to the next training block
  Maybe accuracy;
  // Means over blocks or epochs after the first; their spread is that of block means, not of single steps.
  Maybe step_s, step_s_p5, step_s_p50, step_s_p95;
  std::string step_source;  // block_timer, block_wall, epoch_wall, interval_between_evals
  int step_observations = 0;
  Maybe first_step_overhead_s;                              // of the first block, beyond its steps at the median
  Maybe first_gap_s;                                        // in the first block outside the timer of its steps
  std::vector<std::pair<double, double>> evaluation_times;  // start and stop, seconds after run_start
  uint64_t fingerprint = 0;                                 // of keys and times of all events

  bool finished() const { return run_s.has_value(); }
  bool succeeded() const { return finished() && status == "success" && not_compliant.empty(); }
};

// Reads a result file; `file` is how findings name it. What is wrong with it goes to `findings`. What its numbers count
// (samples, steps, epochs, tokens) differs by round, benchmark and submitter: of what models/benchmarks holds for the
// benchmark that meaning is taken which agrees with the throughput that the run logs, else with what any submission
// needed; a finding says where none does.
ImportedRun read_run(const std::string& path, const std::string& file, std::vector<LogFinding>& findings);

// FNV-1a (of numbers a word at a time), to tell equal files and traces from others.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const unsigned char c : text) hash_ = (hash_ ^ c) * 1099511628211ULL;
  }
  void add(int64_t value) {
    hash_ = (hash_ ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
    hash_ ^= hash_ >> 32;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 1469598103934665603ULL;
};

}  // namespace tw
