#include "power/lab_phases.hpp"

#include <algorithm>
#include <cstdlib>

namespace tw {
namespace {

bool starts(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

ActivityTimes with_rest(Activity a, double share, Activity rest) {
  ActivityTimes t;
  t[rest] = 1 - std::min(1.0, share);
  t[a] += std::min(1.0, share);
  return t;
}

// Small products launched one by one: the kernel runs for its time in a CUDA graph less the graph's floor (gemm.csv,
// memory_ops.csv), on the share of the 132 multiprocessors that its 128 x 64 tiles fill.
double small_gemm_share(double products_per_s, double kernel_s, double edge) {
  const double tiles = edge / 128 * edge / 64;
  return products_per_s * kernel_s * std::min(1.0, tiles / 132);
}

}  // namespace

std::optional<LabPhase> lab_phase(const std::string& phase, double iterations_per_s) {
  using A = Activity;
  const auto only = [](A a) { return LabPhase{ActivityTimes::only(a), 1}; };
  if (phase == "idle_no_context") return only(A::idle);
  if (starts(phase, "idle_with_context")) return only(A::context);
  if (phase == "gemm_bf16_8192_zeros") return LabPhase{ActivityTimes::only(A::gemm_bf16), 0};
  if (starts(phase, "gemm_bf16_duty_"))  // between bursts the program sleeps
    return LabPhase{with_rest(A::gemm_bf16, std::strtod(phase.c_str() + 15, nullptr), A::context), 1};
  if (phase == "gemm_bf16_1024")
    return LabPhase{
        with_rest(A::gemm_bf16, small_gemm_share(200 * iterations_per_s, 5.866e-6 - 1.17e-6, 1024), A::launch_bound),
        1};
  if (phase == "small_gemm_eager")  // 512^3: half the inner dimension of the 512 x 1024 x 1024 row
    return LabPhase{with_rest(A::gemm_bf16, small_gemm_share(200 * iterations_per_s, 0.5 * (4.579e-6 - 1.17e-6), 512),
                              A::launch_bound),
                    1};
  if (starts(phase, "gemm_bf16_")) return only(A::gemm_bf16);
  if (starts(phase, "gemm_fp8_")) return only(A::gemm_fp8);
  if (starts(phase, "attention_fwd_")) return only(A::attention_forward);
  if (phase == "hbm_copy") return only(A::copy);
  if (phase == "all_reduce_512MiB") return only(A::collective);
  if (phase == "all_reduce_4MiB")  // 40.3 us a call back to back (collectives.csv) less the launch floor of 8.2 us
    return LabPhase{with_rest(A::collective, 100 * iterations_per_s * (40.289e-6 - 8.2e-6), A::spin), 1};
  if (starts(phase, "tiny_")) return only(A::launch_bound);
  if (starts(phase, "spin_in_")) return only(A::spin);
  return std::nullopt;
}

}  // namespace tw
