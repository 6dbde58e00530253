// What a closed-division run of each MLPerf Training benchmark logs, in which order, and with which metadata.
#pragma once

#include <string>
#include <vector>

#include "run/benchmark.hpp"

namespace tw::mlperf {

// One line of a log. Value and metadata are JSON text in which a name after $ stands for a figure of the run:
//   org platform seed gbs mbs lbs (local batch) ga sequence lora_rank nodes steps eval_samples epoch_steps
//   samples, tokens, epoch (a fraction), epoch_number: how far the run has come
//   first, count, first_tokens, count_tokens, first_epoch, epochs: of the block; epochs_done: before epoch_number
//   throughput: samples/s of the block's timed steps; run_throughput: of all
//   accuracy, status
struct LogLine {
  std::string event;  // POINT_IN_TIME, INTERVAL_START, INTERVAL_END
  std::string key, value, metadata;
};

struct BenchmarkLog {
  Benchmark benchmark = Benchmark::llama2_70b_lora;
  bool verified = false;  // keys, order and metadata are tested against real logs in reference/mlperf_logs
  std::string source;     // where the order comes from
  double target = 0;      // of eval_accuracy
  bool lower_is_better = false;
  double epoch_samples = 0;          // samples of an epoch; 0: no epochs are logged
  bool evaluated_offline = false;    // evaluations come after the run and outside its time
  std::vector<LogLine> init;         // until init_stop
  std::vector<LogLine> start;        // at run_start
  std::vector<LogLine> block_begin;  // a block: the steps between two evaluations
  std::vector<LogLine> epoch_begin, epoch_end;
  std::vector<LogLine> block_end;
  std::vector<LogLine> evaluation_begin, evaluation_end;
  std::vector<LogLine> stop;  // at run_stop
};

const BenchmarkLog& benchmark_log(Benchmark benchmark);

}  // namespace tw::mlperf
