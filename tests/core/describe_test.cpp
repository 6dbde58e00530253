#include "core/describe.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "core/document.hpp"
#include "toys.hpp"

namespace tw {

using toys::Farm;
using toys::faults_of;
using toys::holds;
using toys::read_farm;

TEST_CASE("a described struct is read with its defaults") {
  Faults faults;
  const Farm farm = read_farm(R"({"name": "north", "barn": {"doors": 3, "lamp": "60 W"}})", {}, faults);
  REQUIRE(faults.empty());
  CHECK(farm.barn.doors == 3);
  CHECK(farm.barn.lamp.value() == 60);
  CHECK(farm.barn.roof == toys::Roof::flat);
  CHECK(farm.share == 0.5);
  CHECK(!farm.spare);
  CHECK(farm.seed == 7);
}

TEST_CASE("all faults are told at once, each with its place and what is allowed") {
  const std::string faults = faults_of(R"({
    "nmae": "x", "share": 2, "seed": 1.5, "open": "yes", "counts": [1, "two", -3],
    "barn": {"doors": 0, "lamp": 60, "roof": "domed", "dors": 1},
    "sheds": {"a": {"doors": 1, "lamp": "60 GB"}}, "spare": 3, "limits": {"low": -1}})");
  CHECK(holds(faults, "toy.json: /nmae: unknown key \"nmae\" in a farm; did you mean \"name\"?"));
  CHECK(holds(faults, "toy.json: /: missing key \"name\""));
  CHECK(holds(faults, "toy.json: /share: 2 is out of range; allowed: at least 0 and at most 1"));
  CHECK(holds(faults, "toy.json: /seed: 1.5 is not an integer"));
  CHECK(holds(faults, "toy.json: /open: \"yes\" is not true or false"));
  CHECK(holds(faults, "toy.json: /counts/1: \"two\" is not an integer"));
  CHECK(holds(faults, "toy.json: /counts/2: -3 is out of range"));
  CHECK(holds(faults, "toy.json: /barn/doors: 0 is out of range; allowed: at least 1"));
  CHECK(holds(faults, "toy.json: /barn/lamp: 60 has no unit; a power such as \"1610 W\" is due"));
  CHECK(holds(faults, "toy.json: /barn/roof: unknown choice \"domed\"; allowed: flat or gabled"));
  CHECK(holds(faults, "toy.json: /barn/dors: unknown key \"dors\" in a barn; did you mean \"doors\"?"));
  CHECK(holds(faults, "toy.json: /sheds/a/lamp: \"60 GB\" has the wrong dimension"));
  CHECK(holds(faults, "toy.json: /spare: 3 is not an object; a barn is due"));
  CHECK(holds(faults, "toy.json: /limits/low: -1 is out of range"));
  CHECK(std::count(faults.begin(), faults.end(), '\n') == 13);
}

TEST_CASE("negative and non-finite quantities are refused") {
  CHECK(holds(faults_of(R"({"name": "n", "barn": {"doors": 1, "lamp": "-60 W"}})"), "out of range"));
  CHECK(holds(faults_of(R"({"name": "n", "barn": {"doors": 1, "lamp": "nan W"}})"), "finite number"));
  CHECK(holds(faults_of(R"({"name": "n", "barn": {"doors": 1, "lamp": "inf W"}})"), "finite number"));
}

TEST_CASE("integers keep their value and their bounds") {
  Faults faults;
  CHECK(read_farm(R"({"name": "n", "barn": {"doors": 3.0, "lamp": "1 W"}})", {}, faults).barn.doors == 3);
  CHECK(read_farm(R"({"name": "n", "barn": {"doors": 1, "lamp": "1 W"}, "seed": 9007199254740993})", {}, faults).seed ==
        9007199254740993);
  REQUIRE(faults.empty());
  for (const char* text : {"3000000000", "1e10", "99999999999999999999", "\"3\"", "true", "null", "[3]"}) {
    INFO(text);
    CHECK(!faults_of(std::string(R"({"name": "n", "barn": {"lamp": "1 W", "doors": )") + text + "}}").empty());
  }
  CHECK(!faults_of(R"({"name": "n", "barn": {"doors": 1, "lamp": "1 W"}, "seed": 9223372036854775808})").empty());
}

TEST_CASE("keys with control characters stay on one line") {
  const std::string faults = faults_of(R"({"name": "n", "barn": {"doors": 1, "lamp": "1 W"}, "a\nb\u0007": 1})");
  CHECK(holds(faults, "a\\nb\\x07"));
  CHECK(!holds(faults, "\n"));
}

TEST_CASE("the schema says what the reader does") {
  const auto schema = nlohmann::json::parse(schema_text(description<Farm>().info()));
  CHECK(schema["title"] == "farm");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["then"]["required"] == nlohmann::json{"name", "barn"});
  CHECK(schema["properties"]["share"]["maximum"] == 1);
  CHECK(schema["properties"]["share"]["default"] == 0.5);
  CHECK(schema["properties"]["counts"]["items"]["minimum"] == 0);
  CHECK(schema["properties"]["offsets"]["items"]["minimum"] == -5);
  const auto& barn = schema["definitions"]["barn"]["properties"];
  CHECK(barn["roof"]["enum"] == nlohmann::json{"flat", "gabled"});
  CHECK(barn["roof"]["default"] == "flat");
  CHECK(barn["doors"]["minimum"] == 1);
  CHECK(barn["lamp"]["examples"][0] == "1610 W");
  CHECK(barn.contains("use"));
}

}  // namespace tw
