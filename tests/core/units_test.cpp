#include "core/units.hpp"

#include <catch2/catch.hpp>
#include <clocale>
#include <cmath>

namespace tw {
namespace {

template <class Q>
ParsedQuantity parse(const char* text) {
  return parse_quantity(text, DimensionOf<Q>::info);
}

}  // namespace

TEST_CASE("decimal, binary and bit prefixes are told apart") {
  CHECK(parse<Bytes>("1 GB").value == 1e9);
  CHECK(parse<Bytes>("1 GiB").value == 1073741824.0);
  CHECK(parse<Bytes>("1 Gbit").value == 1.25e8);
  CHECK(parse<Bytes>("81559 MiB").value == 81559.0 * 1048576);
  CHECK(parse<Bandwidth>("400 Gbit/s").value == 50e9);
  CHECK(parse<Bandwidth>("50 GB/s").value == 50e9);
  CHECK(parse<Bandwidth>("50 GiB/s").value == 50 * gib);
}

TEST_CASE("compound units come out in SI") {
  CHECK(parse<CarbonIntensity>("0.405 kg/kWh").value == Approx(0.405 / 3.6e6).epsilon(1e-15));
  CHECK(parse<Time>("1.2 us").value == Approx(1.2e-6).epsilon(1e-15));
  CHECK(parse<Power>("1610 W").value == 1610);
  CHECK(parse<Energy>("2 kWh").value == 7.2e6);
  CHECK(parse<FlopRate>("989 TFLOP/s").value == 989e12);
  CHECK(parse<Voltage>("54 V").value == 54);
  CHECK(parse<Power>("  7 kW ").value == 7000);
  CHECK(parse<Power>("7kW").value == 7000);
}

TEST_CASE("what is not a quantity of the wanted dimension is refused with an example of it") {
  for (const char* text : {"", " ", "W", "nan W", "inf W", "-inf W", "1e400 W", "1e308 GW", "1,5 W", "0x10 W", "--5 W",
                           "5 W W", "5 W/W/s", "5 Watt", "5", "five W", "5 GB", "5 Gbit/s", "5 W/s"}) {
    const ParsedQuantity q = parse<Power>(text);
    INFO(text);
    CHECK(!q.problem.empty());
    if (std::string(text) != "1e308 GW") CHECK(q.problem.find("1610 W") != std::string::npos);
    CHECK(std::isfinite(q.value));
  }
  CHECK(parse<Power>("5").problem.find("has no unit") != std::string::npos);
  CHECK(parse<Power>("5 GB").problem.find("wrong dimension") != std::string::npos);
  CHECK(parse<Power>("5 Watt").problem.find("unknown unit \"Watt\"") != std::string::npos);
  CHECK(parse<Energy>("5").problem.find("an energy such as") != std::string::npos);
}

TEST_CASE("text of a quantity reads back to the same value") {
  for (const double v : {0.0, 1.0, 1610.0, 50e9, 1.0 / 3, 6.25e-7, 1e-12, 123456789.123, 7.02e15, 4.999999999999999}) {
    CHECK(parse<Power>(to_text(watts(v)).c_str()).value == v);
    CHECK(parse<Bandwidth>(to_text(bytes_per_second(v)).c_str()).value == v);
    CHECK(parse<Time>(to_text(seconds(v)).c_str()).value == v);
  }
  CHECK(to_text(bytes_per_second(50e9)) == "50 GB/s");
  CHECK(to_text(seconds(0)) == "0 s");
}

TEST_CASE("a locale with a decimal comma changes nothing") {
  const char* before = std::setlocale(LC_ALL, nullptr);
  const std::string kept = before ? before : "C";
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"})
    if (std::setlocale(LC_ALL, name)) break;
  CHECK(parse<Time>("1.5 s").value == 1.5);
  CHECK(to_text(seconds(1.5)) == "1.5 s");
  std::setlocale(LC_ALL, kept.c_str());
}

TEST_CASE("dimensions are types") {
  const Energy e = watts(50) * seconds(2);
  CHECK(e.value() == 100);
  const Time t = bytes(100e9) / bytes_per_second(50e9);
  CHECK(t.value() == 2);
  static_assert(!std::is_convertible_v<Power, Energy>);
  static_assert(!std::is_convertible_v<double, Power>);
}

}  // namespace tw
