#include "hardware/precision.hpp"

#include <array>

namespace tw {
namespace {

using P = Precision;
// MXFP8: an 8-bit scale for 32 elements; NVFP4: an FP8 scale for 16 elements. A product in MXFP8 runs at the rate of
// FP8.
constexpr std::array<PrecisionType, 5> kTypes{{
    {P::fp32, "fp32", 4, P::bf16, P::bf16, 0.5, false, Activity::gemm_bf16},
    {P::bf16, "bf16", 2, P::bf16, P::bf16, 1, false, Activity::gemm_bf16},
    {P::fp8, "fp8", 1, P::bf16, P::bf16, 0, true, Activity::gemm_fp8},
    {P::mxfp8, "mxfp8", 1 + 1.0 / 32, P::fp8, P::fp8, 0, true, Activity::gemm_fp8},
    {P::nvfp4, "nvfp4", 0.5 + 1.0 / 16, P::fp8, P::fp8, 0, true, Activity::gemm_fp8},
}};

}  // namespace

const PrecisionType& type_of(Precision p) {
  return kTypes[static_cast<size_t>(p)];
}

std::vector<std::pair<std::string, Precision>> Choices<Precision>::table() {
  std::vector<std::pair<std::string, Precision>> table;
  for (const PrecisionType& t : kTypes) table.emplace_back(t.name, t.precision);
  return table;
}

}  // namespace tw
