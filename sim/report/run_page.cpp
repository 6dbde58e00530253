// The page of `trainwatt run -o`.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/csv.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"
#include "report/output_keys.hpp"
#include "report/report_page.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;
using Cells = std::vector<HtmlCell>;

struct Merit {
  const char *label, *pointer, *interval = "";  // where its interval stands
};
constexpr Merit kMerits[] = {{"nodes", "/plan/nodes"},
                             {"GPUs", "/plan/gpus"},
                             {"time to train", "/run/time_to_train_s/mean", "/run/time_to_train_s/interval"},
                             {"training step", "/step/time_s", "/step/interval"},
                             {"throughput", "/step/tokens_per_s"},
                             {"throughput", "/step/samples_per_s"},
                             {"model FLOPs utilisation", "/step/mfu"},
                             {"node DC power, mean", "/power/node_dc_w/mean", "/power/node_dc_w/interval"},
                             {"network power of the job", "/power/network_w"},
                             {"peak power of the building for this job", "/power/facility/peak_w"},
                             {"energy of nodes and network", "/energy/total_dc_j", "/energy/interval"},
                             {"energy of the building", "/energy/facility_j"},
                             {"CO2e", "/carbon/kg_co2e"},
                             {"energy cost", "/cost/energy_usd"},
                             {"memory of a GPU", "/memory/per_gpu_bytes"}};

std::string dotted(const std::string& pointer) {
  std::string path = pointer.substr(1);
  for (char& c : path)
    if (c == '/') c = '.';
  return path;
}

HtmlCell cell_of(const json& result, size_t index, const std::string& pointer) {
  const json::json_pointer at(pointer);
  if (!result.contains(at)) return {"-"};
  const json& v = result[at];
  if (v.is_string()) return {v.get<std::string>()};
  if (v.is_boolean()) return {v.get<bool>() ? "yes" : "no"};
  const std::string key = fmt::format("/{}{}", index, pointer);
  if (v.is_null()) return {"-", "null", key};
  return {output_text(dotted(pointer), v.get<double>()), v.dump(), key};
}

// "4.9 s to 5.3 s: 80 % of 12 rows like it".
std::string interval_of(const json& result, const Merit& m) {
  const json::json_pointer at(m.interval);
  if (*m.interval == '\0' || !result.contains(at) || !result[at].is_object()) return "";
  const json& i = result[at];
  const auto text = [&](const char* end) { return output_text(dotted(m.pointer), i.at(end).get<double>()); };
  return fmt::format("{} to {}, as {:.0f} % of {} rows {} were", text("low"), text("high"),
                     100 * i.at("level").get<double>(), i.at("rows").dump(),
                     says_work(i.at("class").get<std::string>()) ? "like it" : "of all work");
}

bool is_failed(const json& result) {
  return result.contains("error");
}

std::string summary_html(const json& results) {
  std::string out;
  std::vector<std::string> columns{"scenario"};
  std::vector<Merit> shown;
  for (const Merit& m : kMerits) {
    bool some = false;
    for (const json& r : results)
      some = some || (!is_failed(r) && r.contains(json::json_pointer(m.pointer)) &&
                      !r[json::json_pointer(m.pointer)].is_null());
    // Tokens say more than samples where there are tokens.
    if (some && std::string(m.pointer) == "/step/samples_per_s" && !shown.empty() &&
        std::string(shown.back().pointer) == "/step/tokens_per_s")
      some = false;
    if (some) shown.push_back(m), columns.push_back(m.label);
  }
  if (results.size() == 1 && !is_failed(results[0])) {
    std::vector<std::pair<std::string, HtmlCell>> merits;
    for (const Merit& m : shown) {
      const std::string interval = interval_of(results[0], m);
      merits.emplace_back(m.label + (interval.empty() ? "" : "\n" + interval), cell_of(results[0], 0, m.pointer));
    }
    return merits_html(merits);
  }
  std::vector<Cells> rows;
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_failed(results[i])) {
      out += fmt::format("<p class=\"failed\">{} failed: {}</p>\n", html_text(results[i].value("scenario", "")),
                         html_text(results[i].value("error", "")));
      continue;
    }
    Cells row{{results[i].value("scenario", "")}};
    for (const Merit& m : shown) row.push_back(cell_of(results[i], i, m.pointer));
    rows.push_back(std::move(row));
  }
  return out + (rows.empty() ? "" : html_table("", columns, rows));
}

