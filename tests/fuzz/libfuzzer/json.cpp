// The JSON reader of all inputs.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/strict_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::Faults faults;
  const auto tree = tw::parse_strict_json(std::string(reinterpret_cast<const char*>(data), size), "in", faults);
  if (!tree == faults.empty()) __builtin_trap();  // either a tree or a fault that says why there is none
  if (tree) {
    tw::Faults again;
    const auto copy = tw::parse_strict_json(tree->dump(), "copy", again);
    if (!copy || *copy != *tree) __builtin_trap();
  }
  return 0;
}
