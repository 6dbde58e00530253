#include "report/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/csv.hpp"
#include "core/csv_field.hpp"
#include "core/outputs.hpp"
#include "report/columns.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"
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

// What a reader looks at first: a column's head, and its cell of a finished point.
using PointValue = std::function<std::optional<double>(const char*)>;
struct SweepAnswer {
  const char* head;
  std::function<std::string(const PointValue&)> cell;
};

std::vector<SweepAnswer> sweep_answers(bool hall) {
  const auto seconds = [](double v) { return plain(v, 6) + " s"; };
  const auto share = [](double v) { return fmt::format("{:.2f} %", 100 * v); };
  if (hall)
    return {{"jobs done", [](const PointValue& value) { return count_text(value("finished").value_or(0)); }},
            {"used", [=](const PointValue& value) { return or_dash(value("utilisation"), share); }},
            {"mean wait", [=](const PointValue& value) { return or_dash(value("wait_mean_s"), seconds); }},
            {"peak", [](const PointValue& value) { return or_dash(value("peak_w"), power_text); }},
            {"feed", [](const PointValue& value) { return or_dash(value("feed_j"), energy_text); }}};
  return {
      {"step", [=](const PointValue& value) { return or_dash(value("step.time_s"), seconds); }},
      {"DP share",
       [=](const PointValue& value) {
         const auto step = value("step.time_s"), dp = value("step.breakdown_s.dp");
         return step && dp && *step > 0 ? share(*dp / *step) : std::string("-");
       }},
      {"time to train", [=](const PointValue& value) { return or_dash(value("run.time_to_train_s.mean"), seconds); }},
      {"node DC", [](const PointValue& value) { return or_dash(value("power.node_dc_w.mean"), power_text); }},
      {"facility", [](const PointValue& value) { return or_dash(value("energy.facility_j"), energy_text); }}};
}

// Files by their names: "models/accelerators/h100-sxm.json" is h100-sxm.
std::string shown_input(const std::string& value) {
  if (value.size() < 6 || value.compare(value.size() - 5, 5, ".json") != 0) return value;
  const size_t from = value.rfind('/') + 1;  // 0 without one
  return value.substr(from, value.size() - 5 - from);
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
  const std::vector<SweepAnswer> answers = sweep_answers(!study.hall.empty());
  std::vector<TableColumn> columns;
  for (const std::string& input : t.inputs) columns.push_back({last_key(input)});
  for (const SweepAnswer& answer : answers) columns.push_back({answer.head});
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> failed;  // why points have no answers
  for (size_t i = 0; i < t.rows.size() && i < most; ++i) {
    const SweepTable::Row& row = t.rows[i];
    std::vector<std::string>& line = cells.emplace_back();
    for (const std::string& value : row.inputs) line.push_back(shown_input(value));
    if (row.status != "done") {
      line.push_back(row.status);
      failed.push_back(
          fmt::format("point {} {}: {}", row.point, row.status, row.error.substr(0, row.error.find('\n'))));
      continue;
    }
    const auto number = [&](const char* name) {
      const std::string text = t.value(row, name);
      return text.empty() ? std::nullopt : std::optional(std::strtod(text.c_str(), nullptr));
    };
    for (const SweepAnswer& answer : answers) line.push_back(answer.cell(number));
  }
  out += columns_text(columns, cells, t.inputs.size());
  if (t.rows.size() > most) out += fmt::format("  ... and {} more\n", t.rows.size() - most);
  for (const std::string& why : failed) out += wrapped(why, "  ", "    ");
  for (const std::string& input : without_effect(t))
    out += wrapped(input + " changes none of these answers: nothing that it bounds holds the job up", "  ", "    ");
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