std::string reference_html(const std::string& folder, const json& results) {
  std::string out;
  for (const auto& [kind, title] : {std::pair{"predicted", "Predicted: no constant was fitted on these rows"},
                                    {"fitted", "Fitted: profiles have seen these rows"},
                                    {"given", "Given: inputs of the scenario, echoed"}}) {
    std::vector<Cells> rows;
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      if (is_failed(results[i])) continue;
      const json& list = results[i].at("reference").at("rows");
      for (size_t k = 0; k < list.size(); ++k) {
        const json& r = list[k];
        if (r.value("kind", "") != kind) continue;
        const std::string unit = r.value("unit", ""), at = fmt::format("/{}/reference/rows/{}/", i, k);
        const auto shown = [&](double v) { return in_unit(v, unit); };
        if (!r.at("error_pct").is_null()) sum += std::abs(r.at("error_pct").get<double>()), ++count;
        rows.push_back({{results[i].value("scenario", "")},
                        {quantity_words(r.value("quantity", ""))},
                        number_cell(r, "measured", at, shown),
                        number_cell(r, "predicted", at, shown),
                        number_cell(r, "error_pct", at, percent_text)});
      }
    }
    if (rows.empty()) continue;
    out += html_table(title, {"scenario", "quantity", "measured", "simulated", "error"}, rows);
    if (count > 0 && std::string(kind) != "given")
      out += fmt::format("<p>Mean absolute error of the {} rows: {}.</p>\n", kind, plain(sum / count, 3) + " %");
  }
  if (out.empty()) return "<p>Nothing was measured that these scenarios could be held against.</p>\n";
  for (const json& r : results)
    if (!is_failed(r) && r.at("reference").at("source").is_string())
      out += fmt::format("<p>{}: {}</p>\n", html_text(r.value("scenario", "")),
                         html_text(r.at("reference").at("source").get<std::string>()));
  return out + figures_html(folder, {{"predicted-measured", "Simulated against measured, with the error of each row"}});
}

// Numbers one below the other; lists of objects as tables of their own.
void collect(const json& node, const std::string& pointer, const json& result, size_t index, std::vector<Cells>& rows,
             std::string& tables) {
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) {
      if (pointer.empty() && (key == "reference" || key == "warnings" || key == "trainwatt" || key == "scenario"))
        continue;
      collect(value, pointer + "/" + key, result, index, rows, tables);
    }
  } else if (node.is_array()) {
    if (node.empty() || !node[0].is_object()) return;
    std::vector<std::string> columns;
    for (const auto& [key, value] : node[0].items())
      if (!value.is_structured()) columns.push_back(key);
    std::vector<Cells> list;
    for (size_t k = 0; k < node.size(); ++k) {
      Cells row;
      for (const std::string& c : columns)
        row.push_back(cell_of(result, index, fmt::format("{}/{}/{}", pointer, k, c)));
      list.push_back(std::move(row));
    }
    tables += html_table(dotted(pointer), columns, list);
  } else {
    rows.push_back({{key_words(dotted(pointer))}, cell_of(result, index, pointer), {dotted(pointer)}});
  }
}

