#include "study/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/quantile.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"
#include "study/validate.hpp"

namespace tw {
namespace {

constexpr const char* kTable = "models/accuracy/residuals.json";
constexpr const char* kAll = "all";  // of the classes
constexpr size_t kFewest = 8;        // rows that a spread can be told from
constexpr double kNoticeable = 0.2;  // share of a step that names what bounds it beside compute

// Name of a release's family: what stands before its number.
std::string family_of(const std::string& release) {
  return release.substr(0, release.find_first_of("0123456789"));
}

bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string bound_of(const Breakdown& b, double step_s) {
  const double exchange = b.tp + b.cp + b.pp + b.dp + b.ep;
  if (b.host > kNoticeable * step_s && b.host >= exchange) return "host";
  return exchange > kNoticeable * step_s ? "exchange" : "compute";
}

using RowsBySuite = std::map<std::string, std::vector<double>>;

// Rows whose class begins with `path`, by suite.
RowsBySuite rows_like(const ResidualTable& table, const std::string& path, const std::string& family,
                      const std::string& without, bool in_view = false) {
  RowsBySuite rows;
  for (const Residuals& r : table.residuals) {
    if (r.family != family || r.suite == without || (r.in_view && !in_view)) continue;
    const bool like = path == kAll || r.path == path || r.path.rfind(path + "/", 0) == 0;
    if (like) rows[r.suite].insert(rows[r.suite].end(), r.log_ratios.begin(), r.log_ratios.end());
  }
  return rows;
}

size_t count(const RowsBySuite& rows) {
  return std::accumulate(rows.begin(), rows.end(), size_t{0},
                         [](size_t sum, const auto& suite) { return sum + suite.second.size(); });
}

// What rows of suites say of a row to come, which is middle + effect of its suite + its own error.
struct RowSpread {
  double suites = 0, rows = 0;
  double middle = 0;  // mean of the suites' means
  double within = 0;  // variance of rows about the mean of their suite
  double among = 0;   // of the suites' means; holds `shared` of the rows'
  double shared = 0;  // mean of 1 / size of a suite

