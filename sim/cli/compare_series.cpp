#include "cli/compare_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/outputs.hpp"
#include "core/csv.hpp"
#include "core/files.hpp"
#include "core/sum.hpp"
#include "foreign/foreign.hpp"
#include "power/meter.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"

namespace tw::cli {
namespace {

bool is_series(const std::string& text) {
  return text.rfind("time_s,node_", 0) == 0 || text.rfind("time_s,gpu_", 0) == 0;
}

// A quantity of both; the simulated one may be unknown.
struct Row {
  const char *name, *unit;
  std::optional<double> simulated, measured;
};

struct Statistics {
  std::optional<double> length_s, mean_w, p5_w, p50_w, p95_w, peak_w, joules;
};

// Readings from `from_s` to `to_s`; energy by the trapezoidal rule.
Statistics statistics(const std::vector<double>& time_s, const std::vector<double>& watts, double from_s, double to_s) {
  std::vector<double> inside;
  Sum energy;
  double first_s = 0, last_s = 0;
  for (size_t i = 0; i < time_s.size(); ++i) {
    if (time_s[i] < from_s || time_s[i] > to_s) continue;
    if (inside.empty())
      first_s = time_s[i];
    else
      energy.add(0.5 * (watts[i] + inside.back()) * (time_s[i] - last_s));
    last_s = time_s[i];
    inside.push_back(watts[i]);
  }
  if (inside.size() < 2) return {};
  Statistics s;
  s.length_s = last_s - first_s;
  s.joules = energy.value();
  s.mean_w = *s.joules / *s.length_s;
  std::sort(inside.begin(), inside.end());
  s.p5_w = quantile(inside, 0.05), s.p50_w = quantile(inside, 0.5), s.p95_w = quantile(inside, 0.95),
  s.peak_w = inside.back();
  return s;
}

std::vector<Row> rows_of(const Result& r, const MeasuredPower& m, double offset_s) {
  const auto& s = r.series;
  const double end_s = s.time_s.empty() ? 0 : s.time_s.back();
  const Statistics there = statistics(m.time_s, m.mean_w, offset_s, m.place == "gpu" ? 1e300 : offset_s + end_s);
  if (m.place == "gpu")
    return {{"steady training, median", "W", r.power.gpu_steady, there.p50_w}, {"p95", "W", std::nullopt, there.p95_w}};
  // Both over the time that both have.
  const Statistics here = statistics(s.time_s, s.mean_w, 0, there.length_s.value_or(end_s));
  return {{"time in both", "s", here.length_s, there.length_s},
          {"mean", "W", here.mean_w, there.mean_w},
          {"p5", "W", here.p5_w, there.p5_w},
          {"median", "W", here.p50_w, there.p50_w},
          {"p95", "W", here.p95_w, there.p95_w},
          {"highest", "W", here.peak_w, there.peak_w},
          {"energy in that time", "J", here.joules, there.joules}};
}

std::optional<double> change_pct(const Row& row) {
  if (!row.simulated || !row.measured || !(*row.measured > 0)) return std::nullopt;
  return 100 * (*row.simulated / *row.measured - 1);
}

}  // namespace

std::optional<MeasuredPower> measured_power(const std::string& file, const std::string& text, Faults& faults) {
  MeasuredPower m{file, "node", text, {}, {}, 0};
  if (!is_series(text)) {
    const foreign::Source source{file, text};
    bool power = false;
    for (const foreign::Kind& kind : foreign::kinds())
      if (kind.fits(source)) {
        power = std::string(kind.becomes) == "a power series";
        break;
      }
    if (!power) return std::nullopt;
    m.text = foreign::read_any(source, {}, faults).text;
    if (!is_series(m.text)) return m;
  }
  if (m.text.rfind("time_s,gpu_", 0) == 0) m.place = "gpu";
  const CsvTable table = CsvTable::parse(m.text, file);
  m.meters = table.columns().size() - 1;
  for (size_t row = 0; row < table.rows(); ++row) {
    Sum sum;
    size_t count = 0;
    for (const std::string& column : table.columns())
      if (column != "time_s")
        if (const auto watts = table.number(row, column)) sum.add(*watts), ++count;
    if (count == 0) continue;
    m.time_s.push_back(table.value(row, "time_s"));
    m.mean_w.push_back(sum.value() / static_cast<double>(count));
  }
  return m;
}

ExitCode compare_series(const Scenario& scenario, const Result& result, const MeasuredPower& m,
                        const SeriesOptions& options, Console& console) {
  const std::vector<Row> rows = rows_of(result, m, options.offset_s);
  std::string table = report::wrapped(fmt::format("Power of a {}, {} beside {} ({} meter{}, from {:g} s)",
                                                  m.place == "gpu" ? "GPU" : m.place, scenario.name, m.file, m.meters,
                                                  m.meters == 1 ? "" : "s", options.offset_s),
                                      "", "  ") +
                      fmt::format("  {:<24} {:>14} {:>14} {:>10}\n", "", "simulated", "measured", "error");
  auto json = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    const auto text = [&](double v) { return report::in_unit(v, row.unit); };
    const auto error = change_pct(row);
    table += fmt::format("  {:<24} {:>14} {:>14} {:>10}\n", row.name, report::or_dash(row.simulated, text),
                         report::or_dash(row.measured, text), report::or_dash(error, report::percent_text));
    json.push_back({{"quantity", row.name}, {"unit", row.unit}});
    for (const auto& [key, value] :
         {std::pair{"simulated", row.simulated}, {"measured", row.measured}, {"error_pct", error}})
      json.back()[key] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  }
  if (!options.folder.empty()) {
    if (m.place != "node")
      throw InputError({{"-o", "", "the figure shows power of a node", "a series of nodes (read --place node)"}});
    // The figure's clock is the run's.
    std::string shifted = "time_s,node_0\n";
    for (size_t i = 0; i < m.time_s.size(); ++i)
      shifted += fmt::format("{},{}\n", m.time_s[i] - options.offset_s, m.mean_w[i]);
    Scenario with_trace = scenario;
    with_trace.reference.trace = in_folder(options.folder, "measured.csv");
    write_file(with_trace.reference.trace, shifted);
    for (const std::string& note : report::draw(report::power_figure(options.folder, with_trace, result)))
      console.message(note);
  }
  if (!options.json.empty()) write_output(console, options.json, json.dump(2) + "\n");
  if (options.json != "-") console.result(table);
  return ExitCode::done;
}

}  // namespace tw::cli
