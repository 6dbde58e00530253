// Values of a study's inputs: lists, ranges with units, and conditions on them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"

namespace tw {

// A value of any kind, as the JSON text that an override takes.
struct StudyValue {
  std::string text;
};
template <>
struct Codec<StudyValue> {
  static TypeInfo type() { return {TypeInfo::Kind::any, nullptr, {}, nullptr, nullptr}; }
  static void read(StudyValue& out, const nlohmann::json& j, const ReadContext& c);
  static std::string default_text(const StudyValue&) { return ""; }
};

// Numbers or quantities from one end to the other, both included where a step reaches them.
struct StudyRange {
  StudyValue from, to, step;
  std::optional<int> count;
  std::optional<double> factor;
  bool log = false;
  static void describe(Description<StudyRange>& d);
};

// One column: values as they are listed, or a range.
struct StudyColumn {
  std::vector<StudyValue> values;
  std::optional<StudyRange> range;
};
template <>
struct Codec<StudyColumn> {
  static TypeInfo type() { return {TypeInfo::Kind::any, nullptr, {}, nullptr, nullptr}; }
  static void read(StudyColumn& out, const nlohmann::json& j, const ReadContext& c);
  static std::string default_text(const StudyColumn&) { return ""; }
};

// The values of a range for an input of this type, as JSON texts. Faults go to `at`.
std::vector<std::string> range_values(const StudyRange& range, const TypeInfo& type, const ReadContext& at);

// Adds a fault when a JSON text is no value of this type: wrong dimension, no unit, an unknown choice, text for a
// number. Ranges of numbers and what belongs together are for the scenario to check.
void check_value(const std::string& json_text, const TypeInfo& type, const ReadContext& at);

// A cell of a CSV as JSON text; empty for an empty cell.
std::string json_of_cell(const std::string& cell, const TypeInfo& type);

// The value of an input as a reader writes it: without the quotes of JSON.
std::string plain_value(const std::string& json_text);

// "/plan/tp * /plan/pp <= 16"
struct StudyCondition {
  struct Factor {
    std::string pointer;  // or, when empty, the number
    double number = 1;
    bool divides = false;
  };
  std::string text, comparison;
  std::vector<Factor> left, right;
};

// Words are separated by blanks. A fault goes to `at` when it is no comparison or names an input that does not change.
std::optional<StudyCondition> parse_condition(const std::string& text,
                                              const std::map<std::string, const TypeInfo*>& known,
                                              const ReadContext& at);

// Whether the values (JSON texts by pointer) meet it. Texts that are no number are only equal or not.
bool meets(const StudyCondition& condition, const std::map<std::string, std::string>& values,
           const std::map<std::string, const TypeInfo*>& types);

}  // namespace tw