// The moments of a step at the begin, at even times, at the peak and at the end.
std::string memory_html(const std::string& folder, const std::string& name, const std::string& stem) {
  const std::string file = (std::filesystem::path(folder) / (stem + ".csv")).string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return "";
  const CsvTable table = CsvTable::load(file);
  if (table.rows() == 0) return "";
  std::vector<std::string> columns{"time"};
  for (size_t c = 1; c < table.columns().size(); ++c) {
    const std::string& column = table.columns()[c];
    columns.push_back(column.substr(0, column.rfind('_')));
  }
  columns.emplace_back("total");
  const auto total = [&](size_t row) {
    double sum = 0;
    for (size_t c = 1; c < table.columns().size(); ++c) sum += table.value(row, table.columns()[c]);
    return sum;
  };
  std::set<size_t> shown{0, table.rows() - 1};
  size_t peak = 0;
  for (size_t row = 0, k = 1; row < table.rows(); ++row) {
    if (total(row) > total(peak)) peak = row;
    if (table.value(row, "time_ms") * 8 >= static_cast<double>(k) * table.value(table.rows() - 1, "time_ms"))
      shown.insert(row), ++k;
  }
  shown.insert(peak);
  std::vector<Cells> rows;
  const auto number = [](double bytes) -> HtmlCell { return {size_text(bytes), fmt::format("{}", bytes)}; };
  for (const size_t row : shown) {
    const double ms = table.value(row, "time_ms");
    Cells cells{{time_text(1e-3 * ms) + (row == peak ? ", peak" : ""), fmt::format("{}", ms)}};
    for (size_t c = 1; c < table.columns().size(); ++c) cells.push_back(number(table.value(row, table.columns()[c])));
    cells.push_back(number(total(row)));
    rows.push_back(std::move(cells));
  }
  return html_table(name, columns, rows);
}

}  // namespace

std::string run_page(const std::string& folder, const json& results, const json& inputs) {
  std::vector<PageFigure> figures{{"step-breakdown-1", "Where a training step goes"}};
  std::string details, warnings, memory;
  std::vector<std::pair<std::string, std::string>> hashes;
  std::string title =
      results.size() == 1 ? results[0].value("scenario", "") : fmt::format("{} scenarios", results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const json& r = results[i];
    const std::string name = r.value("scenario", "");
    if (is_failed(r)) {
      warnings += fmt::format("<li><b>{}</b> failed: {}</li>\n", html_text(name), html_text(r.value("error", "")));
      continue;
    }
    const std::string file = file_name_of(name);
    figures.push_back({"power-" + file, name + ": DC power of a node over the run"});
    figures.push_back({"step-power-" + file, name + ": power of a node through one training step"});
    figures.push_back({"memory-" + file, name + ": memory of a GPU through one training step, by part"});
    figures.push_back(
        {"roofline-" + file, name + ": kernels of a step, what they reach and what the accelerator allows"});
    figures.push_back({"link-load-" + file, name + ": load of the links over a step, by class"});
    memory += memory_html(folder, name, "memory-" + file);
    figures.push_back({"energy-flow-" + file, name + ": energy of the run, from the grid to what the GPUs do"});
    figures.push_back({"topology-" + file, name + ": nodes, switches and cables of its cluster"});
    std::vector<Cells> rows;
    std::string tables;
    collect(r, "", r, i, rows, tables);
    details += html_details(name, html_table("", {"what", "value", "key in result.json"}, rows) + tables);
    for (const json& w : r.at("warnings"))
      warnings += fmt::format("<li><b>{}</b>: {}</li>\n", html_text(name), html_text(w.get<std::string>()));
    hashes.emplace_back(name, r.value("inputs_sha256", ""));
  }
  warnings = warnings.empty() ? "<p>None.</p>\n" : "<ul class=\"warnings\">\n" + warnings + "</ul>\n";
  const std::string drawn = figures_html(folder, figures);
  const std::string body = sections_html(
      {{"summary", "Summary", "", summary_html(results)},
       {"figures", "Figures", "", drawn.empty() ? "<p>None were drawn: gnuplot was missing.</p>\n" : drawn},
       {"memory", "Memory", "Memory of a GPU through one step", memory},
       {"reference", "Against measurements", "", reference_html(folder, results)},
       {"warnings", "Warnings", "", warnings},
       {"results", "All results", "", details},
       {"inputs", "Inputs", "Inputs and where they come from",
        html_details("What was asked for", origins_html(inputs))},
       {"reproduce", "How to reproduce", "", reproduce_html(inputs, hashes)}});
  const json* first = results.empty() ? nullptr : &results[0];
  return html_page(title,
                   "TrainWatt " + (first == nullptr ? "" : first->value("trainwatt", inputs.value("trainwatt", ""))) +
                       ": predicted time, power, energy and carbon of distributed training",
                   body);
}

}  // namespace tw::report
