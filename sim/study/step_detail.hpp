// What figures of one training step show beside its power: memory, kernels, and the load of the links.
#pragma once

#include <string>
#include <vector>

#include "step/step_kernels.hpp"
#include "step/step_memory.hpp"

namespace tw {

struct RunModel;
struct Scenario;
class Fabric;
namespace network {
class MeteredEngine;
}

// Links of one class that a step loads with hand-overs and exchanges of data-parallel ranks. NVLink: what tensor,
// context and expert parallel ranks of one domain exchange, each accelerator's share.
struct TierLoad {
  std::string tier;                                        // Fabric::link_class
  int links = 0;                                           // loaded, one direction each
  double capacity_Bps = 0, busiest_Bps = 0, mean_Bps = 0;  // over the step
  static void describe(Outputs<TierLoad>& d);
};

struct StepDetail {
  StepMemory memory;  // of the stage that needs most; without moments for a profiled workload
  std::vector<StepKernel> kernels;
  std::vector<TierLoad> tiers;
  static void describe(Outputs<StepDetail>& d);
};

// `stage`: the one whose memory is shown. `meter` has counted since the model's steps began.
StepDetail step_detail(const Scenario& s, const RunModel& model, const Fabric& fabric,
                       const network::MeteredEngine& meter, int stage);

}  // namespace tw
