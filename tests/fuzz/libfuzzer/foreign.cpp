// Every file of another tool: yml and json of ASTRA-sim, topology.conf, cables, power series, nccl-tests.
#include "foreign/foreign.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"in.yml", "in.csv", "in.conf", "in.json", "in.txt"}) {
    tw::Faults faults;
    try {
      const tw::foreign::Reading reading = tw::foreign::read_any({name, text}, {}, faults);
      if (reading.text.empty() && faults.empty()) __builtin_trap();
    } catch (const tw::InputError&) {
    }
  }
  return 0;
}
