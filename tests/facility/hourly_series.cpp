#include "facility/hourly_series.hpp"

#include <catch2/catch.hpp>

#include "core/codec.hpp"
#include "core/currency.hpp"
#include "core/document.hpp"
#include "core/units.hpp"
#include "facility/facility.hpp"

namespace {

using namespace tw;

Site plain() {
  Site site;
  site.name = "test";
  site.pue = 1.1;
  site.pue_base = PueBase::dc;
  site.carbon_intensity = CarbonIntensity::from_value(0.4 / joules_per_kwh);
  site.price = Price{EnergyPrice::from_value(0.1 / joules_per_kwh), "USD"};
  return site;
}

std::string carbon(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text = "time,location_kg_per_kwh\n";
  for (const auto& [time, value] : rows) text += time + "," + value + "\n";
  return text;
}

std::optional<HourlySeries> read(const std::string& text, const Site& site, Faults& faults) {
  return read_hourly(text, "c.csv", "location_kg_per_kwh", site, faults);
}

}  // namespace

TEST_CASE("times know their zone") {
  CHECK(parse_time("1970-01-01T00:00Z")->utc_s == 0);
  CHECK(parse_time("2024-05-16T08:00+08:00")->utc_s == parse_time("2024-05-16T00:00Z")->utc_s);
  CHECK(parse_time("2024-02-29 23:59:58-05:30")->utc_s == 1709270998);
  CHECK_FALSE(parse_time("2023-02-29T00:00Z").has_value());
  CHECK_FALSE(parse_time("2024-05-16T08:00").has_value());
  CHECK(parse_time("2024-05-16T08:00", 3600)->utc_s == parse_time("2024-05-16T07:00Z")->utc_s);
  CHECK_FALSE(parse_time("today").has_value());
  CHECK(format_time(parse_time("2024-05-16T08:00+08:00")->utc_s, 8 * 3600) == "2024-05-16T08:00+08:00");
  CHECK(format_time(0) == "1970-01-01T00:00Z");
}

TEST_CASE("series with faults are refused, each with its line") {
  const Site site = plain();
  const auto faults_of = [&](const std::string& text) {
    Faults faults;
    CHECK_FALSE(read(text, site, faults).has_value());
    return faults.size();
  };
  CHECK(faults_of(carbon({{"2024-01-01T00:00Z", "0.4"}, {"2024-01-01T02:00Z", "0.4"}})) == 1);  // a gap
  CHECK(faults_of(carbon({{"2024-01-01T00:00Z", "0.4"}, {"2024-01-01T00:00Z", "0.4"}})) == 1);  // twice
  CHECK(faults_of(carbon({{"2024-01-01T00:00", "0.4"}})) == 1);                                 // no zone
  CHECK(faults_of(carbon({{"2024-01-01T00:00Z", "-1"}, {"2024-01-01T01:00Z", "x"}})) == 2);     // no number
  // One line a gap, however many rows follow; one line for all rows of a kind.
  std::vector<std::pair<std::string, std::string>> day;
  for (int hour = 0; hour < 24; ++hour)
    if (hour < 5 || hour > 7) day.emplace_back(format_time(1704067200 + 3600 * hour), "0.4");
  CHECK(faults_of(carbon(day)) == 1);
  day.erase(day.begin() + 12);
  CHECK(faults_of(carbon(day)) == 2);
  for (auto& [time, value] : day) value = "-1";
  CHECK(faults_of(carbon(day)) == 3);
  CHECK(faults_of("time,other\n2024-01-01T00:00Z,1\n") >= 1);
  CHECK(faults_of("") >= 1);
}

TEST_CASE("a named policy fills gaps and crosses clock changes") {
  Site site = plain();
  Faults faults;
  const std::string gap = carbon({{"2024-01-01T00:00Z", "0.4"}, {"2024-01-01T03:00Z", "0.7"}});
  site.series_gaps = SeriesGaps::hold;
  CHECK(read(gap, site, faults)->values == std::vector<double>{0.4, 0.4, 0.4, 0.7});
  site.series_gaps = SeriesGaps::interpolate;
  const auto line = read(gap, site, faults);
  CHECK(line->values[1] == Approx(0.5));
  CHECK(line->values[2] == Approx(0.6));
  CHECK(read(carbon({{"2024-03-31T01:00+01:00", "0.4"}, {"2024-03-31T03:00+02:00", "0.5"}}), site, faults)->values ==
        std::vector<double>{0.4, 0.5});
  CHECK(faults.empty());
}

TEST_CASE("times are instants, whatever offset they are written with") {
  const Site site = plain();
  Faults faults;
  const auto series = read(carbon({{"2024-10-27T02:00+02:00", "0.1"},
                                   {"2024-10-27T02:00+01:00", "0.2"},  // clocks go back
                                   {"2024-10-27T03:00+01:00", "0.3"},
                                   {"2024-10-27T03:00Z", "0.4"}}),
                           site, faults);
  REQUIRE(series);
  CHECK(series->values == std::vector<double>{0.1, 0.2, 0.3, 0.4});
  CHECK(series->text(series->begin_utc_s) == "2024-10-27T02:00+02:00");
  CHECK(series->text(series->begin_utc_s + 3600) == "2024-10-27T02:00+01:00");
  CHECK(faults.empty());
}

