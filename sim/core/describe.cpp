#include "core/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/text.hpp"

namespace tw {

using nlohmann::json;

std::string TypeInfo::name() const {
  switch (kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "integer";
    case Kind::number:
      return "number";
    case Kind::text:
      return choices.empty() ? "text" : one_of(choices) + ", or a name that data give";
    case Kind::quantity:
      return fmt::format("{} such as \"{}\"", dimension->name, dimension->example);
    case Kind::choice:
      return one_of(choices);
    case Kind::object:
      return fmt::format("{} (object or file)", object->name);
    case Kind::array:
      return fmt::format("list of {}", element->name());
    case Kind::map:
      return fmt::format("object of {}", element->name());
    case Kind::any:
      break;
  }
  return "any value";
}

ReadContext ReadContext::at(const std::string& key) const {
  ReadContext c = *this;
  c.pointer += "/" + pointer_token(key);
  return c;
}

ReadContext ReadContext::at(size_t index) const {
  return at(std::to_string(index));
}

void ReadContext::fault(std::string what, std::string allowed) const {
  if (document->broken(pointer)) return;  // it could not be drawn in, which has been said
  const Origin origin = document->origin(pointer);
  faults->add({origin.file, origin.pointer.empty() ? "/" : origin.pointer, std::move(what), std::move(allowed)});
}

namespace {

std::string tag_of(const ObjectInfo& info, const json& object) {
  for (const KeyInfo& key : info.keys)
    if (key.name == info.tag) return object.value(key.name, json::parse(key.default_text)).get<std::string>();
  return "";
}

}  // namespace

bool applies(const ObjectInfo& info, const KeyInfo& key, const json& object) {
  if (key.only.empty()) return true;
  const auto tag = object.find(info.tag);
  if (tag != object.end() && !tag->is_string()) return true;  // a fault of its own
  const std::string name = tag_of(info, object);
  const auto has = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const KeyInfo& k : info.keys)
    if (k.name == info.tag && !has(k.type.choices)) return true;  // that too
  return has(key.only);
}

