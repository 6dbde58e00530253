#include "study/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/strict_json.hpp"

namespace tw {
namespace {

using json = nlohmann::ordered_json;

void flatten(const json& j, const std::string& path, FlatValues& out) {
  if (j.is_object() && !j.empty()) {
    for (const auto& [key, value] : j.items()) flatten(value, path.empty() ? key : path + "." + key, out);
  } else if (j.is_array() && !j.empty()) {
    for (size_t i = 0; i < j.size(); ++i) flatten(j[i], fmt::format("{}.{}", path, i), out);
  } else {
    out.emplace_back(path, j.is_string() ? j.get<std::string>() : j.dump());
  }
}

std::optional<double> number_of(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::nullopt;
  char* end = nullptr;
  const double v = std::strtod(text->c_str(), &end);
  return *end == '\0' && std::isfinite(v) ? std::optional(v) : std::nullopt;
}

bool same(const std::optional<std::string>& a, const std::optional<std::string>& b, double tolerance) {
  if (a == b) return true;
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) return false;
  // What is left of parts that cancel is no quantity: a nanosecond, a nanowatt.
  constexpr double nothing = 1e-9;
  return std::abs(*x - *y) <= std::max(tolerance * std::max(std::abs(*x), std::abs(*y)),
                                       std::max(std::abs(*x), std::abs(*y)) < nothing ? nothing : 0.0);
}

// What of a result says how it was made.
bool is_input(const std::string& key) {
  return key == "plan" || key == "seed" || key == "inputs_sha256" || key == "trainwatt";
}

bool is_result(const json& j) {
  return j.is_object() && j.contains("scenario") && j["scenario"].is_string();
}

Comparand of_result(const json& result) {
  Comparand c;
  c.name = result.value("scenario", "");
  for (const auto& [key, value] : result.items()) {
    if (key == "scenario" || key == "reference") continue;
    json shown = value;
    if (key == "power" && shown.is_object()) shown.erase("per_node");  // a line for every node tells nobody anything
    flatten(shown, key, is_input(key) ? c.inputs : c.outputs);
  }
  return c;
}

}  // namespace

FlatValues flat_json(const std::string& json_text) {
  FlatValues out;
  flatten(json::parse(json_text), "", out);
  return out;
}

std::optional<std::vector<Comparand>> comparands_of_results(const std::string& text, const std::string& file,
                                                            Faults& faults) {
  Faults unread;  // told by whoever reads it as a scenario
  if (!parse_strict_json(text, file, unread)) return std::nullopt;
  const json all = json::parse(text, nullptr, false, true);
  const bool single = all.is_object() && all.contains("trainwatt");
  if (!all.is_array() && !single) return std::nullopt;
  std::vector<Comparand> list;
  if (single) {
    if (is_result(all))
      list.push_back(of_result(all));
    else
      faults.add({file, "", "is no result of a run", "what run --json writes"});
    return list;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_result(all[i])) {
      faults.add({file, fmt::format("/{}", i), "is no result of a run", "what run --json writes"});
      continue;
    }
    list.push_back(of_result(all[i]));
  }
  if (all.empty()) faults.add({file, "", "holds no result", "what run --json writes"});
  return list;
}

Comparand comparand_of(const std::string& name, const std::string& inputs, const std::string& result) {
  json parsed = json::parse(result);
  Comparand c = of_result(parsed.is_array() ? parsed.front() : parsed);
  c.name = name;
  if (inputs.empty()) return c;
  json shown = json::parse(inputs);
  for (const char* label : {"name", "description", "reference"}) shown.erase(label);  // they change no answer
  c.inputs = flat_json(shown.dump());
  return c;
}

std::vector<Difference> differences(const std::vector<FlatValues>& all, double tolerance) {
  std::vector<std::map<std::string, std::string>> by_path;
  std::vector<std::string> order;
  std::set<std::string> known;
  for (const FlatValues& values : all) {
    by_path.emplace_back(values.begin(), values.end());
    for (const auto& [path, text] : values)
      if (known.insert(path).second) order.push_back(path);
  }
  std::vector<Difference> out;
  for (const std::string& path : order) {
    Difference d;
    d.path = path;
    for (const auto& values : by_path) {
      const auto at = values.find(path);
      d.values.push_back(at == values.end() ? std::nullopt : std::optional(at->second));
    }
    if (std::all_of(d.values.begin(), d.values.end(),
                    [&](const auto& v) { return same(v, d.values.front(), tolerance); }))
      continue;
    const auto first = number_of(d.values.front());
    for (const auto& text : d.values) {
      const auto other = number_of(text);
      d.changes_pct.push_back(first && other && *first != 0 ? std::optional(100 * (*other / *first - 1))
                                                            : std::nullopt);
    }
    out.push_back(std::move(d));
  }
  return out;
}

namespace {

std::optional<double> output(const Comparand& c, const std::string& path) {
  for (const auto& [key, text] : c.outputs)
    if (key == path) return number_of(text);
  return std::nullopt;
}

// 95 % of what the mean time of a comparand's runs may be off, over that time.
std::optional<double> time_noise(const Comparand& c, double time_s) {
  constexpr double z95 = 1.959963984540054;
  if (const auto half_width_pct = output(c, "runs.half_width_95_pct")) return *half_width_pct / 100;
  const auto failures = output(c, "run.failures.count");
  if (!failures) return std::nullopt;
  // One run: its number of failures scatters as a Poisson variable, each costs what they cost on average.
  const double lost_s =
      output(c, "run.failures.rework_s").value_or(0) + output(c, "run.failures.restart_s").value_or(0);
  return *failures > 0 ? z95 * lost_s / std::sqrt(*failures) / time_s : 0;
}

}  // namespace

bool TimeDifference::within_noise() const {
  return std::abs(change_pct) < noise_pct;
}

std::optional<TimeDifference> time_difference(const Comparand& first, const Comparand& other) {
  const auto a = output(first, "run.time_to_train_s.mean"), b = output(other, "run.time_to_train_s.mean");
  if (!a || !b || !(*a > 0) || !(*b > 0)) return std::nullopt;
  const auto x = time_noise(first, *a), y = time_noise(other, *b);
  if (!x && !y) return std::nullopt;
  return TimeDifference{100 * (*b / *a - 1), 100 * std::hypot(x.value_or(0), y.value_or(0))};
}

std::vector<StepPart> step_parts(const Comparand& first, const Comparand& other, double& change_s) {
  const std::string key = "step.breakdown_s.";
  std::map<std::string, StepPart> parts;
  double sum_s = 0;
  for (const auto& [comparand, value] : {std::pair{&first, &StepPart::first_s}, std::pair{&other, &StepPart::other_s}})
    for (const auto& [path, text] : comparand->outputs) {
      if (path.compare(0, key.size(), key) != 0) continue;
      StepPart& part = parts[path.substr(key.size())];
      part.name = path.substr(key.size());
      part.*value = number_of(text).value_or(0);
      sum_s += (comparand == &first ? -1 : 1) * part.*value;
    }
  change_s = sum_s;
  std::vector<StepPart> list;
  for (auto& [name, part] : parts)
    if (part.change_s() != 0) list.push_back(std::move(part));
  std::sort(list.begin(), list.end(), [](const StepPart& a, const StepPart& b) {
    return std::abs(a.change_s()) != std::abs(b.change_s()) ? std::abs(a.change_s()) > std::abs(b.change_s())
                                                            : a.name < b.name;
  });
  return list;
}

}  // namespace tw
