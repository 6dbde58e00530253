// A pass of a micro-batch through a chunk, as memory sees it (memory.cpp puts it together).
#pragma once

#include <vector>

#include "workload/tape.hpp"

namespace tw {

using HeldBytes = std::array<double, kHeld>;

// A layer, or the head: one pass each way, and what a sharded step gathers and reduces for it.
struct MemoryUnit {
  HeldStretch forward, backward, weight;     // weight: of a backward pass that is split
  double whole = 0, reduced = 0, shard = 0;  // weights as gathered, gradients as reduced, what is left of them
  double flops = 0;                          // its share of a pass's time
};

// Layer by layer.
struct HeldPass {
  HeldStretch all;
  struct Moment {
    double flops = 0;  // done by then
    HeldBytes held{};
  };
  std::vector<Moment> moments;
  double flops = 0;

  void add(Held what, double bytes) { all.add(what, bytes); }
  void then(const HeldStretch& one, double work);
  // `before`: what the unit before gathered; `keeps`: its whole weights stay.
  void forward(const MemoryUnit& unit, double& before, bool keeps);
  // `before`: what the unit before reduces; `kept`: weights are there since forward.
  void backward(const MemoryUnit& unit, const MemoryUnit* next, double& before, bool kept);
};

}  // namespace tw
