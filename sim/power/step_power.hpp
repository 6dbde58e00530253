// Power through one training step, by component of a node: what swings at the pace of the steps.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "power/node_power.hpp"
#include "step/step_model.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// GPUs by what they do, then the rest of the node.
constexpr std::array<std::string_view, 7> kStepPowerNames{"gpu_compute", "gpu_memory", "gpu_communication", "gpu_gaps",
                                                          "conversion",  "host",       "network_fans"};

// Watts of a node, constant between two times; the pipeline's stages are averaged, since every stage fills nodes of its
// own. Kernels inside a forward or backward are far shorter than anything outside can see, so each is its mean mix.
struct StepPower {
  std::vector<double> begin_s;               // of each piece
  std::vector<std::array<double, 7>> watts;  // of each piece
  double end_s = 0;                          // of the last
  double total_w(size_t i) const;
  static void describe(Outputs<StepPower>& d);
  double least_w() const;
  double most_w() const;
  double mean_w() const;
};

// `spans` and `outcome` of the same step (simulate_step). `each_alone`: the limiter acts on each direction by itself,
// else on the mean of the step. `mean_s`: the run's mean step; what it is longer, the GPUs wait for the slowest.
StepPower step_power(const NodeType& node, const std::vector<Span>& spans, const StepOutcome& outcome, Power gpu_limit,
                     bool over_fabric, bool each_alone, double mean_s = 0);

}  // namespace tw
