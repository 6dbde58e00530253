// XML as NCCL writes it.
#include "foreign/xml.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::Faults faults;
  const auto root = tw::foreign::parse_xml({"in.xml", std::string(reinterpret_cast<const char*>(data), size)}, faults);
  if (root.has_value() != faults.empty()) __builtin_trap();
  return 0;
}
