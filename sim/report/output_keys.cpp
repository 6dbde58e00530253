#include "report/output_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "study/hall_study.hpp"
#include "study/result.hpp"

namespace tw::report {
namespace {

// "[]" for every index: "jobs[3].name", "jobs.3.name" -> "jobs[].name".
std::string without_indices(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '[') {
      out += "[]";
      while (i < path.size() && path[i] != ']') ++i;
      continue;
    }
    size_t digits = i + 1;
    while (path[i] == '.' && digits < path.size() && std::isdigit(static_cast<unsigned char>(path[digits])) != 0)
      ++digits;
    if (digits > i + 1 && (digits == path.size() || path[digits] == '.')) {
      out += "[]";
      i = digits - 1;
      continue;
    }
    out += path[i];
  }
  return out;
}

std::string part_of(const std::string& path) {
  const size_t end = path.find_first_of(".[");
  return end == std::string::npos ? "The result" : path.substr(0, end);
}

bool stands_for(std::string_view pattern, const std::string& path) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == path;
  // A map is the last part of its path.
  return path.size() > star && path.compare(0, star, pattern.substr(0, star)) == 0;
}

}  // namespace

const std::vector<OutputKey>& output_keys() {
  // Some parts of a result are described by several structs: their keys stand together.
  static const auto grouped = [] {
    std::vector<OutputKey> keys = outputs<Result>().keys();
    std::map<std::string, size_t> parts;
    const auto part = [&](const OutputKey& key) {
      return parts.emplace(part_of(key.path), parts.size()).first->second;
    };
    for (const OutputKey& key : keys) part(key);
    std::stable_sort(keys.begin(), keys.end(),
                     [&](const OutputKey& a, const OutputKey& b) { return part(a) < part(b); });
    return keys;
  }();
  return grouped;
}

const OutputKey* find_output_key(const std::string& path) {
  const std::string plain_path = without_indices(path);
  for (const OutputKey& key : output_keys())
    if (stands_for(key.path, plain_path)) return &key;
  static const std::vector<OutputKey> of_halls = outputs<HallAnswer>().keys();  // for their studies
  for (const OutputKey& key : of_halls)
    if (stands_for(key.path, plain_path)) return &key;
  return nullptr;
}

std::string key_words(const std::string& path) {
  const OutputKey* const key = find_output_key(path);
  return key != nullptr && !key->meaning.empty() ? key->meaning : quantity_words(path.substr(path.rfind('.') + 1));
}

std::string unit_of(const std::string& path) {
  const OutputKey* key = find_output_key(path);
  if (key == nullptr || key->path != "cost.*") return key == nullptr ? "" : key->unit;
  std::string currency = path.substr(path.rfind('_') + 1);
  for (char& c : currency) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return currency;
}

bool more_is_better(const std::string& path) {
  return path.find("per_s") != std::string::npos || path == "step.mfu" || path.find("headroom") != std::string::npos ||
         path == "utilisation" || path == "goodput" || path == "finished";
}

std::string outputs_markdown() {
  std::string out =
      "# Outputs: every key of the result JSON\n\n"
      "Made by `trainwatt schema --markdown docs/reference`; a test holds it against the program.\n\n"
      "`trainwatt run SCENARIO... --json FILE` writes an array, an object for each scenario in the order of the\n"
      "arguments. Values are in SI units; a key that does not apply is null. Keys are added, never renamed. "
      "`sweep.csv`\n"
      "has the same keys as its columns, joined by dots. `[]` stands for each element of a list, `*` for each key of "
      "a\n"
      "map.\n";
  std::string part;
  for (const OutputKey& key : output_keys()) {
    const std::string here = part_of(key.path);
    if (here != part) {
      part = here;
      out += fmt::format("\n## {}\n\n| key | unit | meaning |\n|---|---|---|\n", part);
    }
    out += fmt::format("| `{}` | {} | {} |\n", key.path, key.unit, key.meaning);
  }
  out += "\n## hall.json\n\nOf `trainwatt hall`.\n\n| key | unit | meaning |\n|---|---|---|\n";
  for (const OutputKey& key : outputs<HallAnswer>().keys())
    out += fmt::format("| `{}` | {} | {} |\n", key.path, key.unit, key.meaning);
  return out;
}

}  // namespace tw::report
