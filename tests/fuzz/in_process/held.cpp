#include "held.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/error.hpp"
#include "study/check_result.hpp"

namespace tw::fuzz {
namespace {

using nlohmann::json;
constexpr double kRounding = 1e-9, kMost = 1e40;

bool ends(const std::string& text, const std::string& with) {
  return text.size() >= with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
}

// Differences, and what can run backwards: a fall of power, a battery that ends emptier, a carbon credit, a price.
bool may_be_negative(const std::vector<std::string>& path) {
  for (const char* key : {"largest_step_w", "stored_j", "first_step_overhead_s", "first_gap_s", "headroom_w",
                          "spare_headroom_w", "shelf_headroom", "down_w_per_s", "up_w_per_s"})
    if (path.back() == key) return true;
  for (const std::string& part : path)
    for (const char* block : {"grid", "differences", "interval", "ramps", "carbon", "cost"})
      if (part == block) return true;
  for (const char* unit : {"_s", "_j", "_bytes", "_per_s", "_w", "_w_per_node"})
    if (ends(path.back(), unit)) return false;
  if (path.size() > 1)
    for (const char* unit : {"_s", "_j", "_bytes"})
      if (ends(path[path.size() - 2], unit)) return false;
  return true;
}

std::string text_of(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& part : path) text += "/" + part;
  return text;
}

Wrong numbers_hold(const json& node, std::vector<std::string>& path) {
  if (node.is_number()) {
    const double value = node.get<double>();
    if (!std::isfinite(value)) return {{"not finite", text_of(path)}};
    if (std::abs(value) > kMost) return {{"beyond all measure", fmt::format("{} = {:g}", text_of(path), value)}};
    if (value < -kRounding && !path.empty() && !may_be_negative(path))
      return {{"negative", fmt::format("{} = {:g}", text_of(path), value)}};
    return std::nullopt;
  }
  if (!node.is_structured()) return std::nullopt;
  for (const auto& [key, value] : node.items()) {
    path.push_back(key);
    if (Wrong wrong = numbers_hold(value, path)) return wrong;
    path.pop_back();
  }
  return std::nullopt;
}

std::optional<double> at(const json& r, const std::string& pointer) {
  const json::json_pointer place(pointer);
  return r.contains(place) && r[place].is_number() ? std::optional(r[place].get<double>()) : std::nullopt;
}

Wrong parts(const json& r) {
  const auto ordered = [&](const std::string& low, const std::string& high) -> Wrong {
    const auto a = at(r, low), b = at(r, high);
    if (a && b && *a > *b * (1 + kRounding) + kRounding)
      return {{"order", fmt::format("{} = {:.12g} > {} = {:.12g}", low, *a, high, *b)}};
    return std::nullopt;
  };
  using Pair = std::array<std::string, 2>;
  for (const Pair& pair :
       {Pair{"/power/facility/least_w", "/power/facility/mean_w"},
        Pair{"/power/facility/mean_w", "/power/facility/peak_w"}, Pair{"/power/node_dc_w/min", "/power/node_dc_w/mean"},
        Pair{"/power/node_dc_w/mean", "/power/node_dc_w/max"}, Pair{"/energy/total_dc_j", "/energy/total_ac_j"},
        Pair{"/energy/nodes_dc_j", "/energy/total_dc_j"}})
    if (Wrong wrong = ordered(pair[0], pair[1])) return wrong;
  for (const char* share : {"/utilisation", "/goodput", "/run/goodput", "/step/mfu"})
    if (const auto value = at(r, share); value && *value > 1 + kRounding)
      return {{"share above 1", fmt::format("{} = {:g}", share, *value)}};
  if (const auto error = at(r, "/books_error"); error && std::abs(*error) > 1e-6)
    return {{"books of the hall", fmt::format("{:g}", *error)}};
  return std::nullopt;
}

}  // namespace

Wrong broken_answer(int code, const std::string& out, const std::string& err) {
  const std::string tail = err.size() > 300 ? err.substr(err.size() - 300) : err;
  if (code != 0 && code != 2 && code != 3 && code != 4) return {{fmt::format("exit code {}", code), tail}};
  if (code != 0 && err.find_first_not_of(" \n") == std::string::npos)
    return {{fmt::format("exit code {} without a word", code), ""}};
  if (err.find("CPU time limit exceeded") != std::string::npos) return {{"no answer in time", "in a child"}};
  for (const char* word : {"by signal", "bad_alloc", "std::", "Assertion", "internal error", "vector::", "basic_string",
                           "[json.exception"})
    if (err.find(word) != std::string::npos) return {{fmt::format("\"{}\" in a message", word), tail}};
  if (out.find("nan") == std::string::npos && out.find("inf") == std::string::npos) return std::nullopt;
  std::istringstream words(out);
  for (std::string word; words >> word;) {
    const size_t from = word.find_first_not_of(",;:()"), to = word.find_last_not_of(",;:()");
    if (from == std::string::npos) continue;
    const std::string bare = word.substr(from, to - from + 1);
    if (bare == "nan" || bare == "-nan" || bare == "inf" || bare == "-inf") return {{"nan or inf in a table", bare}};
  }
  return std::nullopt;
}

Wrong impossible(const std::string& text) {
  const json tree = json::parse(text, nullptr, false);
  if (tree.is_discarded()) return {{"no json", text.substr(0, 200)}};
  for (const json& result : tree.is_array() ? tree : json::array({tree})) {
    std::vector<std::string> path;
    if (Wrong wrong = numbers_hold(result, path)) return wrong;
    if (Wrong wrong = parts(result)) return wrong;
  }
  Faults faults;
  if (tree.is_array()) check_results(text, "result", faults);
  if (!faults.empty()) return {{"check refuses a result of run", faults.list().front().text()}};
  return std::nullopt;
}

}  // namespace tw::fuzz
