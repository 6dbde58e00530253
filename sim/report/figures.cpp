#include "report/figures.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/csv.hpp"
#include "core/files.hpp"

extern char** environ;  // NOLINT: as POSIX has it

namespace tw::report {
namespace {

namespace fs = std::filesystem;

// Runs gnuplot on plots/SCRIPT with arguments ARG1.. and without a shell. Empty when it did well.
std::string run_gnuplot(const std::string& script, const std::vector<std::string>& arguments) {
  const auto path = find_input_file("plots/" + script, "");
  if (!path) return fmt::format("plots/{} is missing; the figure was not drawn", script);
  std::vector<std::string> words{"gnuplot", "-c", *path, fs::path(*path).parent_path().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "gnuplot", &quiet, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failed != 0) return "gnuplot is not installed: figures were not drawn; their data are in the CSV files";
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return fmt::format("gnuplot failed on {}; the figure was not drawn", script);
}

// Draws once for each format; a figure appears whole or not at all.
std::vector<std::string> draw(const std::string& script, const std::string& stem, std::vector<std::string> arguments) {
  for (const char* format : {"svg", "png"}) {
    const std::string target = fmt::format("{}.{}", stem, format);
    const std::string partial = fmt::format("{}.{}.part", target, ::getpid());
    std::vector<std::string> all{format, partial, stem + ".csv"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string problem = run_gnuplot(script, all);
    std::error_code error;
    if (!problem.empty()) {
      fs::remove(partial, error);
      return {problem};
    }
    fs::rename(partial, target, error);
    if (error) return {fmt::format("{} cannot be written ({})", target, error.message())};
  }
  return {};
}

// A name as a file name: letters, digits, dot, dash and underscore.
std::string file_name(std::string name) {
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!plain && c != '.') c = '_';
  }
  return name.empty() || name.front() == '.' ? "_" + name : name;
}

std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return "\"" + text + "\"";
}

// Mean over the nodes of a trace CSV (time_s, node_1, ...), blanks left out.
std::vector<std::pair<double, double>> mean_trace(const CsvTable& trace) {
  std::vector<std::pair<double, double>> out;
  for (size_t row = 0; row < trace.rows(); ++row) {
    double sum = 0;
    int count = 0;
    for (const std::string& column : trace.columns()) {
      if (column == "time_s") continue;
      if (const auto v = trace.number(row, column)) {
        sum += *v;
        ++count;
      }
    }
    if (count > 0) out.emplace_back(trace.value(row, "time_s"), sum / count);
  }
  return out;
}

}  // namespace

std::string file_name_of(const std::string& name) {
  return file_name(name);
}

std::vector<std::string> draw_figure(const std::string& script, const std::string& stem,
                                     const std::vector<std::string>& arguments) {
  return draw(script, stem, arguments);
}

std::vector<ErrorPoint> error_points(const SuiteOutcome& suite) {
  std::vector<ErrorPoint> points;
  for (const RowOutcome& r : suite.rows)
    if (r.error_pct && r.row.kind != RowKind::given)
      points.push_back({r.row.id, r.row.kind, *r.error_pct, r.row.bound_pct});
  return points;
}

std::vector<ErrorPoint> error_points(const std::vector<Outcome>& outcomes) {
  std::vector<ErrorPoint> points;
  for (const Outcome& o : outcomes) {
    for (const ReferenceRow& row : o.result.reference.rows) {
      if (!row.error_pct || row.kind == "given") continue;
      points.push_back({o.result.scenario + " " + row.quantity,
                        row.kind == "fitted" ? RowKind::fitted : RowKind::predicted, *row.error_pct, std::nullopt});
    }
  }
  return points;
}

std::vector<std::string> power_figure(const std::string& folder, const Scenario& scenario, const Result& result) {
  if (result.series.time_s.empty()) return {};
  std::vector<std::pair<double, double>> measured;
  if (!scenario.reference.trace.empty()) measured = mean_trace(CsvTable::load(scenario.reference.trace));
  std::string data = "time_s,simulated_w,p5_w,p95_w,p50_w\n";
  const PowerSeries& s = result.series;
  for (size_t i = 0; i < s.time_s.size(); ++i) {
    const double low = i < s.p5_w.size() ? s.p5_w[i] : s.mean_w[i],
                 high = i < s.p95_w.size() ? s.p95_w[i] : s.mean_w[i];
    data += fmt::format("{},{},{},{},{}\n", s.time_s[i], s.mean_w[i], low, high,
                        i < s.p50_w.size() ? s.p50_w[i] : s.mean_w[i]);
  }
  const std::string stem = (fs::path(folder) / ("power-" + file_name(result.scenario))).string();
  write_file(stem + ".csv", data);
  std::string trace;
  if (!measured.empty()) {
    trace = stem + "-measured.csv";
    std::string text = "time_s,measured_w\n";
    for (const auto& [time_s, power_w] : measured) text += fmt::format("{},{}\n", time_s, power_w);
    write_file(trace, text);
  }
  return draw("power.gp", stem, {result.scenario, trace});
}

std::vector<std::string> error_figure(const std::string& folder, const std::string& name, const std::string& title,
                                      const std::vector<ErrorPoint>& points) {
  if (points.empty()) return {};
  std::string data = "row,label,kind,error_pct,bound_pct\n";
  double widest = 1;
  int bounds = 0;
  size_t row = points.size();  // the first row on top
  for (const ErrorPoint& p : points) {
    data += fmt::format("{},{},{},{},{}\n", row--, quoted(p.label), choice_name(p.kind), p.error_pct,
                        p.bound_pct ? fmt::format("{}", *p.bound_pct) : "");
    bounds += p.bound_pct ? 1 : 0;
    widest = std::max({widest, std::abs(p.error_pct), p.bound_pct.value_or(0)});
  }
  const std::string stem = (fs::path(folder) / file_name(name)).string();
  write_file(stem + ".csv", data);
  return draw(
      "errors.gp", stem,
      {title, fmt::format("{}", points.size()), fmt::format("{}", std::ceil(widest * 1.1)), fmt::format("{}", bounds)});
}

}  // namespace tw::report
