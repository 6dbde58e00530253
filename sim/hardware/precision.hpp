// Number formats of matrix products. A new one is a line of the table in precision.cpp and figures in profiles.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "hardware/activity.hpp"

namespace tw {

enum class Precision { fp32, bf16, fp8, mxfp8, nvfp4 };
template <>
struct Choices<Precision> {
  static std::vector<std::pair<std::string, Precision>> table();
};

struct PrecisionType {
  Precision precision;
  const char* name;
  double operand_bytes;  // of one element, scales of blocks included
  // Whose kernels, as a share of the peak, and whose peak stand in where a profile has none of its own.
  Precision kernels_of, peak_of;
  double peak_share;  // of that peak; 0: without a peak of its own the precision is not supported
  bool scaled;        // operands are cast and scaled for each product
  Activity activity;
};

const PrecisionType& type_of(Precision p);

// Operands of one byte and less, cast and scaled: FP8 recipes and narrower.
inline bool is_scaled(Precision p) {
  return type_of(p).scaled;
}

}  // namespace tw
