#include "study/study_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/text.hpp"

namespace tw {
namespace {

using nlohmann::json;
using Kind = TypeInfo::Kind;

constexpr size_t kMostValues = 1000000;

json parsed(const std::string& json_text) {
  return json::parse(json_text, nullptr, false);
}

// A number with the unit that it is written in: "400 W" is 400 and " W"; of a plain number the unit is empty.
struct Measure {
  double value = 0;
  std::string unit;
  double factor = 1;  // of the unit, in SI
};

// Adds a fault and returns nothing when the text is no number (or quantity) of the type.
std::optional<Measure> measure(const StudyValue& v, const TypeInfo& type, const ReadContext& at) {
  const size_t before = at.faults->size();
  check_value(v.text, type, at);
  if (at.faults->size() != before) return std::nullopt;
  const json j = parsed(v.text);
  if (j.is_number()) return Measure{j.get<double>(), "", 1};
  if (type.kind != Kind::quantity || !j.is_string()) {
    at.fault(fmt::format("{} is no number", printable(v.text, 60)), "a range needs numbers or quantities");
    return std::nullopt;
  }
  const auto text = j.get<std::string>();
  Measure m;
  const char* end = std::from_chars(text.data(), text.data() + text.size(), m.value).ptr;
  m.unit = std::string(end);
  m.factor = parse_quantity("1" + m.unit, *type.dimension).value;
  return m;
}

std::string number_text(double v) {
  return fmt::format("{:.12g}", v);  // 0.1 * 3 is 0.3
}

// The value of a pointer or number in SI; nothing for texts.
std::optional<double> si_value(const std::string& json_text, const TypeInfo* type) {
  const json j = parsed(json_text);
  if (j.is_number()) return j.get<double>();
  if (j.is_boolean()) return j.get<bool>() ? 1 : 0;
  if (!j.is_string() || type == nullptr || type->kind != Kind::quantity) return std::nullopt;
  const ParsedQuantity q = parse_quantity(j.get<std::string>(), *type->dimension);
  return q.problem.empty() ? std::optional(q.value) : std::nullopt;
}

std::optional<double> product(const std::vector<StudyCondition::Factor>& factors,
                              const std::map<std::string, std::string>& values,
                              const std::map<std::string, const TypeInfo*>& types) {
  double out = 1;
  for (const auto& f : factors) {
    std::optional<double> v = f.number;
    if (!f.pointer.empty()) {
      const auto at = values.find(f.pointer);
      const auto type = types.find(f.pointer);
      v = at == values.end() ? std::nullopt : si_value(at->second, type == types.end() ? nullptr : type->second);
    }
    if (!v) return std::nullopt;
    out = f.divides ? out / *v : out * *v;
  }
  return out;
}

std::string text_of(const std::vector<StudyCondition::Factor>& factors,
                    const std::map<std::string, std::string>& values) {
  if (factors.size() != 1) return "";
  if (factors.front().pointer.empty()) return number_text(factors.front().number);
  const auto at = values.find(factors.front().pointer);
  return at == values.end() ? "" : plain_value(at->second);
}

}  // namespace

void Codec<StudyValue>::read(StudyValue& out, const json& j, const ReadContext&) {
  out.text = j.dump();
}

void Codec<StudyColumn>::read(StudyColumn& out, const json& j, const ReadContext& c) {
  if (j.is_array()) return Codec<std::vector<StudyValue>>::read(out.values, j, c);
  if (j.is_object()) return Codec<std::optional<StudyRange>>::read(out.range, j, c);
  c.fault("is neither a list of values nor a range", R"([8, 16] or {"from": "400 W", "to": "700 W", "step": "50 W"})");
}

std::string plain_value(const std::string& json_text) {
  if (json_text.size() < 2 || json_text.front() != '"') return json_text;
  return json::parse(json_text).get<std::string>();
}

std::vector<std::string> range_values(const StudyRange& r, const TypeInfo& type, const ReadContext& at) {
  std::vector<std::string> out;
  const size_t before = at.faults->size();
  const int ways = (r.step.text.empty() ? 0 : 1) + (r.count ? 1 : 0) + (r.factor ? 1 : 0);
  if (ways != 1)
    at.fault(ways == 0 ? "how far apart?" : "more than one of step, count and factor", "one of step, count or factor");
  if (r.log && !r.count) at.at("log").fault("needs count", "count, or factor in place of both");
  const auto from = measure(r.from, type, at.at("from")), to = measure(r.to, type, at.at("to"));
  const auto step = r.step.text.empty() ? std::nullopt : measure(r.step, type, at.at("step"));
  if (at.faults->size() != before || !from || !to || (!r.step.text.empty() && !step)) return out;
  const double first = from->value, last = to->value * to->factor / from->factor;
  std::vector<double> numbers;
  if (r.factor || r.log) {
    if (!(first > 0) || !(last > 0)) {
      at.fault("a geometric range needs both ends above 0", "step or count without log");
      return out;
    }
    const double ratio =
        r.factor ? (last >= first ? *r.factor : 1 / *r.factor) : std::pow(last / first, 1.0 / (*r.count - 1));
    const double steps =
        r.factor ? std::floor(std::log(last / first) / std::log(ratio) * (1 + 1e-12) + 1e-9) : *r.count - 1;
    for (double k = 0; k <= steps && numbers.size() <= kMostValues; ++k) numbers.push_back(first * std::pow(ratio, k));
  } else {
    const double width = step ? step->value * step->factor / from->factor : std::abs(last - first) / (*r.count - 1);
    if (!(width > 0) && first != last) {
      at.at("step").fault("has to be above 0", "");
      return out;
    }
    const double steps = first == last ? 0 : std::floor(std::abs(last - first) / width * (1 + 1e-12) + 1e-9);
    for (double k = 0; k <= steps && numbers.size() <= kMostValues; ++k)
      numbers.push_back(first + (last < first ? -k : k) * width);
  }
  if (numbers.size() > kMostValues) {
    at.fault("more than a million values", "a larger step");
    return out;
  }
  for (const double v : numbers) {
    std::string text = number_text(v);
    if (type.kind == Kind::integer) {
      // A logarithmic spacing seldom meets whole numbers.
      const double whole = std::round(v);
      if (std::abs(v - whole) > 1e-9 * std::max(1.0, std::abs(v)) && !r.log) {
        at.fault(fmt::format("{} is no whole number", text), "a step that gives whole numbers");
        return out;
      }
      text = fmt::format("{:.0f}", whole);
    } else if (type.kind == Kind::quantity) {
      text = json(text + from->unit).dump();
    }
    if (out.empty() || out.back() != text) out.push_back(text);
  }
  return out;
}

void check_value(const std::string& json_text, const TypeInfo& type, const ReadContext& at) {
  const json j = parsed(json_text);
  if (j.is_null()) return;  // takes the key away
  const std::string shown = printable(json_text, 60);
  switch (type.kind) {
    case Kind::quantity: {
      const ParsedQuantity q = parse_quantity(j.is_string() ? j.get<std::string>() : json_text, *type.dimension);
      if (!q.problem.empty()) at.fault(q.problem);
      return;
    }
    case Kind::integer:
      if (!j.is_number() || j.get<double>() != std::floor(j.get<double>()))
        at.fault(fmt::format("{} is no whole number", shown), "");
      return;
    case Kind::number:
      if (!j.is_number()) at.fault(fmt::format("{} is no number", shown), "");
      return;
    case Kind::boolean:
      if (!j.is_boolean()) at.fault(fmt::format("{} is neither true nor false", shown), "");
      return;
    case Kind::text:
      if (!j.is_string()) at.fault(fmt::format("{} is no text", shown), "");
      return;
    case Kind::choice:
      if (!j.is_string() ||
          std::find(type.choices.begin(), type.choices.end(), j.get<std::string>()) == type.choices.end())
        at.fault(fmt::format("unknown choice {}", shown), "allowed: " + one_of(type.choices));
      return;
    case Kind::object:
      if (!j.is_string() && !j.is_object())
        at.fault(fmt::format("{} is no {}", shown, type.object->name), "an object or a file name");
      return;
    case Kind::array:
      if (!j.is_array()) at.fault(fmt::format("{} is no list", shown), "");
      return;
    case Kind::map:
      if (!j.is_object()) at.fault(fmt::format("{} is no object", shown), "");
      return;
    case Kind::any:
      return;
  }
}

std::string json_of_cell(const std::string& cell, const TypeInfo& type) {
  if (cell.empty()) return "";
  const bool literal = type.kind == Kind::text || type.kind == Kind::quantity || type.kind == Kind::choice;
  if (!literal) {
    const json j = parsed(cell);
    if (!j.is_discarded()) return j.dump();
  }
  return json(cell).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<StudyCondition> parse_condition(const std::string& text,
                                              const std::map<std::string, const TypeInfo*>& known,
                                              const ReadContext& at) {
  static const std::vector<std::string> comparisons{"<=", ">=", "<", ">", "==", "!="};
  const auto refuse = [&](const std::string& what, const std::string& allowed) {
    at.fault(what, allowed);
    return std::nullopt;
  };
  StudyCondition c;
  c.text = text;
  std::vector<StudyCondition::Factor>* side = &c.left;
  bool factor_due = true, divides = false;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const bool comparison = std::find(comparisons.begin(), comparisons.end(), word) != comparisons.end();
    if (factor_due) {
      StudyCondition::Factor f;
      f.divides = std::exchange(divides, false);
      const char* end = word.data() + word.size();
      if (word.front() == '/' && word.size() > 1) {
        f.pointer = word;
        if (known.count(word) == 0) {
          std::vector<std::string> names;
          for (const auto& entry : known) names.push_back(entry.first);
          return refuse(fmt::format("{} does not change in this study", printable(word, 60)), suggest(word, names));
        }
      } else if (std::from_chars(word.data(), end, f.number).ptr != end) {
        return refuse(fmt::format("\"{}\" is neither a pointer nor a number", printable(word, 60)),
                      "such as \"/plan/tp * /plan/pp <= 16\", with blanks between the words");
      }
      side->push_back(f);
      factor_due = false;
    } else if (word == "*" || word == "/") {
      divides = word == "/";
      factor_due = true;
    } else if (comparison && c.comparison.empty()) {
      c.comparison = word;
      side = &c.right;
      factor_due = true;
    } else {
      return refuse(fmt::format("\"{}\" is not expected here", printable(word, 60)),
                    "*, / or one comparison: " + one_of(comparisons));
    }
  }
  if (c.comparison.empty() || factor_due) return refuse("is no comparison", "such as \"/plan/tp * /plan/pp <= 16\"");
  return c;
}

bool meets(const StudyCondition& c, const std::map<std::string, std::string>& values,
           const std::map<std::string, const TypeInfo*>& types) {
  const auto left = product(c.left, values, types), right = product(c.right, values, types);
  if (!left || !right) {
    const bool equal = text_of(c.left, values) == text_of(c.right, values);
    return c.comparison == "!=" ? !equal : c.comparison != "==" || equal;  // an order of texts leaves nothing out
  }
  if (c.comparison == "<=") return *left <= *right;
  if (c.comparison == ">=") return *left >= *right;
  if (c.comparison == "<") return *left < *right;
  if (c.comparison == ">") return *left > *right;
  return (*left == *right) == (c.comparison == "==");
}

void StudyRange::describe(Description<StudyRange>& d) {
  d.object("study_range", "Evenly spaced values of an input.");
  d.required("from", &StudyRange::from,
             "first value, a number or a quantity such as \"400 W\"; its unit is that of all");
  d.required("to", &StudyRange::to, "last value");
  d.optional("step", &StudyRange::step, "distance of the values; or");
  d.optional("count", &StudyRange::count, "how many values; or", between(2, 1e6));
  d.optional("factor", &StudyRange::factor, "each value is this many times the one before", above(1));
  d.optional("log", &StudyRange::log, "with count: evenly spaced in the logarithm");
}

}  // namespace tw
