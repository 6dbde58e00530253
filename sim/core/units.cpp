#include "core/units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/currency.hpp"
#include "core/text.hpp"

namespace tw {
namespace {

struct Atom {
  double factor = 1;
  Exponents exponents{};
};

// A unit with the prefixes that the inputs know of it; a blank: without one.
struct Unit {
  std::string_view prefixes, name;
  double factor;
  Exponents exponents;
};

constexpr Exponents kTime{1, 0, 0, 0, 0, 0, 0, 0}, kEnergy{0, 1, 0, 0, 0, 0, 0, 0}, kData{0, 0, 1, 0, 0, 0, 0, 0},
    kWork{0, 0, 0, 1, 0, 0, 0, 0}, kCurrent{0, 0, 0, 0, 1, 0, 0, 0}, kTemperature{0, 0, 0, 0, 0, 1, 0, 0},
    kCarbon{0, 0, 0, 0, 0, 0, 1, 0}, kMoney{0, 0, 0, 0, 0, 0, 0, 1}, kPower{-1, 1, 0, 0, 0, 0, 0, 0},
    kFrequency{-1, 0, 0, 0, 0, 0, 0, 0}, kVoltage{-1, 1, 0, 0, -1, 0, 0, 0};

constexpr double kKi = 1024.0;
// Every unit the inputs know. A new one is one line here.
constexpr Unit kUnits[] = {{" mun", "s", 1, kTime},
                           {" ", "min", 60, kTime},
                           {" ", "h", 3600, kTime},
                           {" ", "d", 86400, kTime},
                           {" kMG", "J", 1, kEnergy},
                           {" kMG", "Wh", 3600, kEnergy},
                           {" kMGTP", "B", 1, kData},
                           {" ", "KiB", kKi, kData},
                           {" ", "MiB", kKi* kKi, kData},
                           {" ", "GiB", kKi* kKi* kKi, kData},
                           {" ", "TiB", kKi* kKi* kKi* kKi, kData},
                           {" kMGT", "bit", 0.125, kData},
                           {" GTPE", "FLOP", 1, kWork},
                           {" k", "A", 1, kCurrent},
                           {" ", "degC", 1, kTemperature},
                           {" k", "g", 1e-3, kCarbon},
                           {" ", "t", 1e3, kCarbon},
                           {" mkMG", "W", 1, kPower},
                           {" kMG", "Hz", 1, kFrequency},
                           {" mk", "V", 1, kVoltage}};
constexpr std::pair<char, double> kPrefixes[] = {{' ', 1},   {'n', 1e-9}, {'u', 1e-6}, {'m', 1e-3}, {'k', 1e3},
                                                 {'M', 1e6}, {'G', 1e9},  {'T', 1e12}, {'P', 1e15}, {'E', 1e18}};

// ISO 4217, active codes of countries.
constexpr std::string_view kCurrencies =
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF "
    "CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD "
    "HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD "
    "MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN "
    "PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY "
    "TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL";

std::optional<Atom> find_atom(std::string_view name) {
  for (const Unit& unit : kUnits)
    for (const auto& [prefix, factor] : kPrefixes) {
      if (unit.prefixes.find(prefix) == std::string_view::npos) continue;
      const std::string_view rest = prefix == ' ' ? name : name.substr(name.empty() || name.front() != prefix ? 0 : 1);
      if (rest == unit.name && (prefix == ' ' || rest.size() < name.size()))
        return Atom{factor * unit.factor, unit.exponents};
    }
  return is_currency(name) ? std::optional(Atom{1, kMoney}) : std::nullopt;
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// "GB/s" -> factor and exponents. At most one '/', as in every unit people write here.
std::optional<Atom> parse_unit(std::string_view text) {
  const auto slash = text.find('/');
  auto unit = find_atom(trim(text.substr(0, slash)));
  if (!unit) return std::nullopt;
  if (slash != std::string_view::npos) {
    const auto bottom = find_atom(trim(text.substr(slash + 1)));
    if (!bottom) return std::nullopt;
    unit->factor /= bottom->factor;
    for (size_t i = 0; i < unit->exponents.size(); ++i) unit->exponents[i] -= bottom->exponents[i];
  }
  return unit;
}

std::string expected(const DimensionInfo& wanted) {
  return fmt::format("{} such as \"{}\" is due", with_article(wanted.name), wanted.example);
}

// Units tried for output, largest first, per dimension.
std::vector<std::string_view> output_units(const DimensionInfo& d) {
  if (d.name == "time") return {"s", "ms", "us", "ns"};
  if (d.name == "energy") return {"GJ", "MJ", "kJ", "J"};
  if (d.name == "data size") return {"TB", "GB", "MB", "kB", "B"};
  if (d.name == "floating-point work") return {"PFLOP", "TFLOP", "GFLOP", "FLOP"};
  if (d.name == "power") return {"MW", "kW", "W"};
  if (d.name == "bandwidth") return {"TB/s", "GB/s", "MB/s", "kB/s", "B/s"};
  if (d.name == "computing rate") return {"PFLOP/s", "TFLOP/s", "GFLOP/s"};
  if (d.name == "carbon intensity") return {"kg/kWh"};
  if (d.name == "energy price") return {"USD/kWh"};
  if (d.name == "frequency") return {"GHz", "MHz", "Hz"};
  return {d.si};
}

// What no machine, site or run comes near, in SI: beyond it arithmetic gives nonsense instead of answers. 0 is allowed
// everywhere, and what is below `least` only then.
struct Bounds {
  std::string_view dimension;
  double least, most;
};
constexpr Bounds kBounds[] = {{"time", 1e-15, 1e11},      // a femtosecond to 3,000 years
                              {"energy", 1e-15, 1e21},    // twice what mankind uses in a year
                              {"data size", 1e-3, 1e21},  // a zettabyte
                              {"floating-point work", 1e-3, 1e30},
                              {"current", 1e-9, 1e9},
                              {"temperature", 0, 1e4},
                              {"carbon", 1e-9, 1e15},
                              {"money", 1e-9, 1e15},
                              {"power", 1e-9, 1e13},  // what mankind uses is 2e13 W
                              {"bandwidth", 1e-3, 1e18},
                              {"computing rate", 1, 1e24},
                              {"carbon intensity", 0, 1e-3},  // 3,600 kg/kWh
                              {"energy price", 0, 1e-2},      // 36,000 USD/kWh
                              {"frequency", 1e-9, 1e15},
                              {"voltage", 1e-6, 1e7}};

}  // namespace

ParsedQuantity parse_quantity(std::string_view text, const DimensionInfo& wanted) {
  const std::string_view body = trim(text);
  double number = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (error != std::errc() || !std::isfinite(number))
    return {0, fmt::format("\"{}\" does not start with a finite number; {}", text, expected(wanted))};
  const std::string_view unit_text = trim(body.substr(static_cast<size_t>(end - body.data())));
  if (unit_text.empty()) return {0, fmt::format("\"{}\" has no unit; {}", text, expected(wanted))};
  const auto unit = parse_unit(unit_text);
  if (!unit) return {0, fmt::format("unknown unit \"{}\"; {}", unit_text, expected(wanted))};
  if (unit->exponents != wanted.exponents)
    return {0, fmt::format("\"{}\" has the wrong dimension; {}", text, expected(wanted))};
  const double value = number * unit->factor;
  for (const Bounds& b : kBounds)
    if (b.dimension == wanted.name && (!(std::abs(value) <= b.most) || (value != 0 && std::abs(value) < b.least)))
      return {std::isfinite(value) ? value : 0, fmt::format("\"{}\" is beyond what there is; allowed: {:g} to {:g} {}",
                                                            text, b.least, b.most, wanted.si)};
  return {value, ""};
}

std::string format_quantity(double value, const DimensionInfo& dimension) {
  if (value == 0) return fmt::format("0 {}", dimension.si);
  std::string_view last = dimension.si;
  double factor = 1;
  for (const std::string_view name : output_units(dimension)) {
    const auto unit = parse_unit(name);
    last = name;
    factor = unit->factor;
    if (std::abs(value) >= factor) break;
  }
  // The shortest text that reads back to the same value: try few digits first.
  for (int digits = 3; digits < 17; ++digits) {
    const std::string text = fmt::format("{:.{}g} {}", value / factor, digits, last);
    if (parse_quantity(text, dimension).value == value) return text;
  }
  return fmt::format("{} {}", value, dimension.si);  // the prefix costs a last bit
}

bool is_currency(std::string_view code) {
  return code.size() == 3 && code.find(' ') == std::string_view::npos &&
         kCurrencies.find(code) != std::string_view::npos;
}

}  // namespace tw
