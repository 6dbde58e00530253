#include "report/study_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "core/csv_field.hpp"
#include "core/files.hpp"
#include "report/figure_parts.hpp"
#include "report/figures.hpp"
#include "report/output_keys.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;

Figures line_figure(const std::string& stem, const Study& study, size_t k, const Grid& grid) {
  const StudyFigure& f = study.figures[k];
  std::string data = "x";
  for (const std::string& s : grid.series) data += "," + csv_line_field(f.series.empty() ? f.y : series_name(f, s));
  data += "\n";
  for (size_t i = 0; i < grid.x.texts.size(); ++i) {
    const std::string& x = grid.x.texts[i];
    data += grid.x.numbers.empty() ? csv_line_field(input_value(x)) : fmt::format("{}", grid.x.numbers[i]);
    for (const std::string& s : grid.series) data += "," + grid.at(x, s);
    data += "\n";
  }
  write_file(stem + ".csv", data);
  const Settings settings = common_settings(study, k, grid, shown_unit(f.y, grid.largest));
  return {{{grid.x.numbers.empty() ? "bars.gp" : "sweep.gp", stem, {settings.code()}}}, {}};
}

// Efficiency against the smallest x of each line: of a time t0 x0 / (t x), of a rate (r / x) / (r0 / x0).
Figures scaling_figure(const std::string& stem, const Study& study, size_t k, const Grid& grid) {
  const StudyFigure& f = study.figures[k];
  if (grid.x.numbers.empty())
    return {{}, {fmt::format("figure {}: {} has no numbers to scale over", k + 1, input_name(f.x))}};
  std::vector<size_t> order(grid.x.texts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return grid.x.numbers[a] < grid.x.numbers[b]; });
  const bool rate = more_is_better(f.y);
  std::string data = "x", names;
  for (const std::string& s : grid.series)
    names += fmt::format(",{}", csv_line_field(f.series.empty() ? f.y : series_name(f, s)));
  data += names;
  for (const std::string& s : grid.series)
    data += "," + csv_line_field("efficiency" + (f.series.empty() ? "" : " of " + series_name(f, s)));
  for (const std::string& s : grid.series)
    data += "," + csv_line_field("ideal" + (f.series.empty() ? "" : " of " + series_name(f, s)));
  data += "\n";
  std::map<std::string, std::pair<double, double>> bases;
  for (const size_t i : order) {
    const std::string& x = grid.x.texts[i];
    const double nodes = grid.x.numbers[i];
    std::string efficiencies, ideals;
    data += fmt::format("{}", nodes);
    for (const std::string& s : grid.series) {
      const std::string& text = grid.at(x, s);
      data += "," + text;
      efficiencies += ",", ideals += ",";
      if (text.empty()) continue;
      const double value = std::strtod(text.c_str(), nullptr);
      const auto [x0, y0] = bases.emplace(s, std::pair{nodes, value}).first->second;
      const double ideal = rate ? y0 * nodes / x0 : y0 * x0 / nodes;
      efficiencies += fmt::format("{}", rate ? value / ideal : ideal / value);
      ideals += fmt::format("{}", ideal);
    }
    data += efficiencies + ideals + "\n";
  }
  write_file(stem + ".csv", data);
  return {{{"scaling.gp", stem, {common_settings(study, k, grid, shown_unit(f.y, grid.largest)).code()}}}, {}};
}

Figures heat_map(const std::string& stem, const Study& study, size_t k, const Grid& grid) {
  const StudyFigure& f = study.figures[k];
  std::string data = "column,row,x,y,value\n", columns, rows;
  for (size_t i = 0; i < grid.x.texts.size(); ++i)
    columns += fmt::format("{}\"{}\" {}", i == 0 ? "" : ", ", input_value(grid.x.texts[i]), i);
  for (size_t j = 0; j < grid.series.size(); ++j)
    rows += fmt::format("{}\"{}\" {}", j == 0 ? "" : ", ", input_value(grid.series[j]), j);
  for (size_t i = 0; i < grid.x.texts.size(); ++i)
    for (size_t j = 0; j < grid.series.size(); ++j)
      data += fmt::format("{},{},{},{},{}\n", i, j, csv_line_field(grid.x.texts[i]), csv_line_field(grid.series[j]),
                          grid.at(grid.x.texts[i], grid.series[j]));
  write_file(stem + ".csv", data);
  const ShownUnit unit = shown_unit(f.y, grid.largest);
  Settings s;
  s.text("title_text", figure_title(study, k));
  s.text("x_text", f.x_label.empty() ? input_name(f.x) : f.x_label);
  s.text("y_text", input_name(f.series));
  s.text("value_text", column_label(f.y, f.label, unit));
  s.number("scale", unit.scale);
  s.number("least", grid.least * unit.scale);
  s.number("most", grid.largest * unit.scale);
  s.text("columns", columns);
  s.text("rows", rows);
  s.number("wide_cells", static_cast<double>(grid.x.texts.size()));
  s.number("high_cells", static_cast<double>(grid.series.size()));
  return {{{"heatmap.gp", stem, {s.code()}}}, {}};
}

