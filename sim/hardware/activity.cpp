#include "hardware/activity.hpp"

#include "core/codec.hpp"

namespace tw {

std::vector<std::pair<std::string, Activity>> Choices<Activity>::table() {
  return {{"idle", Activity::idle},
          {"context", Activity::context},
          {"spin", Activity::spin},
          {"launch_bound", Activity::launch_bound},
          {"gemm_bf16", Activity::gemm_bf16},
          {"gemm_fp8", Activity::gemm_fp8},
          {"attention_forward", Activity::attention_forward},
          {"attention_backward", Activity::attention_backward},
          {"memory_bound", Activity::memory_bound},
          {"copy", Activity::copy},
          {"collective", Activity::collective},
          {"convolution", Activity::convolution}};
}

}  // namespace tw
