#include "report/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/files.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"
#include "report/result_json.hpp"

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

// "400 Gbit/s" -> 400 and "Gbit/s": values of one axis are plotted in the unit that they are written in.
double leading_number(const std::string& text, std::string& unit) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  unit = std::string(end);
  if (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  return v;
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

std::vector<std::string> sweep_figures(const std::string& folder, const Study& study,
                                       const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes) {
  std::vector<std::string> notes;
  for (size_t k = 0; k < study.figures.size(); ++k) {
    const StudyFigure& figure = study.figures[k];
    // A column for each line; blanks where it has no value at that x.
    std::vector<std::string> series, xs;
    std::map<std::pair<std::string, std::string>, std::string> values;
    for (size_t i = 0; i < points.size(); ++i) {
      if (!outcomes[i].result.error.empty()) continue;
      const std::string x = input_text(points[i], figure.x);
      const std::string s =
          figure.series.empty() ? study.name : last_key(figure.series) + " " + input_text(points[i], figure.series);
      for (const auto& [name, value] : flat_result(outcomes[i].result))
        if (name == figure.y) values[{x, s}] = value;
      if (std::find(series.begin(), series.end(), s) == series.end()) series.push_back(s);
      if (std::find(xs.begin(), xs.end(), x) == xs.end()) xs.push_back(x);
    }
    if (values.empty()) {
      notes.push_back(fmt::format("figure {}: no point has a value of {}", k + 1, figure.y));
      continue;
    }
    std::string unit, data = "x";
    for (const std::string& s : series) data += "," + cell(s);
    data += "\n";
    for (const std::string& x : xs) {
      data += fmt::format("{}", leading_number(x, unit));
      for (const std::string& s : series) data += "," + values[{x, s}];
      data += "\n";
    }
    const std::string stem =
        (std::filesystem::path(folder) / fmt::format("{}-{}", file_name_of(study.name), k + 1)).string();
    write_file(stem + ".csv", data);
    const std::string xlabel = last_key(figure.x) + (unit.empty() ? "" : " (" + unit + ")");
    for (const std::string& note : draw_figure(
             "sweep.gp", stem,
             {study.name, xlabel, figure.label.empty() ? figure.y : figure.label, fmt::format("{}", series.size())}))
      notes.push_back(note);
  }
  return notes;
}

}  // namespace tw::report