// The inputs of a row that tell the points apart.
std::string point_label(const CsvTable& table, size_t row, const Texts& pointers) {
  std::string label;
  for (const std::string& p : pointers) label += (label.empty() ? "" : ", ") + input_value(table.text(row, p));
  return label;
}

Figures pareto_figure(const std::string& stem, const Study& study, size_t k, const CsvTable& table) {
  const StudyFigure& f = study.figures[k];
  struct Point {
    size_t row = 0;
    double x = 0, y = 0;
    bool front = true;
  };
  std::vector<Point> points;
  double most_x = 0, most_y = 0;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (failed(table, row) || !table.has(f.x) || !table.has(f.y)) continue;
    const auto x = table.number(row, f.x), y = table.number(row, f.y);
    if (!x || !y) continue;
    points.push_back({row, *x, *y, true});
    most_x = std::max(most_x, std::abs(*x)), most_y = std::max(most_y, std::abs(*y));
  }
  if (points.empty()) return {{}, {fmt::format("figure {}: no point has values of {} and {}", k + 1, f.x, f.y)}};
  const double sign_x = more_is_better(f.x) ? -1 : 1, sign_y = more_is_better(f.y) ? -1 : 1;
  for (Point& p : points)
    for (const Point& q : points) {
      const double dx = sign_x * (q.x - p.x), dy = sign_y * (q.y - p.y);
      if (dx <= 0 && dy <= 0 && (dx < 0 || dy < 0)) p.front = false;
    }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  // What tells the points apart: the series alone if there is one, else whatever changes.
  Texts pointers;
  if (!f.series.empty())
    pointers.push_back(f.series);
  else
    for (const StudyAxis& axis : study.axes)
      if (!axis.set.empty()) pointers.push_back(axis.set.begin()->first);
  if (pointers.empty())
    for (const std::string& column : table.columns())
      if (!column.empty() && column.front() == '/') pointers.push_back(column);
  const ShownUnit ux = shown_unit(f.x, most_x), uy = shown_unit(f.y, most_y);
  const double left = points.front().x, right = points.back().x;
  double low = INFINITY, high = -INFINITY;
  for (const Point& p : points) low = std::min(low, p.y), high = std::max(high, p.y);
  // Labels that would lie on one another are left out of the drawing, not of the data; the front goes first.
  std::vector<std::pair<double, double>> labelled;
  const auto room = [&](const Point& p) {
    const double x = (p.x - left) / std::max(right - left, 1e-300), y = (p.y - low) / std::max(high - low, 1e-300);
    for (const auto& [other_x, other_y] : labelled)
      if (std::abs(x - other_x) < 0.1 && std::abs(y - other_y) < 0.04) return false;
    labelled.emplace_back(x, y);
    return true;
  };
  std::vector<bool> shown(points.size());
  for (const bool front : {true, false})
    for (size_t i = 0; i < points.size(); ++i)
      if (points[i].front == front) shown[i] = room(points[i]);
  std::string data = "x,y,front,label,shown\n";
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    const std::string label = csv_line_field(point_label(table, p.row, pointers));
    data += fmt::format("{},{},{},{},{}\n", table.text(p.row, f.x), table.text(p.row, f.y), p.front ? 1 : 0, label,
                        shown[i] ? label : "");
  }
  write_file(stem + ".csv", data);
  Settings s;
  s.text("title_text", figure_title(study, k));
  s.text("x_text", column_label(f.x, f.x_label, ux));
  s.text("y_text", column_label(f.y, f.label, uy));
  std::string names;
  for (const std::string& p : pointers) names += (names.empty() ? "" : ", ") + input_name(p);
  s.text("points_text", names);
  s.number("scale_x", ux.scale);
  s.number("scale_y", uy.scale);
  return {{{"pareto.gp", stem, {s.code()}}}, {}};
}

std::string part_name(const std::string& key) {
  return key.rfind("gpu_", 0) == 0 ? "GPU " + input_name(key.substr(4)) : input_name(key);
}

