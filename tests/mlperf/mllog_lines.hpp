// Lines of MLPerf logs, for tests that compare them.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace mllog {

// What follows ":::MLLOG " in each line of a log that has it.
inline std::vector<nlohmann::ordered_json> lines_of(const std::string& log) {
  std::vector<nlohmann::ordered_json> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    const size_t at = line.find(":::MLLOG ");
    if (at != std::string::npos) lines.push_back(nlohmann::ordered_json::parse(line.substr(at + 9)));
  }
  return lines;
}

// A line without its figures: keys, event, key, type of the value, keys of the metadata.
inline std::string form(const nlohmann::ordered_json& line) {
  std::string text;
  for (const auto& [key, value] : line.items()) text += key + " ";
  text += line["event_type"].get<std::string>() + " " + line["key"].get<std::string>() + " ";
  text += line["value"].type_name();
  if (line["metadata"].is_object())
    for (const auto& [key, value] : line["metadata"].items()) text += " " + key;
  return text;
}

}  // namespace mllog
