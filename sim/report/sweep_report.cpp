#include "report/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

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

std::string last_key(const std::string& pointer) {
  const size_t slash = pointer.rfind('/');
  return slash == std::string::npos ? pointer : pointer.substr(slash + 1);
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

std::string point_json(const Result& result) {
  Outcome o;
  o.result = result;
  json one = json::parse(results_json({o})).front();
  one["power"].erase("per_node");  // a line a node in every point tells nobody anything
  return one.dump();
}

SweepTable sweep_table_of(const SweepStore& store) {
  SweepTable t;
  t.inputs = store.about().columns;
  // Points may differ in their keys (parts of memory, say): the columns are those of all, in order of appearance.
  std::map<std::string, size_t> places;
  const bool seeds = std::find(t.inputs.begin(), t.inputs.end(), "seed") != t.inputs.end();
  store.each([&](const StudyRow& r) {
    SweepTable::Row row{r.point, {}, r.status, r.error, {}};
    for (const std::string& pointer : t.inputs) {
      const auto at = r.values.find(pointer);
      row.inputs.push_back(at == r.values.end() ? "" : plain_value(at->second));
    }
    if (!r.result.empty()) {
      std::vector<std::pair<std::string, std::string>> values;
      flatten(json::parse(r.result), "", values);
      for (auto& [name, value] : values) {
        if (seeds && name == "seed") continue;  // it is a column of the inputs
        const auto [at, fresh] = places.emplace(name, t.outputs.size());
        if (fresh) t.outputs.push_back(name);
        if (row.outputs.size() <= at->second) row.outputs.resize(at->second + 1);
        row.outputs[at->second] = std::move(value);
      }
    }
    t.rows.push_back(std::move(row));
  });
  return t;
}

std::string SweepTable::value(const Row& row, const std::string& name) const {
  const auto at = static_cast<size_t>(std::find(outputs.begin(), outputs.end(), name) - outputs.begin());
  return at < row.outputs.size() ? row.outputs[at] : "";
}

std::string sweep_csv(const SweepTable& t) {
  std::string out = "point";
  for (const std::string& p : t.inputs) out += "," + cell(p);
  out += ",error,status";
  for (const std::string& c : t.outputs) out += "," + cell(c);
  out += "\n";
  for (const SweepTable::Row& row : t.rows) {
    out += fmt::format("{}", row.point);
    for (const std::string& v : row.inputs) out += "," + cell(v);
    out += "," + cell(row.error) + "," + row.status;
    for (size_t k = 0; k < t.outputs.size(); ++k) out += "," + (k < row.outputs.size() ? row.outputs[k] : "");
    out += "\n";
  }
  return out;
}

std::string sweep_table(const Study& study, const SweepTable& t, size_t most) {
  std::string out = fmt::format("{}: {} point{}\n", study.name, count_text(static_cast<double>(t.rows.size())),
                                t.rows.size() == 1 ? "" : "s");
  std::vector<size_t> widths;
  for (size_t k = 0; k < t.inputs.size(); ++k) {
    widths.push_back(last_key(t.inputs[k]).size());
    for (size_t i = 0; i < t.rows.size() && i < most; ++i) widths[k] = std::max(widths[k], t.rows[i].inputs[k].size());
  }
  out += " ";
  for (size_t k = 0; k < t.inputs.size(); ++k) out += fmt::format(" {:>{}}", last_key(t.inputs[k]), widths[k]);
  out +=
      fmt::format("  {:>12} {:>9} {:>16} {:>10} {:>12}\n", "step", "DP share", "time to train", "node DC", "facility");
  for (size_t i = 0; i < t.rows.size() && i < most; ++i) {
    const SweepTable::Row& row = t.rows[i];
    out += " ";
    for (size_t k = 0; k < t.inputs.size(); ++k) out += fmt::format(" {:>{}}", row.inputs[k], widths[k]);
    if (row.status != "done") {
      const std::string why = row.error.substr(0, row.error.find('\n'));
      out += fmt::format("  {}: {}\n", row.status, why.size() > 100 ? why.substr(0, 97) + "..." : why);
      continue;
    }
    const auto number = [&](const char* name) {
      const std::string text = t.value(row, name);
      return text.empty() ? std::nullopt : std::optional(std::strtod(text.c_str(), nullptr));
    };
    const auto step = number("step.time_s"), dp = number("step.breakdown_s.dp"),
               run = number("run.time_to_train_s.mean"), watts = number("power.node_dc_w.mean"),
               joules = number("energy.facility_j");
    out += fmt::format("  {:>12} {:>7.2f} % {:>16} {:>10} {:>12}\n", step ? plain(*step, 6) + " s" : "-",
                       step && dp && *step > 0 ? 100 * *dp / *step : 0, run ? plain(*run, 6) + " s" : "-",
                       watts ? power_text(*watts) : "-", joules ? energy_text(*joules) : "-");
  }
  if (t.rows.size() > most) out += fmt::format("  ... and {} more\n", t.rows.size() - most);
  return out;
}

std::vector<std::string> sweep_figures(const std::string& folder, const Study& study, const SweepTable& t) {
  std::vector<std::string> notes;
  for (size_t k = 0; k < study.figures.size(); ++k) {
    const StudyFigure& figure = study.figures[k];
    // A column for each line; blanks where it has no value at that x.
    std::vector<std::string> series, xs;
    std::map<std::pair<std::string, std::string>, std::string> values;
    const auto column = [&](const std::string& pointer) {
      return static_cast<size_t>(std::find(t.inputs.begin(), t.inputs.end(), pointer) - t.inputs.begin());
    };
    for (const SweepTable::Row& row : t.rows) {
      if (row.status != "done") continue;
      const std::string x = row.inputs[column(figure.x)];
      const std::string s =
          figure.series.empty() ? study.name : last_key(figure.series) + " " + row.inputs[column(figure.series)];
      if (const std::string value = t.value(row, figure.y); !value.empty()) values[{x, s}] = value;
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
