#include "cli/wrong_kind.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/files.hpp"
#include "core/text.hpp"
#include "report/schemas.hpp"

namespace tw::cli {
namespace {

constexpr size_t kFewestUnknown = 2;  // keys; a single one is a slip of the pen

// Kinds that know every key that stands in the file.
std::vector<std::string> kinds_of(const std::string& file) {
  const auto path = find_input_file(file, "");
  if (!path) return {};
  const auto json = nlohmann::json::parse(read_file(*path), nullptr, false, true);
  if (!json.is_object()) return {};
  std::vector<std::string> names;
  for (const auto& [name, info] : report::input_kinds()) {
    std::set<std::string> known{"use"};
    for (const KeyInfo& key : info->keys) known.insert(key.name);
    bool all = true;
    for (const auto& [key, value] : json.items()) all = all && known.count(key) > 0;
    if (all) names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<Fault> told_by_kind(const std::vector<Fault>& faults) {
  std::map<std::string, std::set<std::string>> unknown;  // file -> places
  std::map<std::string, std::string> due;
  for (const Fault& f : faults) {
    const size_t in = f.what.rfind("\" in ");
    if (f.what.rfind("unknown key \"", 0) != 0 || in == std::string::npos || f.place.rfind('/') != 0) continue;
    unknown[f.file].insert(f.place);
    due[f.file] = f.what.substr(in + 5);
  }
  std::map<std::string, std::string> others;  // file -> what it is
  for (const auto& [file, places] : unknown)
    if (places.size() >= kFewestUnknown)
      if (const auto kinds = kinds_of(file); !kinds.empty()) others[file] = one_of(kinds);
  std::vector<Fault> told;
  std::set<std::string> said;
  for (const Fault& f : faults) {
    const auto other = others.find(f.file);
    if (other == others.end())
      told.push_back(f);
    else if (said.insert(f.file).second)
      told.push_back({f.file, "", fmt::format("all of its keys are those of another kind: {}", other->second),
                      due[f.file] + " is due"});
  }
  return told;
}

}  // namespace tw::cli