namespace detail {
namespace {

// Of a plain number that states no bound of its own: samples, tokens, factors; nothing comes near.
constexpr double kMostNumber = 1e18;

std::string shown(const json& j) {
  std::string text = j.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

std::string range_text(const Range& r, const std::function<std::string(double)>& format) {
  std::string low;
  if (std::isfinite(r.low)) low = (r.above_low ? "above " : "at least ") + format(r.low);
  const std::string high = std::isfinite(r.high) ? "at most " + format(r.high) : "";
  return low + (low.empty() || high.empty() ? "" : " and ") + high;
}

bool in_range(double v, const ReadContext& c, const json& j, const std::function<std::string(double)>& format) {
  if (v > c.range.low || (v == c.range.low && !c.range.above_low)) {
    if (v <= c.range.high) return true;
  }
  c.fault(fmt::format("{} is out of range", shown(j)), "allowed: " + range_text(c.range, format));
  return false;
}

}  // namespace

bool read_bool(bool& out, const json& j, const ReadContext& c) {
  if (!j.is_boolean()) return c.fault(fmt::format("{} is not true or false", shown(j))), false;
  out = j.get<bool>();
  return true;
}

bool read_integer(long long& out, const json& j, const ReadContext& c, long long low, long long high) {
  // 8.0 is an integer to people and to JSON Schema; 8.5 and "8" are not.
  const bool whole = j.is_number_float() && std::floor(j.get<double>()) == j.get<double>();
  if (!j.is_number_integer() && !whole) return c.fault(fmt::format("{} is not an integer", shown(j))), false;
  const double v = j.get<double>();
  // 2^63 as a double is one more than the largest integer, hence >=.
  if (v < static_cast<double>(low) || (v > static_cast<double>(high) || v >= 0x1p63))
    return c.fault(fmt::format("{} is out of range", shown(j)), fmt::format("allowed: at most {}", high)), false;
  if (!in_range(v, c, j, [](double x) { return fmt::format("{:.0f}", x); })) return false;
  out = whole ? static_cast<long long>(v) : j.get<long long>();
  return true;
}

bool read_number(double& out, const json& j, const ReadContext& c) {
  if (!j.is_number()) return c.fault(fmt::format("{} is not a number", shown(j))), false;
  const double v = j.get<double>();
  ReadContext bounded = c;
  bounded.range.high = std::min(c.range.high, kMostNumber);
  if (!in_range(v, bounded, j, [](double x) { return fmt::format("{:g}", x); })) return false;
  out = v;
  return true;
}

bool read_text(std::string& out, const json& j, const ReadContext& c) {
  if (!j.is_string()) return c.fault(fmt::format("{} is not a text", shown(j))), false;
  out = j.get<std::string>();
  return true;
}

bool read_quantity(double& out, const json& j, const ReadContext& c, const DimensionInfo& dimension) {
  if (!j.is_string())
    return c.fault(fmt::format("{} has no unit", shown(j)),
                   fmt::format("{} such as \"{}\" is due", with_article(dimension.name), dimension.example)),
           false;
  const ParsedQuantity q = parse_quantity(j.get<std::string>(), dimension);
  if (!q.problem.empty()) return c.fault(q.problem), false;
  if (!in_range(q.value, c, j, [&](double x) { return format_quantity(x, dimension); })) return false;
  out = q.value;
  return true;
}

bool read_choice(size_t& out, const json& j, const ReadContext& c, const std::vector<std::string>& names) {
  if (j.is_string()) {
    const auto found = std::find(names.begin(), names.end(), j.get<std::string>());
    if (found != names.end()) return out = static_cast<size_t>(found - names.begin()), true;
  }
  c.fault(fmt::format("unknown choice {}", shown(j)), "allowed: " + one_of(names));
  return false;
}

void read_array(const json& j, const ReadContext& c, const std::function<void(const json&, const ReadContext&)>& e) {
  if (!j.is_array()) return c.fault(fmt::format("{} is not a list", shown(j)));
  for (size_t i = 0; i < j.size(); ++i) e(j[i], c.at(i));
}

void read_map(const json& j, const ReadContext& c,
              const std::function<void(const std::string&, const json&, const ReadContext&)>& e) {
  if (!j.is_object()) return c.fault(fmt::format("{} is not an object", shown(j)));
  for (const auto& [key, value] : j.items()) e(key, value, c.at(key));
}

void ObjectDescription::add(const char* key, size_t offset, const TypeOps& ops, const char* meaning, Range range,
                            const void* default_value) {
  const auto known =
      std::find_if(info_.keys.begin(), info_.keys.end(), [&](const KeyInfo& k) { return k.name == key; });
  if (known != info_.keys.end()) {
    known->only.insert(known->only.end(), only_.begin(), only_.end());
    return;
  }
  const bool required = default_value == nullptr;
  info_.keys.push_back(
      {key, ops.type(), required, required ? "" : ops.default_text(default_value), range, meaning, only_});
  members_.push_back({offset, &ops});
}

void ObjectDescription::add_part(const ObjectDescription& part, size_t offset) {
  info_.keys.insert(info_.keys.end(), part.info_.keys.begin(), part.info_.keys.end());
  for (const Member& m : part.members_) members_.push_back({offset + m.offset, m.ops});
}

void ObjectDescription::add_tag(const char* key, size_t offset, const std::string& value,
                                std::vector<std::string> alternatives, const char* meaning) {
  add(key, offset, type_ops<std::string>(), meaning, {}, &value);
  info_.tag = key;
  info_.keys.back().type = {TypeInfo::Kind::choice, nullptr, std::move(alternatives), nullptr, nullptr};
}

void ObjectDescription::read(void* object, const json& j, const ReadContext& c) const {
  if (!j.is_object())
    return c.fault(fmt::format("{} is not an object", shown(j)), fmt::format("{} is due", with_article(info_.name)));
  std::vector<std::string> known;
  for (const KeyInfo& key : info_.keys) known.push_back(key.name);
  for (const auto& [key, value] : j.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      c.at(key).fault(fmt::format("unknown key \"{}\" in {}", printable(key, 64), with_article(info_.name)),
                      suggest(key, known));
  }
  for (size_t i = 0; i < info_.keys.size(); ++i) {
    const KeyInfo& key = info_.keys[i];
    const auto found = j.find(key.name);
    if (found != j.end()) {
      ReadContext here = c.at(key.name);
      here.range = key.range;
      size_t index = 0;
      if (key.name == info_.tag && !read_choice(index, *found, here, key.type.choices)) continue;
      members_[i].ops->read(static_cast<char*>(object) + members_[i].offset, *found, here);
      if (!applies(info_, key, j))
        here.fault(fmt::format("\"{}\" is no key of {} \"{}\"", key.name, info_.tag, tag_of(info_, j)),
                   "it belongs to " + one_of(key.only));
    } else if (key.required && applies(info_, key, j)) {
      c.fault(fmt::format("missing key \"{}\" ({})", key.name, key.meaning), "type: " + key.type.name());
    }
  }
}

std::string json_text(bool v) {
  return v ? "true" : "false";
}
std::string json_text(long long v) {
  return std::to_string(v);
}
std::string json_text(double v) {
  return std::isfinite(v) ? json(v).dump() : "";
}
std::string json_text(const std::string& v) {
  return json(v).dump();
}

}  // namespace detail

namespace {

json schema_of(const TypeInfo& type, const Range& range, json& definitions);

json schema_of(const ObjectInfo& info, json& definitions) {
  json s = {{"type", "object"}, {"description", info.meaning}, {"additionalProperties", false}};
  json required = json::array();
  for (const KeyInfo& key : info.keys) {
    json property = schema_of(key.type, key.range, definitions);
    property["description"] = key.meaning;
    if (!key.default_text.empty()) property["default"] = json::parse(key.default_text);
    s["properties"][key.name] = std::move(property);
    // A file named by "use" may bring a required key, so "required" holds only without it.
    if (key.required) required.push_back(key.name);
  }
  s["properties"]["use"] = {{"type", "string"}, {"description", "a file whose values stand here unless overridden"}};
  if (!required.empty()) {
    s["if"] = {{"not", {{"required", {"use"}}}}};
    s["then"] = {{"required", required}};
  }
  return s;
}

json schema_of(const TypeInfo& type, const Range& range, json& definitions) {
  using Kind = TypeInfo::Kind;
  switch (type.kind) {
    case Kind::boolean:
      return {{"type", "boolean"}};
    case Kind::integer:
    case Kind::number: {
      json s = {{"type", type.kind == Kind::integer ? "integer" : "number"}};
      if (std::isfinite(range.low)) s[range.above_low ? "exclusiveMinimum" : "minimum"] = range.low;
      if (std::isfinite(range.high)) s["maximum"] = range.high;
      return s;
    }
    case Kind::text: {
      json s = {{"type", "string"}};
      if (!type.choices.empty()) s["examples"] = type.choices;
      return s;
    }
    case Kind::quantity:
      return {{"type", "string"},
              {"pattern", "^ *-?[0-9.]+([eE][-+]?[0-9]+)? *[A-Za-z]+( */ *[A-Za-z]+)? *$"},
              {"examples", {std::string(type.dimension->example)}}};
    case Kind::choice:
      return {{"enum", type.choices}};
    case Kind::object: {
      if (!definitions.contains(type.object->name)) {
        definitions[type.object->name] = json::object();  // a recursive kind finds itself
        definitions[type.object->name] = schema_of(*type.object, definitions);
      }
      return {{"anyOf", {{{"$ref", "#/definitions/" + type.object->name}}, {{"type", "string"}}}}};
    }
    case Kind::array:
      return {{"type", "array"}, {"items", schema_of(*type.element, range, definitions)}};
    case Kind::map:
      return {{"type", "object"}, {"additionalProperties", schema_of(*type.element, range, definitions)}};
    case Kind::any:
      break;
  }
  return json::object();
}

}  // namespace

std::string schema_text(const ObjectInfo& info) {
  json definitions = json::object();
  json s = schema_of(info, definitions);
  s["$schema"] = "http://json-schema.org/draft-07/schema#";
  s["title"] = info.name;
  if (!definitions.empty()) s["definitions"] = std::move(definitions);
  return s.dump(2) + "\n";
}

}  // namespace tw
