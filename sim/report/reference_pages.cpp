#include "report/reference_pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/describe.hpp"
#include "report/schemas.hpp"

namespace tw::report {
namespace {

std::string title_of(const std::string& kind) {
  std::string text = kind;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}
// As GitHub and most renderers name headings.
std::string anchor_of(const std::string& kind) {
  std::string text = kind;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string type_text(const TypeInfo& type) {
  using Kind = TypeInfo::Kind;
  switch (type.kind) {
    case Kind::choice: {
      std::string text;
      for (const std::string& choice : type.choices) text += (text.empty() ? "`" : ", `") + choice + "`";
      return text;
    }
    case Kind::object:
      return fmt::format("[{}](#{})", title_of(type.object->name), anchor_of(type.object->name));
    case Kind::array:
      return "list of " + type_text(*type.element);
    case Kind::map:
      return "object of " + type_text(*type.element);
    default:
      return type.name();
  }
}

// Only limits that a declaration sets itself: that inputs are not negative is said once.
std::string range_text(const KeyInfo& key) {
  const Range& r = key.range;
  using Kind = TypeInfo::Kind;
  if (key.type.kind != Kind::integer && key.type.kind != Kind::number) return "";
  std::string text;
  if (std::isfinite(r.low) && (r.low != 0 || r.above_low))
    text = fmt::format("{} {:g}", r.above_low ? "above" : "at least", r.low);
  if (!std::isfinite(r.low)) text = "may be negative";
  if (std::isfinite(r.high)) text += fmt::format("{}at most {:g}", text.empty() ? "" : ", ", r.high);
  return text.empty() ? "" : ", " + text;
}

void kind_section(std::string& out, const ObjectInfo& info) {
  out += fmt::format("\n## {}\n\n{}\n\n| key | type | default | meaning |\n|---|---|---|---|\n", title_of(info.name),
                     info.meaning);
  for (const KeyInfo& key : info.keys) {
    const std::string value = key.required               ? "required"
                              : key.default_text.empty() ? ""
                                                         : fmt::format("`{}`", key.default_text);
    out += fmt::format(
        "| `{}` | {} | {} | {} |\n", key.name, cell(type_text(key.type) + range_text(key)), cell(value),
        cell(key.meaning +
             (key.only.empty() ? "" : " (" + info.tag + " " + fmt::format("{}", fmt::join(key.only, ", ")) + ")")));
  }
}

}  // namespace

std::string inputs_markdown() {
  std::string out =
      "# Inputs: every key\n\n"
      "Made by `trainwatt schema --markdown docs/reference` from the declarations that the reader itself uses; a test\n"
      "holds it against the program.\n\n"
      "Inputs are JSON with // comments. A quantity is a text with its unit; numbers and quantities are not negative\n"
      "unless their key says so. Where an object is due, a file name may stand instead, or an object whose key `use`\n"
      "names a file whose values it overrides.\n";
  const auto kinds = input_kinds();
  std::vector<std::string> order{"scenario", "plan",    "training", "run", "study",
                                 "cluster",  "network", "software", "site"};
  for (const auto& [name, info] : kinds)
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  out += "\n";
  for (const std::string& name : order)
    if (const auto at = kinds.find(name); at != kinds.end())
      out += fmt::format("- [{}](#{}): {}\n", title_of(name), anchor_of(name), at->second->meaning);
  for (const std::string& name : order)
    if (const auto at = kinds.find(name); at != kinds.end()) kind_section(out, *at->second);
  return out;
}

namespace {

// The choices of a type, or of the elements of a list.
const std::vector<std::string>* choices_of(const TypeInfo& type) {
  if (!type.choices.empty()) return &type.choices;
  if (type.kind == TypeInfo::Kind::array && type.element) return choices_of(*type.element);
  return nullptr;
}

}  // namespace

std::string choices_markdown() {
  std::string out =
      "# Every kind and choice\n\n"
      "Made by `trainwatt schema --markdown docs/reference`; a test holds it against the program.\n\n"
      "Kinds of input, each with a JSON Schema in `schemas/`, and the keys that take one of several words.\n\n"
      "## Kinds of input\n\n| kind | meaning |\n|---|---|\n";
  const auto kinds = input_kinds();
  for (const auto& [name, info] : kinds)
    out += fmt::format("| [{}](inputs.md#{}) | {} |\n", title_of(name), anchor_of(name), cell(info->meaning));
  out += "\n## Choices\n\n| kind | key | one of | meaning |\n|---|---|---|---|\n";
  for (const auto& [name, info] : kinds)
    for (const KeyInfo& key : info->keys)
      if (const auto* choices = choices_of(key.type))
        out += fmt::format("| {} | `{}` | `{}` | {} |\n", title_of(name), key.name, fmt::join(*choices, "`, `"),
                           cell(key.meaning));
  return out;
}

}  // namespace tw::report
