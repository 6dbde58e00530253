// The benchmarks of MLPerf Training that logs and scores name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw {

enum class Benchmark { llama2_70b_lora, bert, gpt3, stable_diffusion, resnet, ssd, unet3d, dlrm_dcnv2, gnn };
template <>
struct Choices<Benchmark> {
  static std::vector<std::pair<std::string, Benchmark>> table();
};

}  // namespace tw
