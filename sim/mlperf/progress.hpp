// What the numbers of a result log count: samples, steps, epochs or tokens.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mlperf/mllog.hpp"
#include "run/benchmark.hpp"

namespace tw {

struct ImportedRun;

// How far training had come, as an event tells it.
struct Mark {
  enum Key { samples_count, epoch_num, step_num, none };
  Key key = none;
  double value = 0;
  bool known() const { return key != none; }
  bool operator==(const Mark&) const = default;
};
Mark mark_of(const MllogEvent& event);

class Progress {
 public:
  Progress() = default;
  // `most`: the greatest value of each key in the run; `expected`: samples that the logged throughput gives.
  Progress(const ImportedRun& run, const Benchmark* benchmark, const std::array<double, 3>& most,
           std::optional<double> expected);

  std::optional<double> samples(const Mark& mark) const;
  std::string source(const Mark& mark) const;  // "epoch_num, in tokens"
  std::optional<double> epoch_samples() const { return epoch_; }
  // Why the samples to the target may be wrong: what else the log says.
  std::vector<std::string> doubts(double samples) const;

 private:
  std::optional<double> scale(ProgressUnit unit) const;
  void find_epoch(const ImportedRun& run);

  const Benchmark* benchmark_ = nullptr;
  std::optional<double> batch_, sequence_, epoch_, expected_;
  std::array<double, 3> most_{};
  std::array<ProgressUnit, 3> unit_{ProgressUnit::samples, ProgressUnit::epochs, ProgressUnit::steps};
  std::string odd_epoch_;
};

}  // namespace tw
