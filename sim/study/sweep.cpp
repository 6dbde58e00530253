#include "study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/document.hpp"
#include "core/files.hpp"
#include "network/process.hpp"
#include "study/archive.hpp"

namespace tw {
namespace {

constexpr size_t kMostPoints = 1000000;

// How many values an axis has; 0 where its columns disagree.
size_t length_of(const StudyAxis& axis) {
  size_t length = 0;
  for (const auto& [pointer, values] : axis.set) {
    if (values.empty() || (length != 0 && values.size() != length)) return 0;
    length = values.size();
  }
  return length;
}

void check_study(const Study& study, const ReadContext& root) {
  size_t points = 1;
  std::set<std::string> seen;
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const StudyAxis& axis = study.axes[i];
    const ReadContext at = root.at("axes").at(i).at("set");
    if (axis.set.empty()) at.fault("nothing changes", "at least one pointer with its values");
    size_t length = 0;
    std::string first;
    for (const auto& [pointer, values] : axis.set) {
      if (pointer.empty() || pointer.front() != '/')
        at.at(pointer).fault("is not a JSON pointer", "such as \"/plan/nodes\"");
      if (!seen.insert(pointer).second) at.at(pointer).fault("changes on two axes", "each input on one axis");
      if (values.empty()) at.at(pointer).fault("has no values", "at least one");
      if (length != 0 && values.size() != length)
        at.at(pointer).fault(fmt::format("{} values beside {} of {}", values.size(), length, first),
                             "columns that change together have as many values each");
      if (length == 0) length = values.size(), first = pointer;
    }
    points *= std::max<size_t>(1, length);
    if (points > kMostPoints) {
      root.at("axes").fault("more than a million points", "fewer values, or several studies");
      return;
    }
  }
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const StudyFigure& figure = study.figures[i];
    const ReadContext at = root.at("figures").at(i);
    for (const auto& [key, pointer] : {std::pair{"x", figure.x}, std::pair{"series", figure.series}}) {
      // The front of two outputs has an output along its horizontal axis.
      const bool output = figure.kind == FigureKind::pareto && std::string(key) == "x";
      if (!pointer.empty() && seen.count(pointer) == 0 && !output)
        at.at(key).fault(fmt::format("{} does not change in this study", pointer), "a pointer of one of the axes");
    }
    if (figure.kind == FigureKind::heatmap && figure.series.empty())
      at.fault("a heat map needs \"series\", the input along its vertical axis", "a pointer of one of the axes");
  }
}

}  // namespace

void Codec<StudyValue>::read(StudyValue& out, const nlohmann::json& j, const ReadContext&) {
  out.text = j.dump();
}

std::string plain_value(const std::string& json_text) {
  if (json_text.size() < 2 || json_text.front() != '"') return json_text;
  return nlohmann::json::parse(json_text).get<std::string>();
}

std::vector<StudyPoint> points_of(const Study& study) {
  std::vector<StudyPoint> points{{}};
  for (const StudyAxis& axis : study.axes) {
    const size_t length = length_of(axis);
    std::vector<StudyPoint> more;
    for (const StudyPoint& point : points)
      for (size_t i = 0; i < length; ++i) {
        StudyPoint next = point;
        for (const auto& [pointer, values] : axis.set) next.values[pointer] = values[i].text;
        more.push_back(std::move(next));
      }
    points = std::move(more);
  }
  return points;
}

LoadedStudy load_study(const std::string& file, const std::vector<std::string>& overrides, Faults& faults) {
  LoadedStudy loaded;
  loaded.file = file;
  Faults mine;
  const Document document = Document::load(file, description<Study>().info(), overrides, mine);
  loaded.study = read<Study>(document, mine);
  const ReadContext root{&document, "", &mine, {}};
  if (document.complete() && mine.empty()) check_study(loaded.study, root);
  if (document.complete() && mine.empty()) {
    const auto found = find_input_file(loaded.study.scenario, document.origin("/scenario").file);
    if (found)
      loaded.scenario_file = *found;
    else
      root.at("scenario")
          .fault(fmt::format("there is no file \"{}\"", loaded.study.scenario), suggest_file(loaded.study.scenario));
  }
  // The scenario without any change has to be right; a point that is not becomes a row with its error.
  if (!loaded.scenario_file.empty()) load_scenario(loaded.scenario_file, loaded.study.set, mine);
  for (const Fault& fault : mine.list()) faults.add(fault);
  return loaded;
}

std::vector<Outcome> run_study(const LoadedStudy& loaded, const std::vector<StudyPoint>& points, int jobs,
                               double deadline_s, const std::function<void(size_t, size_t)>& progress) {
  ChildOptions children;
  children.jobs = jobs;
  children.deadline_s = deadline_s;
  children.progress = progress;
  const Study& study = loaded.study;
  const auto answers = in_children(
      points.size(),
      [&](size_t i) {
        std::vector<std::string> set = study.set;
        for (const auto& [pointer, value] : points[i].values) set.push_back(pointer + "=" + value);
        Faults faults;
        const LoadedScenario scenario = load_scenario(loaded.scenario_file, set, faults);
        faults.throw_if_any();
        return to_bytes(simulate(scenario, {study.seed, study.runs, study.level}));
      },
      children);
  std::vector<Outcome> outcomes;
  for (const ChildResult& answer : answers) {
    Outcome o;
    if (answer.error.empty()) {
      o.result = from_bytes(answer.value);
      o.result.timeline = {};  // points are many
      o.result.series = {};
    } else {
      o.result.scenario = study.name;
      o.result.error = answer.error;
      o.exit_code = static_cast<int>(answer.code);
    }
    outcomes.push_back(std::move(o));
  }
  return outcomes;
}

}  // namespace tw
