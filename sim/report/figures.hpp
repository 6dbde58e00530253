// Figures through gnuplot: SVG and PNG, with the data beside each as CSV.
#pragma once

#include <string>
#include <vector>

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/validate.hpp"

namespace tw::report {

// A figure to be: plots/SCRIPT draws STEM.csv to STEM.svg and STEM.png; `arguments` follow the data file.
struct Drawing {
  std::string script, stem;
  std::vector<std::string> arguments;
};

// Figures whose data are written, and what a user should hear of them.
struct Figures {
  std::vector<Drawing> drawings;
  std::vector<std::string> notes;
  void add(Figures more);
};

// One gnuplot draws them all. Returns what a user should hear, such as that gnuplot is missing.
std::vector<std::string> draw(Figures figures);
// The same for one.
std::vector<std::string> draw_figure(const std::string& script, const std::string& stem,
                                     const std::vector<std::string>& arguments);

void add_once(std::vector<std::string>& list, const std::string& text);

// A name as a file name: letters, digits, dot, dash and underscore.
std::string file_name_of(std::string name);

// One point of "predicted against measured".
struct ErrorPoint {
  std::string label;
  RowKind kind = RowKind::predicted;
  double error_pct = 0;
  Maybe bound_pct;
};

std::vector<ErrorPoint> error_points(const SuiteOutcome& suite);
std::vector<ErrorPoint> error_points(const std::vector<Outcome>& outcomes);

// Node power over time, and the measured trace under it where the scenario names one: FOLDER/power-NAME.{csv,svg,png}.
// Throws InputError when files cannot be written, as all of these do.
Figures power_figure(const std::string& folder, const Scenario& scenario, const Result& result);

// FOLDER/NAME.{csv,svg,png}.
Figures error_figure(const std::string& folder, const std::string& name, const std::string& title,
                     const std::vector<ErrorPoint>& points);

}  // namespace tw::report
