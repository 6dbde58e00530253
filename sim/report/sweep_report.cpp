#include "report/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/csv.hpp"
#include "core/csv_field.hpp"
#include "core/outputs.hpp"
#include "report/numbers.hpp"
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

std::string last_key(const std::string& pointer) {
  const size_t slash = pointer.rfind('/');
  return slash == std::string::npos ? pointer : pointer.substr(slash + 1);
}

}  // namespace

namespace {

// Inputs of which every answer of the study is independent, all others being equal.
std::vector<std::string> without_effect(const SweepTable& t) {
  constexpr const char* answers[] = {"step.time_s",       "run.time_to_train_s.mean", "power.network_w",
                                     "energy.facility_j", "memory.per_gpu_bytes",     "feed_j",
                                     "wait_mean_s"};
  std::vector<std::string> list;
  for (size_t k = 0; k < t.inputs.size(); ++k) {
    if (t.inputs[k] == "seed") continue;
    std::map<std::vector<std::string>, std::vector<std::string>> seen;  // other inputs -> answers
    bool reacts = false, compared = false;
    for (const SweepTable::Row& row : t.rows) {
      if (row.status != "done") continue;
      std::vector<std::string> others = row.inputs, values;
      others[k].clear();
      for (const char* answer : answers) values.push_back(t.value(row, answer));
      const auto [at, fresh] = seen.emplace(std::move(others), values);
      compared = compared || !fresh;
      reacts = reacts || at->second != values;
    }
    if (compared && !reacts) list.push_back(t.inputs[k]);
  }
  return list;
}

}  // namespace

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
  for (const std::string& p : t.inputs) out += "," + csv_line_field(p);
  out += ",error,status";
  for (const std::string& c : t.outputs) out += "," + csv_line_field(c);
  out += "\n";
  for (const SweepTable::Row& row : t.rows) {
    out += fmt::format("{}", row.point);
    for (const std::string& v : row.inputs) out += "," + csv_line_field(v);
    out += "," + csv_line_field(row.error) + "," + row.status;
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
  out += study.hall.empty()
             ? fmt::format("  {:>12} {:>9} {:>16} {:>10} {:>12}\n", "step", "DP share", "time to train", "node DC",
                           "facility")
             : fmt::format("  {:>12} {:>9} {:>16} {:>10} {:>12}\n", "jobs done", "used", "mean wait", "peak", "feed");
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
    if (!study.hall.empty()) {
      const auto watts = number("peak_w"), joules = number("feed_j"), wait = number("wait_mean_s");
      out += fmt::format("  {:>12} {:>7.2f} % {:>16} {:>10} {:>12}\n", plain(number("finished").value_or(0), 6),
                         100 * number("utilisation").value_or(0), wait ? plain(*wait, 6) + " s" : "-",
                         watts ? power_text(*watts) : "-", joules ? energy_text(*joules) : "-");
      continue;
    }
    const auto step = number("step.time_s"), dp = number("step.breakdown_s.dp"),
               run = number("run.time_to_train_s.mean"), watts = number("power.node_dc_w.mean"),
               joules = number("energy.facility_j");
    out += fmt::format("  {:>12} {:>7.2f} % {:>16} {:>10} {:>12}\n", step ? plain(*step, 6) + " s" : "-",
                       step && dp && *step > 0 ? 100 * *dp / *step : 0, run ? plain(*run, 6) + " s" : "-",
                       watts ? power_text(*watts) : "-", joules ? energy_text(*joules) : "-");
  }
  if (t.rows.size() > most) out += fmt::format("  ... and {} more\n", t.rows.size() - most);
  for (const std::string& input : without_effect(t))
    out += fmt::format("  {} changes none of these answers: nothing that it bounds holds the job up\n", input);
  return out;
}

Figures step_breakdown_figure(const std::string& folder, const std::vector<Outcome>& outcomes) {
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
    std::string head = "scenario", row = csv_line_field(o.result.scenario);
    std::vector<std::pair<std::string, std::string>> parts;
    flatten(described_json(o.result.step.breakdown_s), "step.breakdown_s", parts);
    for (const auto& [name, value] : parts) {
      head += "," + name;
      row += "," + value;
    }
    if (text.empty()) text = head + "\n";
    text += row + "\n";
  }
  if (text.empty()) return {};
  return study_figures(folder, study, CsvTable::parse(text, "step-breakdown"));
}

Figures sweep_figures(const std::string& folder, const Study& study, const SweepTable& t) {
  return study_figures(folder, study, CsvTable::parse(sweep_csv(t), "sweep.csv"));
}

}  // namespace tw::report
