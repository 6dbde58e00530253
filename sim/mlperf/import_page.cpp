#include "mlperf/import_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/files.hpp"
#include "report/numbers.hpp"
#include "report/report_page.hpp"

namespace tw::mlperf {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using report::HtmlCell;

struct Column {
  const char *title, *key, *unit;  // key: a JSON pointer below the row's
};
constexpr Column kScores[] = {{"submitter", "/submitter", ""},
                              {"system", "/system", ""},
                              {"benchmark", "/benchmark", ""},
                              {"nodes", "/nodes", ""},
                              {"score", "/score/time_s", "s"},
                              {"RCP factor", "/score/rcp_factor", ""},
                              {"energy, MLPerf window", "/score/energy_mlperf_v4_0_j", "J"},
                              {"energy of the runs", "/score/energy_run_j", "J"},
                              {"failed", "/score/failed", ""},
                              {"why none", "/score/none_because", ""}};
constexpr Column kRuns[] = {{"run", "/run", ""},
                            {"status", "/status", ""},
                            {"breaks a rule", "/not_compliant", ""},
                            {"time", "/run_s", "s"},
                            {"samples", "/samples", ""},
                            {"step", "/step_s_mean", "s"},
                            {"evaluations", "/evaluations", ""},
                            {"one takes", "/eval_s_mean", "s"},
                            {"node power", "/node_w_mean", "W"},
                            {"energy of the nodes", "/nodes_run_j", "J"}};
constexpr Column kFindings[] = {
    {"kind", "/kind", ""}, {"file", "/file", ""}, {"line", "/line", ""}, {"what", "/what", ""}};

HtmlCell cell(const json& all, const std::string& pointer, const std::string& unit) {
  const json::json_pointer at(pointer);
  if (!all.contains(at) || all[at].is_null()) return {"-", "", ""};
  const json& value = all[at];
  if (!value.is_number()) return {value.is_string() ? value.get<std::string>() : value.dump(), "", ""};
  const auto number = value.get<double>();
  const bool whole = number == std::round(number);
  return {!unit.empty() ? report::in_unit(number, unit)
          : whole       ? report::count_text(number)
                        : report::plain(number, 7),
          value.dump(), pointer};
}

template <size_t N>
std::string table(const json& all, const std::string& title, const std::string& list, const Column (&columns)[N]) {
  std::vector<std::string> titles;
  for (const Column& c : columns) titles.push_back(c.title);
  std::vector<std::vector<HtmlCell>> rows;
  const json::json_pointer at(list);
  for (size_t i = 0; all.contains(at) && i < all[at].size(); ++i) {
    rows.emplace_back();
    for (const Column& c : columns) rows.back().push_back(cell(all, fmt::format("{}/{}{}", list, i, c.key), c.unit));
  }
  return rows.empty() ? "<p>None.</p>\n" : report::html_table(title, titles, rows);
}

}  // namespace

std::string import_page(const std::string& folder) {
  const std::string file = (fs::path(folder) / kImportFile).string();
  const json all = json::parse(read_file(file), nullptr, false);
  if (!all.is_object() || !all.contains("benchmarks") || !all["benchmarks"].is_array())
    throw InputError({{file, "", "is not what trainwatt import wrote", "import again with -o"}});
  std::vector<report::PageFigure> figures;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string stem = entry.path().stem().string();
        entry.path().extension() == ".svg" && stem.rfind("imported-", 0) == 0)
      figures.push_back({stem, "Power of a node, " + stem.substr(9)});
  std::sort(figures.begin(), figures.end(), [](const auto& a, const auto& b) { return a.stem < b.stem; });
  std::string runs;
  for (size_t i = 0; i < all["benchmarks"].size(); ++i) {
    const std::string at = fmt::format("/benchmarks/{}", i);
    runs += report::html_details(cell(all, at + "/system", "").text + " " + cell(all, at + "/benchmark", "").text,
                                 table(all, "", at + "/runs", kRuns), all["benchmarks"].size() < 4);
  }
  const size_t findings = all.contains("findings") ? all["findings"].size() : 0;
  const auto count = [](size_t n) { return HtmlCell{report::count_text(static_cast<double>(n)), "", ""}; };
  return report::html_page(
      "Imported MLPerf results", "",
      report::sections_html({{"scores", "Scores", "",
                              report::merits_html({{"benchmarks", count(all["benchmarks"].size())},
                                                   {"files read", cell(all, "/files", "")},
                                                   {"findings", count(findings)}}) +
                                  table(all, "", "/benchmarks", kScores)},
                             {"power", "Power", "", report::figures_html(folder, figures)},
                             {"runs", "Runs", "", runs},
                             {"findings", "Findings", "", table(all, "", "/findings", kFindings)}}));
}

}  // namespace tw::mlperf
