// The pages of `trainwatt sweep -o` and of `trainwatt validate -o`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/csv.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"
#include "report/output_keys.hpp"
#include "report/report_page.hpp"
#include "report/study_figures.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;
using Cells = std::vector<HtmlCell>;

struct Column {
  const char *label, *name;
};
constexpr Column kColumns[] = {{"time to train", "run.time_to_train_s.mean"},
                               {"training step", "step.time_s"},
                               {"tokens/s", "step.tokens_per_s"},
                               {"samples/s", "step.samples_per_s"},
                               {"MFU", "step.mfu"},
                               {"node DC power", "power.node_dc_w.mean"},
                               {"energy of the building", "energy.facility_j"},
                               {"CO2e", "carbon.kg_co2e"},
                               {"CO2e by the hour", "carbon.hourly.kg_co2e"},
                               {"energy cost", "cost.energy_usd"},
                               {"memory of a GPU", "memory.per_gpu_bytes"},
                               // of halls
                               {"jobs done", "finished"},
                               {"utilisation", "utilisation"},
                               {"goodput", "goodput"},
                               {"mean wait", "wait_mean_s"},
                               {"peak at the feed", "peak_w"},
                               {"energy at the feed", "feed_j"},
                               {"above the budget", "above_limit_s"},
                               {"CO2e", "kg_co2e"},
                               {"cost of energy", "cost_energy"}};

HtmlCell csv_cell_of(const CsvTable& t, size_t row, const std::string& column) {
  const std::string& text = t.text(row, column);
  if (text.empty()) return {"-", "null", fmt::format("{}/{}", row, column)};
  return {output_text(column, *t.number(row, column)), text, fmt::format("{}/{}", row, column)};
}

std::string values_text(const json& values) {
  std::string text;
  for (const json& v : values) text += (text.empty() ? "" : ", ") + input_value(v.get<std::string>());
  return text;
}

std::string asked_html(const json& study) {
  if (!study.contains("axes")) return "";
  std::vector<Cells> rows;
  int axis = 0;
  for (const json& columns : study.at("axes")) {
    ++axis;
    for (const auto& [pointer, values] : columns.items())
      rows.push_back({{fmt::format("axis {}", axis)}, {pointer}, {values_text(values)}});
  }
  for (const json& set : study.value("set", json::array())) {
    const std::string text = set.get<std::string>();
    const size_t equals = text.find('=');
    rows.push_back(
        {{"all points"}, {text.substr(0, equals)}, {equals == std::string::npos ? "" : text.substr(equals + 1)}});
  }
  return html_table("What the study sets", {"where", "input", "values"}, rows);
}

// The points that were simulated: what was set, and the outputs that some of them have.
std::string points_html(const CsvTable& t, const std::vector<std::string>& pointers) {
  std::vector<std::string> columns;
  std::vector<const char*> shown;
  for (const std::string& p : pointers) columns.push_back(input_name(p));
  for (const Column& c : kColumns) {
    if (!t.has(c.name)) continue;
    bool some = false;
    for (size_t i = 0; i < t.rows(); ++i) some = some || !t.text(i, c.name).empty();
    if (some) columns.push_back(c.label), shown.push_back(c.name);
  }
  std::vector<Cells> rows;
  for (size_t i = 0; i < t.rows(); ++i) {
    if (t.has("error") && !t.text(i, "error").empty()) continue;
    Cells row;
    for (const std::string& p : pointers) row.push_back({input_value(t.text(i, p))});
    for (const char* c : shown) row.push_back(csv_cell_of(t, i, c));
    rows.push_back(std::move(row));
  }
  return html_table("", columns, rows);
}

}  // namespace

