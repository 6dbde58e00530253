#include "report/figures.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/csv.hpp"
#include "core/csv_field.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "report/light_svg.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTogether = 32;  // figures of one gnuplot: their commands have to fit on its command line

// A text of gnuplot, in which a backquote would run a command and a line break begin one.
std::string gnuplot_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '`')
      out += "\\140\".\"";
    else if (static_cast<unsigned char>(c) < ' ')
      out += ' ';
    else
      out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  }
  return out + "\"";
}

constexpr const char* kFormats[] = {"svg", "png"};

// Where gnuplot leaves a picture, or its remarks, until they are read.
std::string partial_of(const Drawing& d, const char* what) {
  return fmt::format("{}.{}.{}.part", d.stem, what, ::getpid());
}

// What env, which finds a program in PATH, answers where there is none of that name.
constexpr int kNotInstalled = 127;

// Runs gnuplot on its commands, without a shell; its remarks go to a file. Its exit code, or the signal that ended it.
int run_gnuplot(const std::vector<std::string>& commands, const std::string& remarks) {
  namespace bp = boost::process;
  std::vector<std::string> words{"gnuplot"};
  for (const std::string& command : commands) words.insert(words.end(), {"-e", command});
  std::error_code failed;
  bp::child gnuplot(bp::exe = "/usr/bin/env", bp::args = words, bp::std_in = bp::null, bp::std_out = bp::null,
                    bp::std_err = remarks, failed);
  if (!failed) gnuplot.wait(failed);
  return failed ? kNotInstalled : gnuplot.exit_code();
}

// Curves are classed for the script of a page instead of numbered; `axes` tells it where their values stand.
std::string for_pages(std::string svg, const std::string& axes) {
  constexpr std::string_view opening = "<g id=\"gnuplot_plot_", closing = "</title>";
  for (size_t at = 0; (at = svg.find(opening, at)) != std::string::npos;) {
    const size_t end = svg.find(closing, at);
    if (end == std::string::npos) break;
    svg.replace(at, end + closing.size() - at, "<g class=\"plot\">");
  }
  const size_t root = svg.find("<svg");
  if (root != std::string::npos && !axes.empty())
    svg.insert(root + 4, fmt::format(" data-axes=\"{}\"", axes.substr(0, axes.find('\n'))));
  return svg;
}

// The ends of both axes as gnuplot left them, of every frame of the figure (plots/style.gp: frame), and what the script
// says of itself: logarithmic axes (log_x, log_y); categories 1: x has names, 2: nothing is to be read off.
constexpr const char* kAxes =
    "print (exists('frames') ? frames : ''), frame((exists('categories') ? categories : 0), "
    "(exists('log_x') ? log_x : 0), (exists('log_y') ? log_y : 0))";

// What gnuplot left in a file, which goes.
std::string taken(const std::string& file) {
  std::error_code ignored;
  std::string text = fs::exists(file, ignored) ? read_file(file) : "";
  fs::remove(file, ignored);
  return text;
}

