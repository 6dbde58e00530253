// The rules of the compliance checker that all rounds share (mlcommons/logging: common.yaml, and the target of each
// closed_BENCHMARK.yaml). A run that breaks one is dropped by the summarizer, whatever its status.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "mlperf/mllog.hpp"
#include "run/benchmark.hpp"

namespace tw {

class Compliance {
 public:
  void take(const MllogEvent& event);
  // Which rule is broken; empty: none. `benchmark` null: unknown, its target is not asked for.
  std::string broken_rule(const std::string& division, const Benchmark* benchmark) const;
  std::optional<double> last_accuracy() const { return last_; }

 private:
  struct Required {
    std::string_view key;
    bool once;  // exactly, else at least
  };
  static constexpr std::array<Required, 11> kRequired{{{"submission_org", true},
                                                       {"submission_platform", true},
                                                       {"submission_division", true},
                                                       {"init_stop", true},
                                                       {"run_start", true},
                                                       {"run_stop", true},
                                                       {"train_samples", true},
                                                       {"eval_samples", true},
                                                       {"cache_clear", false},
                                                       {"init_start", false},
                                                       {"eval_accuracy", false}}};

  std::array<size_t, kRequired.size()> seen_{};
  std::optional<std::string> metric_;  // the first that is logged: the one that the target is about
  std::optional<double> last_, least_, most_;
  int evaluations_ = 0;
};

}  // namespace tw