TEST_CASE("what is filled or left out is told") {
  Site site = plain();
  site.series_gaps = SeriesGaps::hold;
  site.utc_offset = "+01:00";
  Faults faults;
  const auto series = read(carbon({{"2024-10-27T01:00", "0.1"},
                                   {"2024-10-27T02:00", "0.2"},
                                   {"2024-10-27T02:00", "0.3"},
                                   {"2024-10-27T05:00", "0.4"}}),
                           site, faults);
  REQUIRE(series);
  CHECK(series->values == std::vector<double>{0.1, 0.2, 0.2, 0.2, 0.4});
  REQUIRE(series->remarks.size() == 2);
  CHECK(series->remarks[0] == "c.csv: 2 hours of 5 hours in 1 gap are filled (hold)");
  SiteSeries all;
  all.location_kg_per_kwh = series;
  CHECK(series_remarks(site, all, series->begin_utc_s, 3600).size() == 2);
  CHECK(series_remarks(site, all, series->begin_utc_s, 36000).size() == 3);  // held beyond its end
}

TEST_CASE("prices may be negative and in any currency") {
  const Site site = plain();
  Faults faults;
  const auto series = read_hourly("time,eur_per_kwh\n2024-01-01T00:00Z,0.1\n2024-01-01T01:00Z,-0.05\n", "p.csv",
                                  "eur_per_kwh", site, faults);
  REQUIRE(series);
  CHECK(series->values[1] == -0.05);
  const Document text =
      Document::from_text(R"({"name": "x", "pue": 1.2, "carbon_intensity": "0.4 kg/kWh", "price": "0.2 EUR/kWh"})", "x",
                          description<Site>().info(), {}, faults);
  const Site euro = ::tw::read<Site>(text, faults);
  REQUIRE(euro.price);
  CHECK(euro.price->currency == "EUR");
  CHECK(euro.price->value.value() * joules_per_kwh == Approx(0.2));
  CHECK_FALSE(is_currency("AB "));
  CHECK_FALSE(is_currency("XYZ"));
  CHECK(faults.empty());
}

TEST_CASE("carbon and cost hour by hour equal the hand sum") {
  Site site = plain();
  Faults faults;
  SiteSeries series;
  series.location_kg_per_kwh = read(
      carbon({{"2024-01-01T00:00Z", "0.4"}, {"2024-01-01T01:00Z", "0.2"}, {"2024-01-01T02:00Z", "0.8"}}), site, faults);
  PiecewiseWatts power;
  power.begin(0);
  power.append(5400, 3.6e6);  // 1 kWh a second
  const int64_t half_past = parse_time("2024-01-01T00:30Z")->utc_s;
  const TimedFacility f = facility_over_time(site, series, power, 0, 5400, half_past);
  CHECK(f.kg_co2e == Approx(1800 * 0.4 + 3600 * 0.2));
  CHECK(f.cost.value() == Approx(540));
  CHECK_FALSE(f.kg_co2e_market.has_value());
  CHECK_THROWS_AS(facility_over_time(site, series, power, 0, 5400, half_past + 7200), InputError);
  site.series_gaps = SeriesGaps::hold;
  CHECK(facility_over_time(site, series, power, 0, 5400, half_past + 7200).kg_co2e == Approx(5400 * 0.8));
}

TEST_CASE("the best start is the best of all hours") {
  const Site site = plain();
  SiteSeries series;
  HourlySeries carbon_hours, price;
  carbon_hours.begin_utc_s = price.begin_utc_s = 1704067200;
  carbon_hours.values = {0.5, 0.4, 0.1, 0.2, 0.9, 0.9};
  price.values = {0.3, 0.1, 0.1, 0.4, 0.4, 0.2};
  series.location_kg_per_kwh = carbon_hours;
  series.price_per_kwh = price;
  PiecewiseWatts power;
  power.begin(0);
  power.append(7200, 1000);
  const StartChoice green = best_start(site, series, power, 0, 7200, StartObjective::carbon);
  CHECK(green.start_utc_s == 1704067200 + 2 * 3600);
  CHECK(green.candidates == 5);
  CHECK(green.best.kg_co2e == Approx(0.3));
  CHECK(green.worst.kg_co2e == Approx(1.8));
  const StartChoice cheap = best_start(site, series, power, 0, 7200, StartObjective::cost);
  CHECK(cheap.start == "2024-01-01T01:00Z");
  CHECK_THROWS_AS(best_start(site, series, power, 0, 1e6, StartObjective::cost), InputError);
  CHECK_THROWS_AS(best_start(site, {}, power, 0, 7200, StartObjective::cost), InputError);
}
