#include "report/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/units.hpp"

namespace tw::report {
namespace {

std::string grouped(std::string digits) {
  const size_t first = digits.find_first_of("0123456789");
  size_t end = digits.find('.');
  if (end == std::string::npos) end = digits.size();
  for (size_t at = end; at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

struct Prefix {
  double factor;
  const char* name;
};

std::string with_prefix(double value, const char* unit) {
  constexpr std::array<Prefix, 9> prefixes{
      {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}}};
  if (value == 0) return fmt::format("0 {}", unit);
  for (const Prefix& p : prefixes)
    if (std::abs(value) >= p.factor) return fmt::format("{} {}{}", plain(value / p.factor), p.name, unit);
  return fmt::format("{:.3g} {}", value, unit);
}

}  // namespace

std::string plain(double value, int digits) {
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  if (magnitude >= 1e15 || magnitude < 1e-4) return fmt::format("{:.{}g}", value, digits);
  const int before = static_cast<int>(std::floor(std::log10(magnitude))) + 1;  // digits before the point; <= 0 below 1
  return grouped(fmt::format("{:.{}f}", value, std::max(0, digits - before)));
}

std::string count_text(double value) {
  return value == std::round(value) && std::abs(value) < 1e15 ? grouped(fmt::format("{:.0f}", value)) : plain(value);
}

std::string time_text(double value_s) {
  if (std::abs(value_s) < 0.1) return with_prefix(value_s, "s");
  std::string text = plain(value_s) + " s";
  const auto whole = std::llround(value_s);
  if (value_s >= 86400)
    text += fmt::format(" ({} d {} h)", whole / 86400, whole % 86400 / 3600);
  else if (value_s >= 3600)
    text += fmt::format(" ({} h {} min)", whole / 3600, whole % 3600 / 60);
  else if (value_s >= 60)
    text += fmt::format(" ({} min {} s)", whole / 60, whole % 60);
  return text;
}

std::string power_text(double value_w) {
  return std::abs(value_w) < 1e4 ? plain(value_w) + " W" : with_prefix(value_w, "W");
}
std::string energy_text(double value_j) {
  return with_prefix(value_j, "J");
}
std::string bytes_text(double value_bytes) {
  return with_prefix(value_bytes, "B");
}
std::string size_text(double value_bytes) {
  constexpr std::array<Prefix, 4> prefixes{{{1099511627776.0, "TiB"}, {gib, "GiB"}, {1048576, "MiB"}, {1024, "KiB"}}};
  for (const Prefix& p : prefixes)
    if (std::abs(value_bytes) >= p.factor) return fmt::format("{} {}", plain(value_bytes / p.factor), p.name);
  return fmt::format("{} B", plain(value_bytes));
}
std::string percent_text(double value_pct) {
  return std::abs(value_pct) < 0.005 ? "0.00 %" : fmt::format("{:+.2f} %", value_pct);
}

std::string in_unit(double value, const std::string& unit) {
  if (unit == "s") return std::abs(value) < 0.1 ? with_prefix(value, "s") : plain(value) + " s";
  if (unit == "W") return power_text(value);
  if (unit == "J") return energy_text(value);
  if (unit == "B") return bytes_text(value);
  if (unit == "1") return plain(value);
  if (unit == "samples") return count_text(value) + " samples";
  return plain(value) + " " + unit;
}

}  // namespace tw::report