std::string study_page(const std::string& folder, const json& inputs) {
  const CsvTable t = CsvTable::load((std::filesystem::path(folder) / "sweep.csv").string());
  const json study = inputs.value("study", json::object());
  std::vector<std::string> pointers;
  for (const std::string& c : t.columns())
    if (!c.empty() && c.front() == '/') pointers.push_back(c);
  size_t failures = 0;
  std::string failed;
  const auto label = [&](size_t row) {
    std::string text;
    for (const std::string& p : pointers)
      text += (text.empty() ? "" : ", ") + input_name(p) + " " + input_value(t.text(row, p));
    return text;
  };
  for (size_t i = 0; i < t.rows(); ++i)
    if (t.has("error") && !t.text(i, "error").empty()) {
      ++failures;
      failed += fmt::format("<li><b>{}</b>: {}</li>\n", html_text(label(i)), html_text(t.text(i, "error")));
    }
  std::string summary;
  if (study.contains("description")) summary += "<p>" + html_text(study.value("description", "")) + "</p>\n";
  std::vector<std::pair<std::string, HtmlCell>> merits{
      {"points", {count_text(static_cast<double>(t.rows()))}},
      {"points that failed", {count_text(static_cast<double>(failures))}}};
  for (const auto& [name, column] : {std::pair{"least time to train", "run.time_to_train_s.mean"},
                                     {"highest throughput", "step.tokens_per_s"},
                                     {"least energy of the building", "energy.facility_j"},
                                     {"least CO2e", "carbon.kg_co2e"},
                                     {"least CO2e by the hour", "carbon.hourly.kg_co2e"},
                                     {"least mean wait", "wait_mean_s"},
                                     {"lowest peak at the feed", "peak_w"},
                                     {"least energy at the feed", "feed_j"},
                                     {"least CO2e", "kg_co2e"}}) {
    if (!t.has(column)) continue;
    std::optional<size_t> best;
    const double sign = more_is_better(column) ? -1 : 1;
    bool differs = false;
    for (size_t i = 0; i < t.rows(); ++i) {
      const auto v = t.number(i, column);
      if (!v) continue;
      differs = differs || (best && *v != *t.number(*best, column));
      if (!best || sign * *v < sign * *t.number(*best, column)) best = i;
    }
    if (best && differs) merits.emplace_back(fmt::format("{}: {}", name, label(*best)), csv_cell_of(t, *best, column));
  }
  summary += merits_html(merits);

  std::vector<PageFigure> figures;
  if (study.contains("figures"))
    for (const json& f : study.at("figures")) figures.push_back({f.value("stem", ""), f.value("title", "")});

  const std::string drawn = figures_html(folder, figures);
  const std::string body = sections_html(
      {{"summary", "Summary", "", summary},
       {"figures", "Figures", "", drawn.empty() ? "<p>The study asks for none, or gnuplot was missing.</p>\n" : drawn},
       {"points", "Points", "",
        points_html(t, pointers) + "<p>All outputs of each point are in <code>sweep.csv</code>.</p>\n"},
       {"warnings", "Failed points", "",
        failed.empty() ? "<p>None.</p>\n" : "<ul class=\"warnings\">\n" + failed + "</ul>\n"},
       {"inputs", "Inputs", "Inputs and where they come from",
        html_details("What was asked for", asked_html(study) + origins_html(inputs))},
       {"reproduce", "How to reproduce", "", reproduce_html(inputs, {})}});
  return html_page(
      "Study " + study.value("name", std::string("of ") + std::filesystem::path(folder).filename().string()),
      "TrainWatt " + inputs.value("trainwatt", "") + ": one " +
          (study.value("hall", "").empty() ? "scenario" : "hall") + " with many values of some of its inputs",
      body);
}

std::string validation_page(const std::string& folder, const json& suites, const json& inputs) {
  std::string tables;
  std::vector<PageFigure> figures;
  std::vector<Cells> means;
  const json& list = suites.at("suites");
  for (size_t s = 0; s < list.size(); ++s) {
    const json& suite = list[s];
    const std::string name = suite.value("name", "");
    size_t met = 0, not_met = 0;
    std::string groups;
    for (const auto& [kind, title] : {std::pair{"predicted", "Predicted rows"},
                                      {"in_view", "Rows in view while a form was chosen"},
                                      {"fitted", "Fitted rows"},
                                      {"given", "Given rows"}}) {
      std::vector<Cells> rows;
      for (size_t k = 0; k < suite.at("rows").size(); ++k) {
        const json& r = suite.at("rows")[k];
        if (r.value("kind", "") != kind) continue;
        const std::string status = r.value("status", "");
        met += status == "MET" ? 1 : 0, not_met += status == "NOT MET" ? 1 : 0;
        const std::string at = fmt::format("/suites/{}/rows/{}/", s, k);
        const auto shown = [&](double v) { return in_unit(v, r.value("unit", "")); };
        rows.push_back({{r.value("id", "")},
                        number_cell(r, "measured", at, shown),
                        number_cell(r, "predicted", at, shown),
                        number_cell(r, "error_pct", at, percent_text),
                        number_cell(r, "bound_pct", at, [](double v) { return v == 0 ? "exact" : plain(v, 2) + " %"; }),
                        {status}});
      }
      if (!rows.empty())
        groups += html_table(title, {"row", "measured", "simulated", "error", "bound", "status"}, rows);
    }
    const auto mean = [&](const char* kind) -> HtmlCell {
      return number_cell(suite.at("mape_pct"), kind, fmt::format("/suites/{}/mape_pct/", s),
                         [](double v) { return plain(v, 3) + " %"; });
    };
    means.push_back({{name}, mean("predicted"), mean("fitted"), {fmt::format("{} of {}", met, met + not_met)}});
    for (const json& e : suite.at("errors"))
      groups += "<p class=\"failed\">" + html_text(e.get<std::string>()) + "</p>\n";
    tables += html_details("Suite " + name, groups, true);
    figures.push_back({"predicted-measured-" + file_name_of(name), "Suite " + name + ": error of each simulated row"});
  }
  const std::string body = sections_html(
      {{"summary", "Summary", "",
        "<p>Simulated values against measured ones. No constant was fitted on the predicted rows.</p>\n" +
            html_table("", {"suite", "mean error, predicted", "mean error, fitted", "bounds met"}, means)},
       {"figures", "Figures", "", figures_html(folder, figures)},
       {"rows", "Rows", "", tables},
       {"reproduce", "How to reproduce", "", reproduce_html(inputs, {})}});
  return html_page("Validation", "TrainWatt " + inputs.value("trainwatt", "") + ": predictions against measurements",
                   body);
}

}  // namespace tw::report
