#include "report/inputs_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/files.hpp"
#include "report/study_figures.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

json head(const Reproduction& how) {
  std::vector<std::string> words;
  for (const std::string& word : how.command) words.push_back(portable_path(word));
  return {{"trainwatt", TW_VERSION},
          {"command", command_text(words)},
          {"seed", how.seed},
          {"runs", how.runs},
          {"level", how.level}};
}

json scenario_json(const LoadedScenario& s) {
  json values = json::array();
  for (const InputValue& v : input_values(s.explain))
    values.push_back({{"pointer", v.pointer}, {"value", v.value}, {"origin", portable_path(v.origin)}});
  return {{"scenario", s.scenario.name},
          {"description", s.scenario.description},
          {"file", portable_path(s.file)},
          {"inputs_sha256", s.sha256},
          {"values", values}};
}

std::string written(const json& j) {
  return j.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<InputValue> input_values(const std::string& explanation) {
  std::vector<InputValue> values;
  std::istringstream lines(explanation);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find(" = "), origin = line.rfind("    (");
    if (equals == std::string::npos || origin == std::string::npos || origin < equals + 3) continue;
    values.push_back({line.substr(0, equals), line.substr(equals + 3, origin - equals - 3),
                      line.substr(origin + 5, line.size() - origin - 6)});
  }
  return values;
}

std::string portable_path(const std::string& path) {
  for (const std::string& folder : data_folders())
    if (!folder.empty() && path.rfind(folder + "/", 0) == 0) return path.substr(folder.size() + 1);
  return path;
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string("-_./=:,+%@").find(c) != std::string::npos;
    });
    if (!text.empty()) text += ' ';
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    text += '\'';
  }
  return text;
}

std::string inputs_json(const Reproduction& how, const std::vector<LoadedScenario>& scenarios) {
  json all = head(how);
  all["scenarios"] = json::array();
  for (const LoadedScenario& s : scenarios) all["scenarios"].push_back(scenario_json(s));
  return written(all);
}

std::string study_inputs_json(const Reproduction& how, const LoadedStudy& loaded,
                              const std::optional<LoadedScenario>& scenario) {
  const Study& study = loaded.study;
  json all = head(how);
  json axes = json::array(), figures = json::array();
  for (const StudyValues& axis : loaded.axes) {
    json columns = json::object();
    for (size_t k = 0; k < axis.pointers.size(); ++k) {
      json texts = json::array();
      for (const auto& row : axis.rows) texts.push_back(plain_value(row[k]));
      columns[axis.pointers[k]] = texts;
    }
    axes.push_back(columns);
  }
  for (size_t k = 0; k < study.figures.size(); ++k)
    figures.push_back({{"stem", figure_stem(study, k)}, {"title", figure_title(study, k)}, {"y", study.figures[k].y}});
  all["study"] = {{"name", study.name},
                  {"description", study.description},
                  {loaded.of_hall() ? "hall" : "scenario", loaded.of_hall() ? study.hall : study.scenario},
                  {"set", study.set},
                  {"axes", axes},
                  {"figures", figures}};
  all["scenarios"] = json::array();
  if (scenario) all["scenarios"].push_back(scenario_json(*scenario));
  return written(all);
}

}  // namespace tw::report
