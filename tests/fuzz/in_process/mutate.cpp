#include "mutate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/document.hpp"

namespace tw::fuzz {
namespace {

using nlohmann::json;
using Kind = TypeInfo::Kind;

constexpr double kPart = 0.7;  // of values within what their range allows

const std::vector<double> numbers{0, 1, 2, 3, 7, 8, 64, 100, 1e3, 1e6, 1e9, 1e18, 1e300, -1, 0.5, 1e-9, 1e-300};
const std::vector<std::string> units{"s",      "ms", "us", "h",       "d",      "B",       "GB", "GiB", "GB/s",
                                     "Gbit/s", "W",  "kW", "TFLOP/s", "kg/kWh", "USD/kWh", "V",  "Hz"};
const std::vector<std::string> times{"0 s", "1 us", "1 ms", "1 s", "90 s", "5 min", "1 h", "36 h", "30 d", "-1 s"};
const std::vector<std::string> tokens{"",
                                      "0",
                                      "-1",
                                      "1e999",
                                      "nan",
                                      "null",
                                      "true",
                                      "[]",
                                      "{}",
                                      "\"",
                                      "\\",
                                      ",",
                                      ":",
                                      "\n",
                                      std::string(1, '\0'),
                                      "\xff\xfe",
                                      "<",
                                      "/>",
                                      "<!--",
                                      "&#0;",
                                      "=",
                                      "18446744073709551616",
                                      "1e308",
                                      "//",
                                      "/*",
                                      "'",
                                      ";",
                                      "\t",
                                      "\r\n"};

json of_another_kind(Chance& c) {
  static const std::vector<json> list{
      nullptr, true, "x", -1, json::array(), json::object(), "nan", "\u00e9\n", json::parse("[[[]]]")};
  return c.of(list);
}

json number_in(const Range& range, bool whole, Chance& c) {
  const double high = std::isfinite(range.high) ? range.high : 1e4;
  const double inside = c.of({range.low, high, (range.low + high) / 2, range.low + 1,
                              range.low + c.share() * std::min(high - range.low, 100.0), c.of({1.0, 2.0, 4.0, 8.0})});
  const double value = c.in(0.8) ? inside : c.of(numbers);
  if (whole && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

std::string quantity(const DimensionInfo& dimension, Chance& c) {
  if (dimension.name == "time" && c.in(0.8)) return c.of(times);
  const std::string example(dimension.example);
  const size_t space = example.find(' ');
  const std::string unit = c.in(0.92) ? example.substr(space + 1) : c.of(units);
  const double scale = c.of({1.0, 0.5, 2.0, 10.0, 0.1});
  return fmt::format("{:g} {}", c.in(kPart) ? std::stod(example.substr(0, space)) * scale : c.of(numbers), unit);
}

json random_object(const ObjectInfo& info, Chance& c, int depth) {
  json object = json::object();
  for (const KeyInfo& key : info.keys)
    if (key.required || key.name == info.tag || c.in(0.25))
      object[key.name] = random_value(key.type, key.range, c, depth + 1);
  return object;
}

// A key of the tree more often than one that is not there.
const KeyInfo& key_of(const ObjectInfo& info, const json& tree, Chance& c) {
  if (c.in(kPart)) {
    std::vector<const KeyInfo*> there;
    for (const KeyInfo& key : info.keys)
      if (tree.contains(key.name)) there.push_back(&key);
    if (!there.empty()) return *c.of(there);
  }
  return c.of(info.keys);
}

void change_value(json& value, const TypeInfo& type, const Range& range, Chance& c);

void change_list(json& list, const TypeInfo& element, const Range& range, Chance& c) {
  const size_t at = c.below(list.size());
  switch (c.below(5)) {
    case 0:
      list.erase(at);
      break;
    case 1:
      list.insert(list.begin() + static_cast<long>(at), json(list[at]));
      break;
    default:
      change_value(list[at], element, range, c);
  }
}

void change_value(json& value, const TypeInfo& type, const Range& range, Chance& c) {
  if (type.kind == Kind::object && value.is_object() && c.in(0.93)) return change(value, *type.object, c);
  if (type.kind == Kind::array && value.is_array() && !value.empty() && c.in(0.9))
    return change_list(value, *type.element, range, c);
  if (type.kind == Kind::map && value.is_object() && !value.empty() && c.in(0.9)) {
    auto at = value.begin();
    std::advance(at, static_cast<long>(c.below(value.size())));
    return change_value(*at, *type.element, range, c);
  }
  value = random_value(type, range, c);
}

}  // namespace

json random_value(const TypeInfo& type, const Range& range, Chance& c, int depth) {
  if (c.in(0.05)) return of_another_kind(c);
  switch (type.kind) {
    case Kind::boolean:
      return c.in(0.5);
    case Kind::integer:
    case Kind::number:
      return number_in(range, type.kind == Kind::integer, c);
    case Kind::quantity:
      return quantity(*type.dimension, c);
    case Kind::choice:
      if (!type.choices.empty()) return c.of(type.choices);
      break;
    case Kind::array: {
      json list = json::array();
      for (size_t n = depth < 3 ? c.of({0, 1, 1, 2, 5}) : 0; n > 0; --n)
        list.push_back(random_value(*type.element, range, c, depth + 1));
      return list;
    }
    case Kind::map:
      return depth < 3 ? json{{"a", random_value(*type.element, range, c, depth + 1)}} : json::object();
    case Kind::object:
      return depth < 3 ? random_object(*type.object, c, depth) : json::object();
    case Kind::text:
    case Kind::any:
      break;
  }
  return c.of({"", "a", "models/nothing.json", "node-0"});
}

void change(json& tree, const ObjectInfo& info, Chance& c) {
  if (info.keys.empty()) return;
  const KeyInfo& key = key_of(info, tree, c);
  const auto there = tree.find(key.name);
  if (there == tree.end()) {
    tree[key.name] = random_value(key.type, key.range, c);
  } else if (c.in(0.04)) {
    tree.erase(there);
  } else if (c.in(0.01)) {
    tree[key.name + "s"] = json(*there);
  } else {
    change_value(*there, key.type, key.range, c);
  }
}

std::string setting(const ObjectInfo& info, Chance& c) {
  const ObjectInfo* object = &info;
  std::string pointer;
  while (true) {
    const KeyInfo& key = c.of(object->keys);
    pointer += "/" + key.name;
    const TypeInfo* type = &key.type;
    if (type->kind == Kind::array && type->element->kind == Kind::object && c.in(kPart)) {
      pointer += "/" + std::to_string(c.of({0, 0, 0, 1, 2}));
      type = type->element.get();
    }
    if (type->kind == Kind::object && !type->object->keys.empty() && c.in(0.95)) {
      object = type->object;
      continue;
    }
    const json value = random_value(*type, key.range, c);
    return pointer + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
}

std::string odd_plan(Chance& c) {
  const char* schedule =
      c.of({"gpipe", "1f1b", "1f1b", "zb_h1", "interleaved_zero_bubble", "zbv", "dualpipev", "dualpipe"});
  const std::string name = schedule;
  const int nodes = c.of({1, 2, 4, 8}), tp = c.of({1, 1, 2, 4, 8}), pp = c.of({1, 1, 2, 4, 8, 3}),
            cp = c.of({1, 1, 2, 4});
  const int vp = (name == "zbv" || name == "dualpipev") && c.in(0.9) ? 2 : c.of({1, 1, 1, 2, 4});
  const int mbs = c.of({1, 1, 2}), dp = std::max(1, nodes * 8 / (tp * pp * cp));
  json plan{{"nodes", nodes}, {"tp", tp}, {"pp", pp}, {"cp", cp}, {"vp", vp}, {"mbs", mbs}, {"schedule", name}};
  plan["gbs"] = dp * mbs * c.of({1, 2, 3, 5, 8, pp, 2 * pp, 4 * pp});
  plan["sharding"] = c.of({"none", "zero1", "zero1", "zero1", "zero2", "zero3", "zero3"});
  plan["context"] = c.of({"ring", "all_gather", "heads"});
  if (plan["sharding"] != "none" && c.in(0.2)) plan["shard_group"] = c.of({1, 2, 4, 8, 16});
  if (c.in(0.15)) plan["ep"] = c.of({1, 2, 4, 8}), plan["etp"] = c.of({0, 1, 2});
  for (const char* key : {"sequence_parallel", "reshard"})
    if (c.in(0.2)) plan[key] = false;
  return "/plan=" + plan.dump();
}

namespace {

// Begin and length of the number nearest behind `at`.
std::pair<size_t, size_t> number_behind(const std::string& text, size_t at) {
  const size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return {at, 0};
  const size_t end = text.find_first_not_of("0123456789.", begin);
  return {begin, (end == std::string::npos ? text.size() : end) - begin};
}
std::pair<size_t, size_t> line_at(const std::string& text, size_t at) {
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1, end = text.find('\n', at);
  return {begin, end == std::string::npos ? text.size() - begin : end + 1 - begin};
}

}  // namespace

std::string damaged(std::string text, Chance& c) {
  for (int n = c.of({1, 1, 2, 4}); n > 0; --n) {
    const size_t at = c.below(text.size() + 1);
    switch (c.below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(c.below(256));
        break;
      case 1:
        text.erase(at, c.of<size_t>({1, 2, 10, 100, 10000}));
        break;
      case 2: {
        const std::string part = text.substr(at, c.of<size_t>({1, 10, 200}));
        for (int times = c.of({1, 2, 100}); times > 0; --times) text.insert(at, part);
        break;
      }
      case 3:
        text.insert(at, c.of(tokens));
        break;
      case 4:
      case 5: {
        const auto [begin, size] = number_behind(text, at);
        text.replace(begin, size, fmt::format("{:g}", c.of(numbers)));
        break;
      }
      case 6: {
        const auto [begin, size] = line_at(text, at);
        const std::string line = text.substr(begin, size);
        text.erase(begin, size);
        text.insert(line_at(text, c.below(text.size() + 1)).first, line);
        break;
      }
      default: {
        const auto [begin, size] = line_at(text, at);
        text.erase(begin, size);
      }
    }
  }
  return text;
}

}  // namespace tw::fuzz
