#include "report/figure_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "facility/hourly_series.hpp"
#include "report/output_keys.hpp"

namespace tw::report {
namespace {

// "400 Gbit/s" -> 400 and "Gbit/s"; nothing for a text that is no number with a unit.
struct Leading {
  double value = 0;
  std::string unit;
};
std::optional<Leading> leading_number(const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(v)) return std::nullopt;
  std::string unit(end);
  if (!unit.empty() && unit.front() != ' ') return std::nullopt;  // "8x" is a name
  if (!unit.empty()) unit.erase(0, 1);
  return Leading{v, unit};
}

// Times become the hours of their first day.
bool read_times(Axis& axis) {
  std::optional<int64_t> midnight;
  int64_t offset_s = 0;  // of the first, for all: hours that pass, whatever the clocks do
  for (const std::string& text : axis.texts) {
    const auto time = parse_time(text);
    if (!time) return axis.numbers.clear(), false;
    if (!midnight) offset_s = time->offset_s.value_or(0);
    const int64_t local_s = time->utc_s + offset_s;
    if (!midnight) {
      midnight = local_s - local_s % 86400;
      axis.unit = "hour of " + text.substr(0, 10);
    }
    axis.numbers.push_back(static_cast<double>(local_s - *midnight) / 3600);
  }
  return !axis.numbers.empty();
}

Axis axis_of(Texts texts) {
  Axis axis;
  axis.texts = std::move(texts);
  if (read_times(axis)) return axis;
  for (const std::string& text : axis.texts) {
    const auto leading = leading_number(text);
    if (!leading || (!axis.numbers.empty() && leading->unit != axis.unit)) {
      axis.numbers.clear();
      axis.unit.clear();
      return axis;
    }
    axis.numbers.push_back(leading->value);
    axis.unit = leading->unit;
  }
  if (!axis.numbers.empty()) {
    const auto [least, most] = std::minmax_element(axis.numbers.begin(), axis.numbers.end());
    axis.logarithmic = *least > 0 && *most / *least >= 7.9;
  }
  return axis;
}

std::string x_label_of(const StudyFigure& f, const Axis& axis) {
  const std::string name = f.x_label.empty() ? input_name(f.x) : f.x_label;
  return axis.unit.empty() ? name : fmt::format("{} ({})", name, axis.unit);
}

// Tics at the values themselves while there is room for them.
std::string tics_of(const Axis& axis, bool labels) {
  std::string tics;
  if (axis.numbers.size() > 14) return tics;
  for (const double v : axis.numbers)
    tics += fmt::format("{}\"{}\" {:g}", tics.empty() ? "" : ", ", labels ? fmt::format("{:g}", v) : "", v);
  return tics;
}

}  // namespace

void Settings::text(const char* name, const std::string& value) {
  std::string quoted;
  for (const char c : value) quoted += c == '\'' ? "''" : std::string(1, static_cast<unsigned char>(c) < ' ' ? ' ' : c);
  code_ += fmt::format("{} = '{}'; ", name, quoted);
}

void Settings::number(const char* name, double value) {
  // A whole number without its point would be divided as an integer.
  code_ += std::floor(value) == value && std::abs(value) < 1e9 ? fmt::format("{} = {:.1f}; ", name, value)
                                                               : fmt::format("{} = {:.9g}; ", name, value);
}

bool failed(const CsvTable& table, size_t row) {
  return table.has("error") && !table.text(row, "error").empty();
}

Grid grid_of(const CsvTable& table, const std::string& x, const std::string& series, const std::string& y) {
  Grid grid;
  Texts xs;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (failed(table, row) || !table.has(y)) continue;
    const auto value = table.number(row, y);
    if (!value) continue;
    const std::string s = series.empty() ? "" : table.text(row, series);
    add_once(xs, table.text(row, x));
    add_once(grid.series, s);
    grid.cells[{table.text(row, x), s}] = table.text(row, y);
    grid.largest = std::max(grid.largest, std::abs(*value));
    grid.least = std::min(grid.least, std::abs(*value));
  }
  grid.x = axis_of(std::move(xs));
  return grid;
}

std::string column_label(const std::string& path, const std::string& label, const ShownUnit& unit) {
  std::string text = label;
  if (text.empty()) {
    const OutputKey* key = find_output_key(path);
    text = key == nullptr ? path : key->meaning;
    text = text.substr(0, text.find_first_of(",;:"));
  }
  return unit.name.empty() || unit.name == "1" ? text : fmt::format("{} ({})", text, unit.name);
}

std::string series_name(const StudyFigure& f, const std::string& value) {
  return f.series.empty() ? "" : input_name(f.series) + " " + input_value(value);
}

double rotated(const Texts& names) {
  size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, input_value(name).size());
  return longest * names.size() > 90 ? 1 : 0;
}

Settings common_settings(const Study& study, size_t k, const Grid& grid, const ShownUnit& unit) {
  const StudyFigure& f = study.figures[k];
  Settings s;
  s.text("title_text", figure_title(study, k));
  s.text("x_text", x_label_of(f, grid.x));
  s.text("y_text", column_label(f.y, f.label, unit));
  s.number("scale", unit.scale);
  s.number("n", static_cast<double>(grid.series.size()));
  s.text("tics", tics_of(grid.x, true));
  s.text("bare_tics", tics_of(grid.x, false));
  s.number("rotated", grid.x.numbers.empty() ? rotated(grid.x.texts) : 0);
  s.number("log_x", grid.x.logarithmic ? 1 : 0);
  return s;
}

}  // namespace tw::report
