#include "core/strict_json.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "toys.hpp"

namespace tw {

using toys::holds;

namespace {

// All faults of a text, a line each; empty when it is accepted.
std::string problems_of(const std::string& text) {
  Faults faults;
  const auto value = parse_strict_json(text, "in.json", faults);
  CHECK((value == nullptr) == !faults.empty());
  return toys::text_of(faults);
}

}  // namespace

TEST_CASE("comments are allowed, and nothing else beyond JSON") {
  Faults faults;
  const auto value = parse_strict_json("// head\n{\"a\": 1, /* why */ \"b\": [1, 2]}", "in.json", faults);
  REQUIRE(value);
  CHECK((*value)["b"][1] == 2);
  for (const char* text : {"{\"a\": 1,}", "{a: 1}", "{'a': 1}", "{\"a\": 01}", "{\"a\": NaN}", "{\"a\": .5}",
                           "{\"a\": Infinity}", "{\"a\": 1} x", "{\"a\": \"\xff\"}", "{\"a\": \"\n\"}"}) {
    INFO(text);
    CHECK(!problems_of(text).empty());
  }
}

TEST_CASE("each duplicate key is a fault at its pointer") {
  const std::string faults = problems_of(R"({"a": 1, "list": [0, {"x": 1, "x": 2}], "a": 3, "b/c": 1, "b/c": 2})");
  CHECK(holds(faults, "in.json: /list/1/x: duplicate key"));
  CHECK(holds(faults, "in.json: /a: duplicate key"));
  CHECK(holds(faults, "in.json: /b~1c: duplicate key"));
}

TEST_CASE("syntax errors carry line and column") {
  CHECK(holds(problems_of("{\n  \"a\": 1\n  \"b\": 2\n}"), "line 3, column"));
  CHECK(holds(problems_of("{\n  \"a\": [1, 2\n"), "line 3"));
  CHECK(holds(problems_of("{\"a\": x}"), "line 1, column 7"));
  CHECK(holds(problems_of("{\"a\": 1e400}"), "number overflow"));
}

TEST_CASE("an empty file is called empty") {
  for (const char* text : {"", " \n\t", "\r\n"}) CHECK(holds(problems_of(text), "the file is empty"));
}

TEST_CASE("nesting stops at 64 levels") {
  CHECK(problems_of(std::string(64, '[') + std::string(64, ']')).empty());
  CHECK(holds(problems_of(std::string(65, '[') + std::string(65, ']')), "nested deeper than 64"));
  CHECK(holds(problems_of(std::string(10000, '[')), "nested deeper than 64"));
  CHECK(holds(problems_of(std::string(10000, '[') + std::string(10000, ']')), "nested deeper than 64"));
  std::string objects;
  for (int i = 0; i < 10000; ++i) objects += "{\"a\":";
  CHECK(holds(problems_of(objects), "nested deeper than 64"));
}

TEST_CASE("a fault is one line") {
  const std::string faults = problems_of("{\"a\": \"one\ntwo\"}");
  CHECK(!faults.empty());
  CHECK(!holds(faults, "\n"));
}

}  // namespace tw
