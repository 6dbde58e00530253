// Kernels of a training step with the work they do and the bytes they have to move: points under an accelerator's roof.
#pragma once

#include <string>
#include <vector>

#include "step/cost.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// Kernels of one name and direction. FLOPs, bytes and seconds of all of them in one micro-batch on the rank of the mean
// stage; bytes: operands and result of a product, each moved once; queries, keys, values and output of attention.
struct StepKernel {
  std::string name;
  bool backward = false;
  double flops = 0, bytes = 0, time_s = 0;
  static void describe(Outputs<StepKernel>& d);
};

std::vector<StepKernel> step_kernels(const StepInputs& in, const Slowdown& slowdown);

}  // namespace tw
