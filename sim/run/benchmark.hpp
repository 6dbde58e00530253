// The benchmarks of MLPerf Training (models/benchmarks/*.json): how runs are scored, what the numbers of their logs
// count, and what a log holds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "run/convergence.hpp"

namespace tw {

// What a number that tells how far training has come counts.
enum class ProgressUnit { samples, steps, epochs, tokens };

// Lines of a closed-division log: "(" and ")" begin and end an interval, "." is a point; then key and value, and after
// " | " what the metadata hold beside file and line number. A name after $ stands for a figure of the run (mlperf/).
struct BenchmarkLog {
  bool verified = false;
  std::string source;
  std::vector<std::string> init, start;  // until init_stop; at run_start
  std::vector<std::string> block_begin;  // a block: the steps between two evaluations
  std::vector<std::string> epoch_begin, epoch_end;
  std::vector<std::string> block_end, evaluation_begin, evaluation_end;
  std::vector<std::string> stop;  // at run_stop
  static void describe(Description<BenchmarkLog>& d);
};

struct Benchmark {
  std::string name;
  std::vector<std::string> aliases;
  int required_runs = 1;
  int dropped_each_side = 1;
  double target = 0;
  bool lower_is_better = false;
  double epoch_samples = 0;               // 0: no epochs
  double sequence = 0;                    // tokens of a sample
  std::vector<double> plausible_samples;  // least and most to the target
  std::map<std::string, std::vector<ProgressUnit>> progress;
  int least_evaluations = 1;    // that a run logs
  double offline_interval = 0;  // samples; 0: evaluations are part of the run
  std::optional<Convergence> convergence;
  std::optional<BenchmarkLog> log;
  std::string source;
  static void describe(Description<Benchmark>& d);
};

// By name or alias, letters and digits alone ("3D-UNet" is unet3d's alias 3d-unet); null: none of that name. Files are
// read once.
const Benchmark* find_benchmark(const std::string& name);
std::vector<std::string> benchmark_names();

}  // namespace tw
