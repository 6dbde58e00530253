// What figures of a study share: settings of a gnuplot script, the values along an axis, the cells of a table to draw.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/csv.hpp"
#include "report/study_figures.hpp"

namespace tw::report {

using Texts = std::vector<std::string>;

// Settings of a script as gnuplot assignments: there may be no more than nine arguments. In single quotes gnuplot
// knows no escape but the doubled quote.
class Settings {
 public:
  void text(const char* name, const std::string& value);
  void number(const char* name, double value);
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

// The values along an axis: numbers in one unit, or names.
struct Axis {
  Texts texts;
  std::vector<double> numbers;  // empty for names
  std::string unit;
  bool logarithmic = false;  // values that double are as far apart as their ratios
};

// What a line or a cell is drawn from: exact texts by (x, series).
struct Grid {
  Axis x;
  Texts series;  // values of the series' input; one empty text when there is none
  std::map<std::pair<std::string, std::string>, std::string> cells;
  double largest = 0, least = INFINITY;
  const std::string& at(const std::string& xx, const std::string& s) const {
    static const std::string none;
    const auto found = cells.find({xx, s});
    return found == cells.end() ? none : found->second;
  }
};
Grid grid_of(const CsvTable& table, const std::string& x, const std::string& series, const std::string& y);

// Rows with an error are not drawn.
bool failed(const CsvTable& table, size_t row);

// Texts beside the figure: an output with its unit, a value of the series' input.
std::string column_label(const std::string& path, const std::string& label, const ShownUnit& unit);
std::string series_name(const StudyFigure& f, const std::string& value);

// 1 when names below bars have to be turned, 0 while they fit side by side.
double rotated(const Texts& names);

// Titles, unit and tics of figure k.
Settings common_settings(const Study& study, size_t k, const Grid& grid, const ShownUnit& unit);

}  // namespace tw::report
