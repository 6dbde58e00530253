// Numbers for people: unit, prefix and about four significant digits.
#pragma once

#include <optional>
#include <string>

namespace tw::report {

std::string plain(double value, int digits = 4);             // "0.6497", "12.31", "100,900"
std::string count_text(double value);                        // "3,072"
std::string time_text(double value_s);                       // "0.6497 s", "318.3 s (5 min 18 s)"
std::string power_text(double value_w);                      // "5,713 W", "59.57 kW" from 10 kW on
std::string energy_text(double value_j);                     // "20.38 MJ"
std::string bytes_text(double value_bytes);                  // "61.2 GB": traffic, files
std::string size_text(double value_bytes);                   // "57.0 GiB": memory and message sizes, powers of 1,024
std::string percent_text(double value_pct);                  // "+0.3 %"
std::string in_unit(double value, const std::string& unit);  // any unit of the result contract: s, W, J, B, kg ...

// The text of a value, or "-" for one that does not apply.
template <class Format>
std::string or_dash(const std::optional<double>& value, const Format& format) {
  return value ? format(*value) : "-";
}

}  // namespace tw::report
