#include "mlperf/compare_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "core/text.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"

namespace tw::mlperf {
namespace {

using report::count_text;
using report::draw_figure;
using report::file_name_of;
using report::in_unit;
using report::percent_text;

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr double kGrid_s = 2;     // of the figure: the interval of the meters
constexpr double kMargin_s = 60;  // shown before and after the run
constexpr size_t kMostPoints = 20000;

json value_or_null(const std::optional<double>& v) {
  return v && std::isfinite(*v) ? json(*v) : json(nullptr);
}

std::string shown(const std::optional<double>& v, const std::string& unit) {
  if (!v) return "-";
  return unit.empty() ? count_text(*v) : in_unit(*v, unit);
}

// Mean over nodes of the readings, each held until the next, on a grid from run_start.
std::vector<std::pair<double, double>> mean_power(const std::string& top, const MeasuredRun& run) {
  const double begin_s = -kMargin_s, end_s = *run.log.run_s + kMargin_s;
  const double grid_s = std::max(kGrid_s, (end_s - begin_s) / static_cast<double>(kMostPoints));
  const auto points = static_cast<size_t>((end_s - begin_s) / grid_s) + 1;
  std::vector<double> sum(points);
  std::vector<int> count(points);
  for (const NodeMeter& node : run.nodes) {
    if (!node.usable) continue;
    std::vector<LogFinding> known;
    const MeterFile f = read_meter_file((fs::path(top) / node.file).string(), node.file, known);
    const auto time_s = [&](size_t i) {
      return static_cast<double>(f.readings[i].time_ms - run.log.start_ms) / 1000 - node.shift_h * 3600.0;
    };
    size_t at = 0;
    for (size_t p = 0; p < points; ++p) {
      const double t = begin_s + grid_s * static_cast<double>(p);
      while (at + 1 < f.readings.size() && time_s(at + 1) <= t) ++at;
      if (f.readings.empty() || t < time_s(0) || t > time_s(f.readings.size() - 1) + kGrid_s) continue;
      sum[p] += f.readings[at].watts;
      ++count[p];
    }
  }
  std::vector<std::pair<double, double>> series;
  for (size_t p = 0; p < points; ++p)
    if (count[p] > 0) series.emplace_back(begin_s + grid_s * static_cast<double>(p), sum[p] / count[p]);
  return series;
}

std::string series_csv(const char* column, const std::vector<std::pair<double, double>>& series) {
  std::string text = fmt::format("time_s,{}\n", column);
  for (const auto& [t, w] : series) text += fmt::format("{:.3f},{:.1f}\n", t, w);
  return text;
}

// Of the folder, which no two benchmarks share: a submitter may tell of the same system twice (DC and AC).
std::string figure_name(const ImportedBenchmark& b) {
  if (b.folder == ".") return b.system + "-" + b.benchmark;
  std::string name;
  for (const fs::path& part : fs::path(b.folder))
    if (part != "results") name += (name.empty() ? "" : "-") + part.string();
  return name;
}

}  // namespace

std::string import_comparison_table(const ImportedBenchmark& b, const Result& result,
                                    const std::vector<ImportComparison>& rows) {
  std::string out = fmt::format("{} {}, means over {} runs,\nbeside the simulation {}\n", printable(b.system, 30),
                                printable(b.benchmark, 30), counted_runs(b).size(), printable(result.scenario, 50));
  out += fmt::format("  {:<16} {:>20} {:>20} {:>9}\n", "", "imported", "simulated", "error");
  for (const ImportComparison& r : rows)
    out += fmt::format("  {:<16} {:>20} {:>20} {:>9}\n", r.quantity, shown(r.imported, r.unit),
                       shown(r.simulated, r.unit), r.error_pct ? percent_text(*r.error_pct) : "-");
  return out;
}

std::string import_comparison_json(const std::string& scenario, const ImportedBenchmark& b,
                                   const std::vector<ImportComparison>& rows) {
  json out = {{"scenario", scenario}, {"system", b.system}, {"benchmark", b.benchmark}, {"rows", json::array()}};
  for (const ImportComparison& r : rows)
    out["rows"].push_back({{"quantity", r.quantity},
                           {"unit", r.unit},
                           {"imported", value_or_null(r.imported)},
                           {"simulated", value_or_null(r.simulated)},
                           {"error_pct", value_or_null(r.error_pct)}});
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string fitted_scenario(const std::string& base, const std::string& name,
                            const std::vector<FittedConstant>& constants) {
  json software = json::object(), hosts = json::object();
  std::string comment =
      "// Constants proposed by trainwatt import --profile. Whoever uses them predicts no longer what "
      "they were fitted on.\n";
  std::string software_source, hosts_source;
  for (const FittedConstant& c : constants) {
    const std::string key = c.pointer.substr(c.pointer.rfind('/') + 1);
    comment += fmt::format("// {} = {}: {}\n", c.pointer, c.value, printable(c.source, 400));
    if (c.pointer.rfind("/software/", 0) == 0) {
      software[key] = c.value;
      software_source += (software_source.empty() ? "" : ", ") + key;
    } else {
      hosts[key] = std::stod(c.value);
      hosts_source = c.source;
    }
  }
  if (!software.empty())
    software["source"] = fmt::format("{}: {}; the rest as the profile it overrides", software_source,
                                     constants.front().source.substr(0, constants.front().source.find(':')));
  json out = {{"use", base}, {"name", name}};
  if (!software.empty()) out["software"] = software;
  if (!hosts.empty()) {
    hosts["source"] = hosts_source;
    out["cluster"]["hosts"] = hosts;
  }
  return comment + out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::vector<std::string> import_figure(const std::string& folder, const std::string& imported_folder,
                                       const ImportedBenchmark& b, const Result* simulated) {
  const auto runs = counted_runs(b);
  const auto run =
      std::find_if(runs.begin(), runs.end(), [](const MeasuredRun* r) { return r->nodes_run_j.has_value(); });
  if (run == runs.end()) return {};
  const auto series = mean_power(imported_folder, **run);
  if (series.empty()) return {};
  const std::string stem = (fs::path(folder) / file_name_of("imported-" + figure_name(b))).string();
  write_file(stem + ".csv", series_csv("measured_w", series));
  std::string over;
  if (simulated != nullptr && !simulated->series.time_s.empty()) {
    std::vector<std::pair<double, double>> s;
    for (size_t i = 0; i < simulated->series.time_s.size(); ++i)
      s.emplace_back(simulated->series.time_s[i], simulated->series.mean_w[i]);
    over = stem + "-simulated.csv";
    write_file(over, series_csv("simulated_w", s));
  }
  std::string events = fmt::format("begin_s,end_s\n");
  for (const auto& [from, to] : (*run)->log.evaluation_times) events += fmt::format("{},{}\n", from, to);
  const std::string events_file = stem + "-events.csv";
  write_file(events_file, events);
  const bool any = !(*run)->log.evaluation_times.empty();
  return draw_figure("imported_power.gp", stem,
                     {fmt::format("{} {}, {}", b.system, b.benchmark, (*run)->log.id), over, any ? events_file : "",
                      fmt::format("{}", *(*run)->log.run_s),
                      b.meter == "ac"   ? "AC"
                      : b.meter == "dc" ? "DC"
                                        : ""});
}

}  // namespace tw::mlperf
