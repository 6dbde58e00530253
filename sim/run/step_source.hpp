// How long each step of a run takes beyond the quiet one.
#pragma once

#include <vector>

#include "run/run_model.hpp"

namespace tw {

// Draws by the number of the executed step, so that a run does not depend on what others draw. `model` and `engine`
// must outlive it.
class StepSource {
 public:
  StepSource(const RunModel& model, network::Engine& engine, const SeriesRun& series);
  // Jitter of executed step `index` (0, 1, 2, ... in turn), in seconds.
  double jitter_s(uint64_t index);

 private:
  bool silent() const;
  double pipelined(uint64_t index);
  double replay(uint64_t index) const;

  const RunModel& model_;
  network::Engine& engine_;
  SeriesRun series_;
  NoisePools own_;
  uint64_t exact_steps_ = 0;         // replayed meeting by meeting
  std::vector<double> replayed_;     // the first of them, which later steps draw from
  std::vector<MemberNoise> noises_;  // of the intervals of a step, each with a meeting at its end
};

// Simulates the pipeline steps that runs with these pool seeds draw from. Nothing to do for single stages.
void fill_pools(const RunModel& model, network::Engine& engine, const std::vector<uint64_t>& seeds, NoisePools& pools);

}  // namespace tw