// Each script begins with the settings of a fresh gnuplot; a figure appears whole or not at all.
std::vector<std::string> draw_together(const std::vector<Drawing>& drawings) {
  std::vector<std::string> commands, notes;
  for (const Drawing& d : drawings) {
    const auto script = find_input_file("plots/" + d.script, "");
    if (!script) return {fmt::format("plots/{} is missing; the figure was not drawn", d.script)};
    for (const char* format : kFormats) {
      // By way of variables: call itself would mistake quotes inside of its words.
      std::vector<std::string> words{*script, fs::path(*script).parent_path().string(), format, partial_of(d, format),
                                     d.stem + ".csv"};
      words.insert(words.end(), d.arguments.begin(), d.arguments.end());
      std::string command, call = "call";
      for (size_t i = 0; i < words.size(); ++i) {
        command += fmt::format("a{} = {}; ", i, gnuplot_text(words[i]));
        call += fmt::format(" a{}", i);
      }
      // A page shows the SVG, so it is its frame that counts.
      if (format == kFormats[0])
        call += fmt::format("; set print {}; {}; set print", gnuplot_text(partial_of(d, "axes")), kAxes);
      commands.push_back(command + call + "; reset session");
    }
  }
  const std::string remarks_file = partial_of(drawings.front(), "remarks");
  const int status = run_gnuplot(commands, remarks_file);
  const std::string remarks = taken(remarks_file);
  std::vector<std::string> axes;
  for (const Drawing& d : drawings) axes.push_back(taken(partial_of(d, "axes")));
  bool well = status == 0;
  std::vector<std::pair<std::string, std::string>> pictures;
  for (const Drawing& d : drawings)
    for (const char* format : kFormats) {
      pictures.emplace_back(fmt::format("{}.{}", d.stem, format), taken(partial_of(d, format)));
      well = well && !pictures.back().second.empty();
    }
  if (well) {
    for (size_t i = 0; i < pictures.size(); ++i) {
      auto& [file, picture] = pictures[i];
      write_file(file, i % 2 == 0 ? for_pages(light_svg(picture), axes[i / 2]) : picture);
    }
    return {};
  }
  if (status == kNotInstalled)
    return {"gnuplot is not installed: figures were not drawn; their data are in the CSV files"};
  if (drawings.size() == 1)
    return {fmt::format("gnuplot failed on {}; the figure was not drawn ({})", drawings.front().script,
                        printable(remarks.substr(0, remarks.find_last_not_of('\n') + 1), 300))};
  for (const Drawing& d : drawings)  // one of them spoilt it for all
    for (std::string& note : draw_together({d})) notes.push_back(std::move(note));
  return notes;
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

std::string file_name_of(std::string name) {
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  return name.empty() || name.front() == '.' ? "_" + name : name;
}

void Figures::add(Figures more) {
  for (Drawing& d : more.drawings) drawings.push_back(std::move(d));
  for (std::string& note : more.notes) add_once(notes, note);
}

std::vector<std::string> draw(Figures figures) {
  for (size_t at = 0; at < figures.drawings.size(); at += kTogether) {
    const auto begin = figures.drawings.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(kTogether, figures.drawings.size() - at));
    for (const std::string& note : draw_together({begin, end})) add_once(figures.notes, note);
  }
  return figures.notes;
}

std::vector<std::string> draw_figure(const std::string& script, const std::string& stem,
                                     const std::vector<std::string>& arguments) {
  return draw({{{script, stem, arguments}}, {}});
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
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
      points.push_back({o.result.scenario + ": " + quantity_words(row.quantity),
                        row.kind == "fitted" ? RowKind::fitted : RowKind::predicted, *row.error_pct, std::nullopt});
    }
  }
  return points;
}

Figures power_figure(const std::string& folder, const Scenario& scenario, const Result& result) {
  if (result.series.time_s.size() < 2) return {};  // a single reading is no curve
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
  const std::string stem = (fs::path(folder) / ("power-" + file_name_of(result.scenario))).string();
  write_file(stem + ".csv", data);
  std::string trace;
  if (!measured.empty()) {
    trace = stem + "-measured.csv";
    std::string text = "time_s,measured_w\n";
    for (const auto& [time_s, power_w] : measured) text += fmt::format("{},{}\n", time_s, power_w);
    write_file(trace, text);
  }
  return {{{"power.gp", stem, {result.scenario, trace}}}, {}};
}

Figures error_figure(const std::string& folder, const std::string& name, const std::string& title,
                     const std::vector<ErrorPoint>& points) {
  if (points.empty()) return {};
  std::string data = "row,label,kind,error_pct,bound_pct\n";
  double widest = 1;
  int bounds = 0;
  size_t row = points.size();  // the first row on top
  for (const ErrorPoint& p : points) {
    data += fmt::format("{},{},{},{},{}\n", row--, csv_field(p.label), choice_name(p.kind), p.error_pct,
                        p.bound_pct ? fmt::format("{}", *p.bound_pct) : "");
    bounds += p.bound_pct ? 1 : 0;
    widest = std::max({widest, std::abs(p.error_pct), p.bound_pct.value_or(0)});
  }
  const std::string stem = (fs::path(folder) / file_name_of(name)).string();
  write_file(stem + ".csv", data);
  return {{{"errors.gp",
            stem,
            {title, fmt::format("{}", points.size()), fmt::format("{}", std::ceil(widest * 1.1)),
             fmt::format("{}", bounds)}}},
          {}};
}

}  // namespace tw::report
