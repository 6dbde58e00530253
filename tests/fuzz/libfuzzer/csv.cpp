// Tables of measured data, and what other tools call CSV.
#include "core/csv.hpp"

#include <cstdint>

#include "core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tw::CsvTable table = tw::CsvTable::parse(std::string(reinterpret_cast<const char*>(data), size), "in");
    for (size_t row = 0; row < table.rows(); ++row)
      for (const std::string& column : table.columns()) try {
          (void)table.number(row, column);
        } catch (const tw::InputError&) {  // no number
        }
  } catch (const tw::InputError&) {  // ragged
  }
  return 0;
}