// A group of outputs stacked, a bar a point; parts below half a percent of every bar are one.
Figures breakdown_figure(const std::string& stem, const Study& study, size_t k, const CsvTable& table) {
  const StudyFigure& f = study.figures[k];
  const std::string group = f.y + ".";
  Texts parts;
  for (const std::string& column : table.columns())
    if (column.rfind(group, 0) == 0) parts.push_back(column);
  struct Bar {
    std::string name;
    std::vector<double> values;
    double total = 0;
  };
  std::vector<Bar> bars;
  double largest = 0;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (failed(table, row)) continue;
    Bar bar;
    bar.name = input_value(table.text(row, f.x));
    if (!f.series.empty()) bar.name += ", " + series_name(f, table.text(row, f.series));
    for (const std::string& part : parts) {
      bar.values.push_back(table.number(row, part).value_or(0));
      bar.total += bar.values.back();
    }
    largest = std::max(largest, bar.total);
    bars.push_back(std::move(bar));
  }
  if (bars.empty() || parts.empty() || largest <= 0)
    return {{}, {fmt::format("figure {}: no point has values of {}", k + 1, f.y)}};
  std::vector<bool> kept(parts.size(), false);
  for (size_t p = 0; p < parts.size(); ++p)
    for (const Bar& bar : bars)
      if (bar.values[p] > 0.005 * bar.total && parts[p] != group + "other") kept[p] = true;
  std::string data = "x";
  size_t shown = 0;
  for (size_t p = 0; p < parts.size(); ++p)
    if (kept[p]) data += "," + csv_line_field(part_name(parts[p].substr(group.size()))), ++shown;
  bool rest = false;
  for (const Bar& bar : bars)
    for (size_t p = 0; p < parts.size(); ++p) rest = rest || (!kept[p] && bar.values[p] > 0.0005 * bar.total);
  if (rest) data += ",other", ++shown;
  data += "\n";
  for (const Bar& bar : bars) {
    data += csv_line_field(bar.name);
    double other = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      if (kept[p])
        data += fmt::format(",{}", bar.values[p]);
      else
        other += bar.values[p];
    }
    if (rest) data += fmt::format(",{}", other);
    data += "\n";
  }
  write_file(stem + ".csv", data);
  const ShownUnit unit = shown_unit(parts.front(), largest);
  Texts names;
  for (const Bar& bar : bars) names.push_back(bar.name);
  Settings s;
  s.number("rotated", rotated(names));
  s.text("title_text", figure_title(study, k));
  s.text("x_text", f.x_label.empty() ? input_name(f.x) : f.x_label);
  s.text("y_text", column_label(f.y, f.label.empty() ? part_name(f.y.substr(f.y.rfind('.') + 1)) : f.label, unit));
  s.number("scale", unit.scale);
  s.number("n", static_cast<double>(shown));
  s.number("bars", static_cast<double>(bars.size()));
  return {{{"breakdown.gp", stem, {s.code()}}}, {}};
}

}  // namespace

std::string input_name(const std::string& pointer) {
  std::string name = pointer.substr(pointer.rfind('/') == std::string::npos ? 0 : pointer.rfind('/') + 1);
  for (const char* known : {"tp", "pp", "vp", "cp", "dp", "ep", "mbs", "gbs"})
    if (name == known)
      for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string input_value(const std::string& value) {
  if (value.size() > 5 && value.compare(value.size() - 5, 5, ".json") == 0) return fs::path(value).stem().string();
  return value;
}

ShownUnit shown_unit(const std::string& path, double largest) {
  const std::string unit = unit_of(path);
  const double v = std::abs(largest);
  if (path == "step.mfu" || path == "power.shelf_headroom") return {100, "%"};
  if (unit == "s") {
    if (v >= 5 * 86400) return {1.0 / 86400, "d"};
    if (v >= 3 * 3600) return {1.0 / 3600, "h"};
    if (v >= 600) return {1.0 / 60, "min"};
    if (v >= 1 || v == 0) return {1, "s"};
    return v >= 1e-3 ? ShownUnit{1e3, "ms"} : ShownUnit{1e6, "us"};
  }
  if (unit == "tokens/s" || unit == "samples/s" || unit == "samples") {
    for (const auto& [factor, name] : {std::pair{1e9, "billion "}, {1e6, "million "}, {1e3, "thousand "}})
      if (v >= factor) return {1 / factor, name + unit};
    return {1, unit};
  }
  if (unit == "W" || unit == "J" || unit == "B") {
    for (const auto& [factor, prefix] : {std::pair{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
      if (v >= (unit == "W" ? 5 * factor : factor)) return {1 / factor, prefix + unit};
    return {1, unit};
  }
  if (unit == "kg" && v >= 1e4) return {1e-3, "t"};
  if (unit == "kg" && v < 1) return {1e3, "g"};
  return {1, unit};
}

std::string figure_stem(const Study& study, size_t k) {
  return fmt::format("{}-{}", file_name_of(study.name), k + 1);
}

std::string figure_title(const Study& study, size_t k) {
  return study.figures[k].title.empty() ? study.name : study.figures[k].title;
}

Figures study_figures(const std::string& folder, const Study& study, const CsvTable& table) {
  Figures all;
  for (size_t k = 0; k < study.figures.size(); ++k) {
    const StudyFigure& f = study.figures[k];
    const std::string stem = (fs::path(folder) / figure_stem(study, k)).string();
    if (f.kind == FigureKind::pareto) {
      all.add(pareto_figure(stem, study, k, table));
    } else if (f.kind == FigureKind::breakdown) {
      all.add(breakdown_figure(stem, study, k, table));
    } else {
      const Grid grid = grid_of(table, f.x, f.series, f.y);
      if (grid.cells.empty())
        all.add({{}, {fmt::format("figure {}: no point has a value of {}", k + 1, f.y)}});
      else if (grid.cells.size() < 2)
        all.add({{}, {fmt::format("figure {}: a single point is no figure; its values are in sweep.csv", k + 1)}});
      else if (f.kind == FigureKind::scaling)
        all.add(scaling_figure(stem, study, k, grid));
      else if (f.kind == FigureKind::heatmap)
        all.add(heat_map(stem, study, k, grid));
      else
        all.add(line_figure(stem, study, k, grid));
    }
  }
  return all;
}

}  // namespace tw::report
