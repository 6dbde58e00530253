#include "report/figures.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/csv.hpp"
#include "core/files.hpp"
#include "core/text.hpp"

extern char** environ;  // NOLINT: as POSIX has it

namespace tw::report {
namespace {

namespace fs = std::filesystem;

struct Drawn {
  std::string picture, problem;
};

// Both ends of a pipe; what is left open is closed with it.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  ~Pipe() {
    close_one(read);
    close_one(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_one(int& fd) {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
};

// Reads both to their ends.
void drain(Pipe& a, std::string& a_text, Pipe& b, std::string& b_text) {
  std::array<char, 65536> buffer{};
  while (a.read >= 0 || b.read >= 0) {
    pollfd both[] = {{a.read, POLLIN, 0}, {b.read, POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return;
    for (const auto& [pipe, text, ready] : {std::tuple{&a, &a_text, both[0].revents}, {&b, &b_text, both[1].revents}}) {
      if (pipe->read < 0 || ready == 0) continue;
      const ssize_t n = ::read(pipe->read, buffer.data(), buffer.size());
      if (n > 0) text->append(buffer.data(), static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) Pipe::close_one(pipe->read);
    }
  }
}

// Runs gnuplot on plots/SCRIPT with arguments ARG1.. and without a shell. The picture comes back over a pipe, so that
// files are written in our own way; its remarks are told only when it fails.
Drawn run_gnuplot(const std::string& script, const std::string& format, const std::string& data,
                  const std::vector<std::string>& arguments) {
  const auto path = find_input_file("plots/" + script, "");
  if (!path) return {"", fmt::format("plots/{} is missing; the figure was not drawn", script)};
  std::vector<std::string> words{"gnuplot",     "-c", *path, fs::path(*path).parent_path().string(), format,
                                 "/dev/stdout", data};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Pipe out, remarks;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&quiet, out.write, 1);
  posix_spawn_file_actions_adddup2(&quiet, remarks.write, 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "gnuplot", &quiet, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failed != 0) return {"", "gnuplot is not installed: figures were not drawn; their data are in the CSV files"};
  Pipe::close_one(out.write);
  Pipe::close_one(remarks.write);
  Drawn drawn;
  std::string said;
  drain(out, drawn.picture, remarks, said);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawn.picture.empty())
    drawn.problem = fmt::format("gnuplot failed on {}; the figure was not drawn ({})", script,
                                printable(said.substr(0, said.find_last_not_of('\n') + 1), 300));
  return drawn;
}

// Curves without a name of their own get none when a browser hovers over them.
std::string without_numbers(std::string svg) {
  constexpr std::string_view opening = "<title>gnuplot_plot_", closing = "</title>";
  for (size_t at = 0; (at = svg.find(opening, at)) != std::string::npos;) {
    const size_t end = svg.find(closing, at);
    if (end == std::string::npos) break;
    svg.erase(at, end + closing.size() - at);
  }
  return svg;
}

// Draws once for each format; a figure appears whole or not at all.
std::vector<std::string> draw(const std::string& script, const std::string& stem,
                              const std::vector<std::string>& arguments) {
  for (const char* format : {"svg", "png"}) {
    Drawn drawn = run_gnuplot(script, format, stem + ".csv", arguments);
    if (!drawn.problem.empty()) return {drawn.problem};
    write_file(fmt::format("{}.{}", stem, format), without_numbers(std::move(drawn.picture)));
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