  // Variance of the suites' effects alone.
  double effects() const { return std::max(0.0, among - shared * within); }
};

RowSpread spread_of(const RowsBySuite& rows) {
  RowSpread s;
  s.suites = static_cast<double>(rows.size()), s.rows = static_cast<double>(count(rows));
  double squares = 0;
  std::vector<double> means;
  for (const auto& [suite, ratios] : rows) {
    const auto size = static_cast<double>(ratios.size());
    const double mean = std::accumulate(ratios.begin(), ratios.end(), 0.0) / size;
    for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
    means.push_back(mean);
    s.middle += mean / s.suites;
    s.shared += 1 / size / s.suites;
  }
  if (s.suites > 1)
    for (const double mean : means) s.among += (mean - s.middle) * (mean - s.middle) / (s.suites - 1);
  if (s.rows > s.suites) s.within = squares / (s.rows - s.suites);
  return s;
}

// One more row of one more suite. The new row's variance about the mean of k means is (1 + 1/k) among +
// (1 - shared) within, or, where suites differ less than their rows let them, that of rows alone. A single suite does
// not tell how suites differ: that is taken from all work. Degrees of freedom are those of the sum (Satterthwaite 1946,
// Biometrics Bulletin 2, 110).
Interval next_row(const RowSpread& s, const RowSpread& all, double predicted, const std::string& path) {
  const double k = s.suites, free = s.rows - k;
  double variance = s.within * (1 + s.shared / k), degrees = free;
  const double a = k > 1 ? (s.among > s.shared * s.within ? (1 + 1 / k) * s.among : 0) : 2 * all.effects();
  if (a > 0) {
    const double b = (k > 1 ? 1 - s.shared : 1 + s.shared) * s.within;
    variance = a + b;
    degrees = variance * variance / (a * a / ((k > 1 ? k : all.suites) - 1) + (free > 0 ? b * b / free : 0));
  }
  const double half = variance > 0 ? student_quantile(degrees, 0.5 * (1 + kIntervalLevel)) * std::sqrt(variance) : 0;
  // It holds what was predicted, even where all answers like it were wrong to one side.
  return {kIntervalLevel, predicted * std::exp(std::min(0.0, s.middle - half)),
          predicted * std::exp(std::max(0.0, s.middle + half)), path, static_cast<size_t>(s.rows)};
}

// Energy is power times time: where too few energies were measured, the errors of both, as far as they are independent.
Interval product(const Interval& time, double time_s, const Interval& power, double watts, double joules) {
  const auto logs = [](const Interval& i, double value) {
    return std::pair{std::log(i.low / value), std::log(i.high / value)};
  };
  const auto [t0, t1] = logs(time, time_s);
  const auto [p0, p1] = logs(power, watts);
  const double middle = 0.5 * (t0 + t1 + p0 + p1), half = 0.5 * std::hypot(t1 - t0, p1 - p0);
  return {kIntervalLevel, joules * std::exp(std::min(0.0, middle - half)),
          joules * std::exp(std::max(0.0, middle + half)),
          time.path == power.path ? time.path : time.path + ", " + power.path, std::min(time.rows, power.rows)};
}

// Nothing was fitted on it, and it has an error.
bool counts(const RowOutcome& r) {
  return (r.row.kind == RowKind::predicted || r.row.kind == RowKind::in_view) && r.row.counted && r.predicted &&
         *r.predicted > 0 && r.row.measured > 0 && !error_family(r.row.unit).empty();
}

}  // namespace

bool says_work(const std::string& path) {
  return path.find('/') != std::string::npos;
}

std::vector<std::string> RunClass::paths() const {
  std::vector<std::string> list;
  std::string path;
  for (const std::string* word : {&chip, &work, &release, &bound, &fabric}) {
    path += (path.empty() ? "" : "/") + *word;
    list.insert(list.begin(), path);
  }
  return list;
}

std::string error_family(const std::string& unit) {
  if (unit == "s") return "time";
  if (unit == "W") return "power";
  if (unit == "J") return "energy";
  return unit == "B" ? "memory" : "";
}

RunClass run_class(const Scenario& s, const Result& r) {
  RunClass c;
  const bool fp32 = s.training && s.training->precision == Precision::fp32;
  c.work = s.workload                                ? "profiled"
           : s.network && !s.network->towers.empty() ? "towers"
           : fp32                                    ? "fp32"
           : s.network && s.network->experts > 0     ? "experts"
                                                     : "dense";
  c.chip = s.cluster.node.accelerator.transferred_from.empty() ? "measured" : "transferred";
  c.bound = r.step.time_s ? bound_of(r.step.breakdown_s, *r.step.time_s) : "compute";
  return c;
}

RunClass placed(RunClass run, const std::string& software, const std::string& cluster, const ResidualTable& table) {
  const std::string family = family_of(software);
  const auto& releases = run.work == "profiled" ? table.profiled_releases : table.releases;
  const bool near = std::any_of(releases.begin(), releases.end(),
                                [&](const std::string& known) { return family_of(known) == family; });
  run.release = holds(releases, software) ? "fitted" : near ? "neighbour" : "new";
  run.fabric = holds(table.fabrics, cluster) ? "seen" : "new";
  return run;
}

std::optional<Interval> interval_of(const ResidualTable& table, const RunClass& run, const std::string& family,
                                    double predicted, const std::string& without) {
  const RowSpread all = spread_of(rows_like(table, kAll, family, without));
  if (all.suites < 2) return std::nullopt;
  const auto from = [&](const std::string& path, bool in_view) -> std::optional<Interval> {
    const RowsBySuite rows = rows_like(table, path, family, without, in_view);
    if (rows.empty() || count(rows) < kFewest || (rows.size() == 1 && !says_work(path))) return std::nullopt;
    return next_row(spread_of(rows), all, predicted, path);
  };
  auto paths = run.paths();
  for (const bool in_view : {false, true})
    for (const std::string& path : paths)
      if (auto interval = says_work(path) ? from(path, in_view) : std::nullopt) return interval;
  // Other kinds of work say something about hosts, boards and fabrics: a wide interval, and a run that says so.
  for (const std::string& path : {paths.back(), std::string(kAll)})
    if (auto interval = from(path, false)) return interval;
  return std::nullopt;
}

const ResidualTable& residual_table() {
  static const ResidualTable table = [] {
    return find_input_file(kTable, "") ? load<ResidualTable>(kTable) : ResidualTable{};
  }();
  return table;
}

void add_intervals(Result& result, const Scenario& scenario, const ResidualTable& table) {
  if (table.residuals.empty() || !result.error.empty()) return;
  const RunClass run = placed(run_class(scenario, result), scenario.software.name, scenario.cluster.name, table);
  std::string never, other;  // measured; hardly, but in other work
  const auto name = [](std::string& list, const char* key) { list += (list.empty() ? "" : ", ") + std::string(key); };
  const auto add = [&](const char* key, Maybe value, const char* family) {
    if (!value || *value <= 0) return;
    const auto interval = interval_of(table, run, family, *value);
    if (interval) result.intervals[key] = *interval;
    if (!interval || !says_work(interval->path)) name(interval ? other : never, key);
  };
  add("step", result.step.time_s, "time");
  add("time_to_train", result.run.time_to_train_s.mean, "time");
  add("node_dc_w", result.power.mean, "power");
  if (const Maybe joules = result.energy.total_dc_j; joules && *joules > 0) {
    const auto time = result.intervals.find("time_to_train"), power = result.intervals.find("node_dc_w");
    const auto measured = interval_of(table, run, "energy", *joules);
    if (measured && says_work(measured->path))
      result.intervals["energy"] = *measured;
    else if (time != result.intervals.end() && power != result.intervals.end())
      result.intervals["energy"] =
          product(time->second, *result.run.time_to_train_s.mean, power->second, *result.power.mean, *joules);
    else
      name(never, "energy");
  }
  if (!other.empty())
    result.warnings.push_back(
        fmt::format("{}: too few runs of {} work{} are known to tell; the interval is that of all work", other,
                    run.work, run.chip == "transferred" ? " on chips whose kernels were not measured" : ""));
  if (!never.empty())
    result.warnings.push_back(fmt::format("{}: no row like this was ever measured ({}): nobody knows how wrong this is",
                                          never, run.paths().front()));
}

ResidualTable residuals_of(const std::vector<SuiteOutcome>& suites) {
  ResidualTable table;
  std::set<std::string> releases, profiled, fabrics;
  std::map<std::pair<std::string, double>, std::string> first;  // suite that a measurement stands in
  for (const SuiteOutcome& suite : suites)
    for (const RowOutcome& r : suite.rows) {
      if (r.row.kind == RowKind::fitted && r.predicted && !r.software.empty())
        (r.run_class.work == "profiled" ? profiled : releases).insert(r.software);
      if (r.predicted && !r.cluster.empty()) fabrics.insert(r.cluster);
    }
  table.releases.assign(releases.begin(), releases.end());
  table.profiled_releases.assign(profiled.begin(), profiled.end());
  table.fabrics.assign(fabrics.begin(), fabrics.end());
  for (const SuiteOutcome& suite : suites) {
    std::map<std::tuple<std::string, std::string, bool>, std::vector<double>> groups;
    for (const RowOutcome& r : suite.rows) {
      if (!counts(r) ||
          first.emplace(std::pair{r.row.quantity, r.row.measured}, suite.name).first->second != suite.name)
        continue;
      const std::string path = placed(r.run_class, r.software, r.cluster, table).paths().front();
      groups[{error_family(r.row.unit), path, r.row.kind == RowKind::in_view}].push_back(
          std::log(r.row.measured / *r.predicted));
    }
    for (auto& [key, ratios] : groups) {
      std::sort(ratios.begin(), ratios.end());
      const auto& [family, path, in_view] = key;
      table.residuals.push_back({suite.name, family, path, std::move(ratios), in_view});
    }
  }
  return table;
}

std::vector<Coverage> coverage_of(const std::vector<SuiteOutcome>& suites, const ResidualTable& table) {
  std::vector<Coverage> list;
  for (const SuiteOutcome& suite : suites) {
    Coverage c;
    c.suite = suite.name;
    std::vector<double> widths;
    for (const RowOutcome& r : suite.rows) {
      if (!counts(r) || r.row.kind != RowKind::predicted) continue;
      const RunClass run = placed(r.run_class, r.software, r.cluster, table);
      const auto interval = interval_of(table, run, error_family(r.row.unit), *r.predicted, suite.name);
      if (!interval) {
        ++c.unlike;
        continue;
      }
      ++c.rows;
      if (interval->low <= r.row.measured && r.row.measured <= interval->high) ++c.inside;
      widths.push_back(50 * (interval->high - interval->low) / *r.predicted);
    }
    if (!widths.empty()) {
      std::sort(widths.begin(), widths.end());
      c.width_pct = widths[widths.size() / 2];
    }
    if (c.rows + c.unlike > 0) list.push_back(c);
  }
  return list;
}

std::string residual_table_text(const ResidualTable& table) {
  const auto names = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& name : list) text += (text.empty() ? "" : ", ") + detail::json_text(name);
    return text;
  };
  std::string out =
      "// How wrong predicted rows were. Made by: trainwatt validate --residuals models/accuracy/residuals.json\n{\n";
  out += fmt::format("  \"releases\": [{}],\n  \"profiled_releases\": [{}],\n  \"fabrics\": [{}],\n  \"residuals\": [",
                     names(table.releases), names(table.profiled_releases), names(table.fabrics));
  const char* separator = "";
  for (const Residuals& r : table.residuals) {
    std::string ratios;
    for (const double v : r.log_ratios) ratios += fmt::format("{}{:.3f}", ratios.empty() ? "" : ", ", v);
    out += fmt::format("{}\n    {{\"suite\": {}, \"family\": {}, \"class\": {}, {}\"log_ratios\": [{}]}}", separator,
                       detail::json_text(r.suite), detail::json_text(r.family), detail::json_text(r.path),
                       r.in_view ? "\"in_view\": true, " : "", ratios);
    separator = ",";
  }
  return out + "\n  ]\n}\n";
}

void Residuals::describe(Description<Residuals>& d) {
  d.object("residuals", "Errors of one class of predictions in one suite.");
  d.required("suite", &Residuals::suite, "suite of the rows");
  d.required("family", &Residuals::family, "time, power, energy or memory");
  d.required("class", &Residuals::path, "chip / work / release / bound / fabric");
  d.optional("in_view", &Residuals::in_view,
             "rows that were seen while a form was chosen: they count where too few were predicted");
  d.required("log_ratios", &Residuals::log_ratios, "logarithms of measured over predicted, sorted", between(-100, 100));
}

void ResidualTable::describe(Description<ResidualTable>& d) {
  d.object("residual_table", "How wrong predicted rows were, by class: what intervals are made of.");
  d.required("releases", &ResidualTable::releases, "software profiles with a fitted row of a network");
  d.optional("profiled_releases", &ResidualTable::profiled_releases, "and with one of a profiled workload");
  d.required("fabrics", &ResidualTable::fabrics, "clusters that rows ran on");
  d.required("residuals", &ResidualTable::residuals, "errors by suite and class");
}

}  // namespace tw
