// Outputs described once: JSON, keys, numbers by path and bytes come from one declaration.
#include "core/outputs.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tw {
namespace {

enum class Weather { dry, wet };

struct Field {
  std::string crop;
  double yield_kg = 0;
  static void describe(Outputs<Field>& d) {
    d.output("crop", &Field::crop, "", "what grows");
    d.output("yield_kg", &Field::yield_kg, "kg", "what it gave");
  }
};

struct Spell {
  std::optional<double> mean, days;
  static void describe(Outputs<Spell>& d) {
    d.null_without(&Spell::days, "null without a spell");
    d.output("mean", &Spell::mean, "", "mean of the spell");
    d.output("days", &Spell::days, "d", "its length").whole();
  }
};

struct Estate {
  std::string name, owner;
  uint64_t seed = 0;
  double area = 0;
  bool fenced = false;
  Weather weather = Weather::dry;
  Power lamp;
  std::optional<double> rain;
  std::vector<Field> fields;
  std::map<std::string, std::optional<double>> stock;
  std::array<double, 2> corner{};
  Spell frost, heat;
  std::optional<Field> best;
  double hidden = 0;
  static void describe(Outputs<Estate>& d) {
    d.output("name", &Estate::name, "", "its name");
    d.output("owner", &Estate::owner, "", "null when nobody owns it").null_if_empty();
    d.output("seed", &Estate::seed, "1", "of the weather");
    d.output("land.area", &Estate::area, "m2", "its area").whole();
    d.output("fenced", &Estate::fenced, "", "whether");
    d.output("weather", &Estate::weather, "", "today's");
    d.output("lamp", &Estate::lamp, "W", "at the gate");
    d.output("rain", &Estate::rain, "mm", "of the year; null when nobody looked");
    d.output_if([](const Estate& f) { return f.fenced; }, "corner", &Estate::corner, "m", "of the fence");
    d.output("fields", &Estate::fields);
    d.output("stock", &Estate::stock, "1", "heads by kind");
    d.output("frost", &Estate::frost, "K", "below zero");
    d.output("heat", &Estate::heat, "K");
    d.output("best", &Estate::best);
    d.computed(
        "land.fields", [](const Estate& f) { return f.fields.size(); }, "1", "how many");
    d.carried("hidden", &Estate::hidden, "1");
  }
};

Estate estate() {
  Estate f;
  f.name = "Hill";
  f.seed = std::numeric_limits<uint64_t>::max();
  f.area = 1200;
  f.weather = Weather::wet;
  f.lamp = watts(60.5);
  f.fields = {{"rye", 1.5}, {"oats", std::numeric_limits<double>::infinity()}};
  f.stock = {{"cows", 12.0}, {"geese", std::nullopt}};
  f.corner = {-0.1, 2};
  f.frost = {3.5, 4.0};
  f.best = f.fields[0];
  f.hidden = 7;
  return f;
}

std::string paths_of(const std::vector<OutputKey>& keys) {
  std::string all;
  for (const OutputKey& key : keys) all += (all.empty() ? "" : " ") + key.path;
  return all;
}

}  // namespace

TEST_CASE("a described output is written in the order of its description, null where it does not apply") {
  CHECK(described_json(estate()).dump() ==
        R"({"name":"Hill","owner":null,"seed":18446744073709551615,"land":{"area":1200,"fields":2},"fenced":false,)"
        R"("weather":"wet","lamp":60.5,"rain":null,"corner":null,)"
        R"("fields":[{"crop":"rye","yield_kg":1.5},{"crop":"oats","yield_kg":null}],)"
        R"("stock":{"cows":12.0,"geese":null},"frost":{"mean":3.5,"days":4},"heat":null,)"
        R"("best":{"crop":"rye","yield_kg":1.5}})");
}

TEST_CASE("keys say where, in which unit and what") {
  const auto keys = outputs<Estate>().keys();
  CHECK(paths_of(keys) ==
        "name owner seed land.area fenced weather lamp rain corner[] fields[].crop fields[].yield_kg stock.* frost "
        "frost.mean frost.days heat heat.mean heat.days best.crop best.yield_kg land.fields");
  for (const OutputKey& key : keys) {
    if (key.path == "frost.mean") CHECK((key.unit == "K" && key.meaning == "mean of the spell; below zero"));
    if (key.path == "frost.days") CHECK(key.unit == "d");
    if (key.path == "heat") CHECK(key.meaning == "null without a spell");
  }
}

TEST_CASE("numbers are found by their path") {
  const Estate f = estate();
  const auto number = [&](const char* path) { return outputs<Estate>().number(&f, path); };
  CHECK(number("land.area") == 1200.0);
  CHECK(number("land.fields") == 2.0);
  CHECK(number("frost.mean") == 3.5);
  CHECK(number("best.yield_kg") == 1.5);
  CHECK(number("stock.cows") == 12.0);
  CHECK(number("hidden") == 7.0);
  for (const char* none : {"heat.mean", "stock.geese", "stock.cats", "rain", "name", "land", "nothing", "frost", ""})
    CHECK(!number(none));
  CHECK(outputs<Spell>().numbers(&f.frost) == std::vector<std::pair<std::string, double>>{{"mean", 3.5}, {"days", 4}});
}

TEST_CASE("bytes give back what was packed, to the last bit") {
  Estate f = estate();
  f.rain = std::nan("");
  const Estate g = unpacked<Estate>(packed(f));
  CHECK(g.seed == f.seed);
  CHECK(g.weather == Weather::wet);
  CHECK(std::isinf(g.fields[1].yield_kg));
  CHECK(std::isnan(g.rain.value()));
  CHECK((g.stock.size() == 2 && !g.stock.at("geese")));
  CHECK((g.frost.days == 4.0 && !g.heat.days && g.best->crop == "rye" && g.hidden == 7));
  CHECK(packed(g) == packed(f));
  CHECK_THROWS_WITH(unpacked<Estate>(packed(f).substr(0, 40)), Catch::Contains("garbled"));
  CHECK_THROWS_WITH(unpacked<Estate>(packed(f.fields[0])), Catch::Contains("garbled"));
}

}  // namespace tw
