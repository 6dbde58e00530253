// Quantities with units.
#include <cmath>
#include <cstdint>

#include "core/units.hpp"

namespace {
template <class Q>
void read(std::string_view text) {
  const tw::DimensionInfo& info = tw::DimensionOf<Q>::info;
  const tw::ParsedQuantity parsed = tw::parse_quantity(text, info);
  if (!parsed.problem.empty()) return;
  if (!std::isfinite(parsed.value)) __builtin_trap();
  const tw::ParsedQuantity again = tw::parse_quantity(tw::format_quantity(parsed.value, info), info);
  if (!again.problem.empty() || again.value != parsed.value) __builtin_trap();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read<tw::Time>(text);
  read<tw::Bytes>(text);
  read<tw::Bandwidth>(text);
  read<tw::Power>(text);
  read<tw::CarbonIntensity>(text);
  read<tw::Voltage>(text);
  return 0;
}
