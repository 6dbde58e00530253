// Physical quantities as types: Boost.Units over a system of our own, because training needs dimensions that SI lacks
// (data, floating-point work, carbon, money). Energy is a base unit in place of mass and length, which never occur
// here. A quantity keeps SI (or natural) units inside; text with prefixes is converted at the edge by parse_quantity().
#pragma once

#include <array>
#include <boost/units/base_dimension.hpp>
#include <boost/units/base_unit.hpp>
#include <boost/units/derived_dimension.hpp>
#include <boost/units/make_system.hpp>
#include <boost/units/quantity.hpp>
#include <boost/units/unit.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tw {

namespace dimension {
namespace bu = boost::units;

struct Time : bu::base_dimension<Time, 101> {};
struct Energy : bu::base_dimension<Energy, 102> {};
struct Data : bu::base_dimension<Data, 103> {};
struct Work : bu::base_dimension<Work, 104> {};
struct Current : bu::base_dimension<Current, 105> {};
struct Temperature : bu::base_dimension<Temperature, 106> {};
struct Carbon : bu::base_dimension<Carbon, 107> {};
struct Money : bu::base_dimension<Money, 108> {};

struct Second : bu::base_unit<Second, Time::dimension_type, 101> {};
struct Joule : bu::base_unit<Joule, Energy::dimension_type, 102> {};
struct Byte : bu::base_unit<Byte, Data::dimension_type, 103> {};
struct Flop : bu::base_unit<Flop, Work::dimension_type, 104> {};
struct Ampere : bu::base_unit<Ampere, Current::dimension_type, 105> {};
struct Celsius : bu::base_unit<Celsius, Temperature::dimension_type, 106> {};
struct KilogramCo2e : bu::base_unit<KilogramCo2e, Carbon::dimension_type, 107> {};
struct Dollar : bu::base_unit<Dollar, Money::dimension_type, 108> {};

using System = bu::make_system<Second, Joule, Byte, Flop, Ampere, Celsius, KilogramCo2e, Dollar>::type;
template <class D>
using Quantity = bu::quantity<bu::unit<D, System>, double>;
template <class Top, class Bottom>
using Ratio = Quantity<typename bu::derived_dimension<Top, 1, Bottom, -1>::type>;
}  // namespace dimension

using Time = dimension::Quantity<dimension::Time::dimension_type>;                                  // s
using Energy = dimension::Quantity<dimension::Energy::dimension_type>;                              // J
using Bytes = dimension::Quantity<dimension::Data::dimension_type>;                                 // B
using Flops = dimension::Quantity<dimension::Work::dimension_type>;                                 // FLOP
using Current = dimension::Quantity<dimension::Current::dimension_type>;                            // A
using Temperature = dimension::Quantity<dimension::Temperature::dimension_type>;                    // degC
using CarbonMass = dimension::Quantity<dimension::Carbon::dimension_type>;                          // kg CO2e
using Money = dimension::Quantity<dimension::Money::dimension_type>;                                // USD
using Power = dimension::Ratio<dimension::Energy, dimension::Time>;                                 // W
using Bandwidth = dimension::Ratio<dimension::Data, dimension::Time>;                               // B/s
using FlopRate = dimension::Ratio<dimension::Work, dimension::Time>;                                // FLOP/s
using CarbonIntensity = dimension::Ratio<dimension::Carbon, dimension::Energy>;                     // kg/J
using EnergyPrice = dimension::Ratio<dimension::Money, dimension::Energy>;                          // USD/J
using Frequency = dimension::Quantity<boost::units::derived_dimension<dimension::Time, -1>::type>;  // 1/s
using Voltage = dimension::Quantity<
    boost::units::derived_dimension<dimension::Energy, 1, dimension::Time, -1, dimension::Current, -1>::type>;  // V

