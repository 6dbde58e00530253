// Figures through gnuplot: SVG and PNG, with the data beside each as CSV.
#pragma once

#include <string>
#include <vector>

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/validate.hpp"

namespace tw::report {

// Draws plots/SCRIPT from STEM.csv to STEM.svg and STEM.png; `arguments` follow the data file. Returns what a user should
// hear, such as that gnuplot is missing.
std::vector<std::string> draw_figure(const std::string& script, const std::string& stem,
                                     const std::vector<std::string>& arguments);

// A name as a file name: letters, digits, dot, dash and underscore.
std::string file_name_of(const std::string& name);

// One point of "predicted against measured".
struct ErrorPoint {
  std::string label;
  RowKind kind = RowKind::predicted;
  double error_pct = 0;
  Maybe bound_pct;
};

std::vector<ErrorPoint> error_points(const SuiteOutcome& suite);
std::vector<ErrorPoint> error_points(const std::vector<Outcome>& outcomes);

// Node power over time, and the measured trace under it where the scenario names one. Writes
// FOLDER/power-NAME.{csv,svg,png}; returns what a user should hear, such as that gnuplot is missing. Throws InputError
// when files cannot be written.
std::vector<std::string> power_figure(const std::string& folder, const Scenario& scenario, const Result& result);

// Writes FOLDER/NAME.{csv,svg,png}.
std::vector<std::string> error_figure(const std::string& folder, const std::string& name, const std::string& title,
                                      const std::vector<ErrorPoint>& points);

}  // namespace tw::report
