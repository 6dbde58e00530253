// Number formats of matrix products. Those of the field stand in precision.cpp; any other is data of an accelerator,
// with its peak, kernels and watts (Accelerator::precisions).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/describe.hpp"
#include "hardware/activity.hpp"

namespace tw {

struct Precision {
  std::array<char, 16> letters{};  // its name, by which precisions are told apart; the last is 0
  double operand_bytes = 0;        // of one element, scales of blocks included
  // Whose kernels, as a share of the peak, and of whose peak `peak_share` stand in where a profile has none of its own;
  // null: nobody's.
  const Precision* like = nullptr;
  double peak_share = 0;       // 0: without a peak of its own the precision is not supported
  bool scaled = false;         // operands of one byte and less, cast and scaled for each product
  bool seeks_largest = false;  // a scale is the whole tensor's, whose largest element is sought in a kernel of its own
  Activity activity = Activity::gemm_bf16;

  static const Precision fp32, bf16, fp8, mxfp8, nvfp4;

  std::string name() const { return letters.data(); }
  bool operator==(const Precision& other) const { return letters == other.letters; }
  bool operator<(const Precision& other) const { return letters < other.letters; }
};

// Letters of a name; the rest of one that is too long is cut off.
constexpr std::array<char, 16> precision_letters(std::string_view name) {
  std::array<char, 16> letters{};
  for (size_t i = 0; i < name.size() && i + 1 < letters.size(); ++i) letters[i] = name[i];
  return letters;
}

// MXFP8: an 8-bit scale for 32 elements; NVFP4: an FP8 scale for 16 elements, and the tensor's (Transformer Engine). A
// product in MXFP8 runs at the rate of FP8.
inline constexpr Precision Precision::fp32{precision_letters("fp32"), 4, &Precision::bf16, 0.5, false, false,
                                           Activity::gemm_bf16};
inline constexpr Precision Precision::bf16{precision_letters("bf16"), 2, nullptr, 0, false, false, Activity::gemm_bf16};
inline constexpr Precision Precision::fp8{precision_letters("fp8"), 1, &Precision::bf16, 0, true, false,
                                          Activity::gemm_fp8};
inline constexpr Precision Precision::mxfp8{precision_letters("mxfp8"), 1 + 1.0 / 32, &Precision::fp8, 0, true, false,
                                            Activity::gemm_fp8};
inline constexpr Precision Precision::nvfp4{precision_letters("nvfp4"), 0.5 + 1.0 / 16, &Precision::fp8, 0, true, true,
                                            Activity::gemm_fp8};

// Names of the field's, and the one of that name; null: none is called so.
std::vector<std::string> field_precisions();
const Precision* field_precision(std::string_view name);

// Named in inputs. What is none of the field's is a name and nothing else until the accelerator is known
// (Accelerator::precision).
template <>
struct Codec<Precision> {
  static TypeInfo type();
  static void read(Precision& out, const nlohmann::json& j, const ReadContext& c);
  static std::string default_text(const Precision& v);
};

// A precision that an accelerator knows beside the field's.
struct PrecisionFormat {
  Precision like = Precision::fp8;
  double operand_bytes = 1, peak_share = 0;
  bool scaled = true, seeks_largest = false;
  static void describe(Description<PrecisionFormat>& d);
};

}  // namespace tw
