#include "run/benchmark.hpp"

#include "core/codec.hpp"

namespace tw {

std::vector<std::pair<std::string, Benchmark>> Choices<Benchmark>::table() {
  return {{"llama2_70b_lora", Benchmark::llama2_70b_lora},
          {"bert", Benchmark::bert},
          {"gpt3", Benchmark::gpt3},
          {"stable_diffusion", Benchmark::stable_diffusion},
          {"resnet", Benchmark::resnet},
          {"ssd", Benchmark::ssd},
          {"unet3d", Benchmark::unet3d},
          {"dlrm_dcnv2", Benchmark::dlrm_dcnv2},
          {"gnn", Benchmark::gnn}};
}

}  // namespace tw
