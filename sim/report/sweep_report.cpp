#include "report/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/csv.hpp"
#include "report/numbers.hpp"
#include "report/result_json.hpp"
#include "report/study_figures.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

void flatten(const json& j, const std::string& path, std::vector<std::pair<std::string, std::string>>& out) {
  if (j.is_object()) {
    for (const auto& [key, value] : j.items()) flatten(value, path.empty() ? key : path + "." + key, out);
  } else if (j.is_number() || j.is_null()) {
    out.emplace_back(path, j.is_null() ? "" : j.dump());
  }
}

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;
  }
  return quoted + "\"";
}

std::vector<std::string> pointers_of(const std::vector<StudyPoint>& points) {
  std::vector<std::string> list;
  if (!points.empty())
    for (const auto& [pointer, value] : points.front().values) list.push_back(pointer);
  return list;
}

std::string last_key(const std::string& pointer) {
  const size_t slash = pointer.rfind('/');
  return slash == std::string::npos ? pointer : pointer.substr(slash + 1);
}

std::string input_text(const StudyPoint& point, const std::string& pointer) {
  const auto at = point.values.find(pointer);
  return at == point.values.end() ? "" : plain_value(at->second);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> flat_result(const Result& result) {
  Outcome o;
  o.result = result;
  std::vector<std::pair<std::string, std::string>> out;
  const json all = json::parse(results_json({o}));
  flatten(all.front(), "", out);
  return out;
}

std::string sweep_csv(const Study&, const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes) {
  const std::vector<std::string> pointers = pointers_of(points);
  // Points may differ in their keys (parts of memory, say): the columns are those of all, in order of appearance.
  std::vector<std::string> columns;
  std::set<std::string> known;
  std::vector<std::map<std::string, std::string>> rows;
  for (const Outcome& o : outcomes) {
    std::map<std::string, std::string> row;
    if (o.result.error.empty())
      for (auto& [name, value] : flat_result(o.result)) {
        if (known.insert(name).second) columns.push_back(name);
        row[name] = std::move(value);
      }
    rows.push_back(std::move(row));
  }
  std::string out = "point";
  for (const std::string& p : pointers) out += "," + cell(p);
  out += ",error";
  for (const std::string& c : columns) out += "," + cell(c);
  out += "\n";
  for (size_t i = 0; i < points.size(); ++i) {
    out += fmt::format("{}", i);
    for (const std::string& p : pointers) out += "," + cell(input_text(points[i], p));
    out += "," + cell(outcomes[i].result.error);
    for (const std::string& c : columns) {
      const auto at = rows[i].find(c);
      out += "," + (at == rows[i].end() ? "" : at->second);
    }
    out += "\n";
  }
  return out;
}

std::string sweep_table(const Study& study, const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes,
                        size_t most) {
  const std::vector<std::string> pointers = pointers_of(points);
  std::string out = fmt::format("{}: {} point{}\n", study.name, count_text(static_cast<double>(points.size())),
                                points.size() == 1 ? "" : "s");
  std::vector<size_t> widths;
  for (const std::string& p : pointers) {
    size_t width = last_key(p).size();
    for (const StudyPoint& point : points) width = std::max(width, input_text(point, p).size());
    widths.push_back(width);
  }
  out += " ";
  for (size_t k = 0; k < pointers.size(); ++k) out += fmt::format(" {:>{}}", last_key(pointers[k]), widths[k]);
  out += fmt::format("  {:>12} {:>9} {:>16} {:>10}\n", "step", "DP share", "time to train", "node DC");
  for (size_t i = 0; i < points.size() && i < most; ++i) {
    out += " ";
    for (size_t k = 0; k < pointers.size(); ++k)
      out += fmt::format(" {:>{}}", input_text(points[i], pointers[k]), widths[k]);
    const Result& r = outcomes[i].result;
    if (!r.error.empty()) {
      out += "  " + r.error.substr(0, r.error.find('\n')) + "\n";
      continue;
    }
    const double total = r.step.breakdown_s.total();
    out += fmt::format("  {:>12} {:>7.2f} % {:>16} {:>10}\n", r.step.time_s ? plain(*r.step.time_s, 6) + " s" : "-",
                       total > 0 ? 100 * r.step.breakdown_s.dp / total : 0,
                       r.run.time_to_train_s.mean ? plain(*r.run.time_to_train_s.mean, 6) + " s" : "-",
                       r.power.mean ? power_text(*r.power.mean) : "-");
  }
  if (points.size() > most) out += fmt::format("  ... and {} more\n", points.size() - most);
  return out;
}

std::vector<std::string> step_breakdown_figure(const std::string& folder, const std::vector<Outcome>& outcomes) {
  Study study;
  study.name = "step-breakdown";
  StudyFigure figure;
  figure.kind = FigureKind::breakdown;
  figure.x = "scenario";
  figure.y = "step.breakdown_s";
  figure.label = "training step";
  figure.title = "Where a training step goes";
  study.figures = {figure};
  std::string text;
  for (const Outcome& o : outcomes) {
    if (!o.result.error.empty()) continue;
    std::string head = "scenario", row = cell(o.result.scenario);
    for (const auto& [name, value] : flat_result(o.result)) {
      if (name.rfind("step.breakdown_s.", 0) != 0) continue;
      head += "," + name;
      row += "," + value;
    }
    if (text.empty()) text = head + "\n";
    text += row + "\n";
  }
  if (text.empty()) return {};
  return study_figures(folder, study, CsvTable::parse(text, "step-breakdown"));
}

std::vector<std::string> sweep_figures(const std::string& folder, const Study& study,
                                       const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes) {
  return study_figures(folder, study, CsvTable::parse(sweep_csv(study, points, outcomes), "sweep.csv"));
}

}  // namespace tw::report