constexpr Time seconds(double v) {
  return Time::from_value(v);
}
constexpr Energy joules(double v) {
  return Energy::from_value(v);
}
constexpr Bytes bytes(double v) {
  return Bytes::from_value(v);
}
constexpr Flops flops(double v) {
  return Flops::from_value(v);
}
constexpr Power watts(double v) {
  return Power::from_value(v);
}
constexpr Bandwidth bytes_per_second(double v) {
  return Bandwidth::from_value(v);
}
constexpr FlopRate flops_per_second(double v) {
  return FlopRate::from_value(v);
}
constexpr Voltage volts(double v) {
  return Voltage::from_value(v);
}
constexpr double joules_per_kwh = 3.6e6;
constexpr double gib = 1073741824.0;

// Exponents of (time, energy, data, work, current, temperature, carbon, money).
using Exponents = std::array<int, 8>;

struct DimensionInfo {
  std::string_view name;     // "bandwidth"
  std::string_view example;  // "50 GB/s", shown whenever a unit is missing or wrong
  std::string_view si;       // unit of the value in results
  Exponents exponents;
};

template <class Q>
struct DimensionOf;  // specialised for each quantity that inputs may hold

#define TW_DIMENSION(type, ...)                       \
  template <>                                         \
  struct DimensionOf<type> {                          \
    static constexpr DimensionInfo info{__VA_ARGS__}; \
  }
TW_DIMENSION(Time, "time", "1.2 us", "s", {1, 0, 0, 0, 0, 0, 0, 0});
TW_DIMENSION(Energy, "energy", "3.6 MJ", "J", {0, 1, 0, 0, 0, 0, 0, 0});
TW_DIMENSION(Bytes, "data size", "81559 MiB", "B", {0, 0, 1, 0, 0, 0, 0, 0});
TW_DIMENSION(Flops, "floating-point work", "2 TFLOP", "FLOP", {0, 0, 0, 1, 0, 0, 0, 0});
TW_DIMENSION(Current, "current", "100 A", "A", {0, 0, 0, 0, 1, 0, 0, 0});
TW_DIMENSION(Temperature, "temperature", "35 degC", "degC", {0, 0, 0, 0, 0, 1, 0, 0});
TW_DIMENSION(CarbonMass, "carbon", "5.8 kg", "kg", {0, 0, 0, 0, 0, 0, 1, 0});
TW_DIMENSION(Money, "money", "12 USD", "USD", {0, 0, 0, 0, 0, 0, 0, 1});
TW_DIMENSION(Power, "power", "1610 W", "W", {-1, 1, 0, 0, 0, 0, 0, 0});
TW_DIMENSION(Bandwidth, "bandwidth", "400 Gbit/s", "B/s", {-1, 0, 1, 0, 0, 0, 0, 0});
TW_DIMENSION(FlopRate, "computing rate", "989 TFLOP/s", "FLOP/s", {-1, 0, 0, 1, 0, 0, 0, 0});
TW_DIMENSION(CarbonIntensity, "carbon intensity", "0.405 kg/kWh", "kg/J", {0, -1, 0, 0, 0, 0, 1, 0});
TW_DIMENSION(EnergyPrice, "energy price", "0.12 USD/kWh", "USD/J", {0, -1, 0, 0, 0, 0, 0, 1});
TW_DIMENSION(Frequency, "frequency", "1980 MHz", "Hz", {-1, 0, 0, 0, 0, 0, 0, 0});
TW_DIMENSION(Voltage, "voltage", "54 V", "V", {-1, 1, 0, 0, -1, 0, 0, 0});
#undef TW_DIMENSION

struct ParsedQuantity {
  double value = 0;     // in SI
  std::string problem;  // empty when the text is a quantity of the wanted dimension
};

// Reads "NUMBER UNIT", e.g. "400 Gbit/s" or "0.405 kg/kWh". GB is 1e9 bytes, GiB 2^30, Gbit 1e9 bits. Never throws.
ParsedQuantity parse_quantity(std::string_view text, const DimensionInfo& wanted);

// Shortest readable text of an SI value, e.g. 50e9 B/s -> "50 GB/s"; reads back to the same value.
std::string format_quantity(double value, const DimensionInfo& dimension);

template <class Q>
std::string to_text(const Q& q) {
  return format_quantity(q.value(), DimensionOf<Q>::info);
}

}  // namespace tw
