// Figures of a study, drawn from its table (sweep.csv), whatever wrote it: lines or bars, scaling with its efficiency,
// heat maps, Pareto fronts, stacked breakdowns.
#pragma once

#include <string>
#include <vector>

#include "core/csv.hpp"
#include "report/figures.hpp"
#include "study/sweep.hpp"

namespace tw::report {

// FOLDER/NAME-1.{csv,svg,png}, ... in the order of the study's figures; the CSV files hold exact values in SI units.
// Rows with an error are left out; a figure without data is a note.
Figures study_figures(const std::string& folder, const Study& study, const CsvTable& table);

// "NAME-1", the stem of figure k (from 0), and its title.
std::string figure_stem(const Study& study, size_t k);
std::string figure_title(const Study& study, size_t k);

// An input as a reader knows it: "/plan/nodes" -> "nodes"; "models/accelerators/h100-sxm.json" -> "h100-sxm".
std::string input_name(const std::string& pointer);
std::string input_value(const std::string& value);

// The unit in which a column is shown, chosen by its largest value: "step.time_s" -> 1e3, "ms".
struct ShownUnit {
  double scale = 1;  // shown = exact * scale
  std::string name;
};
ShownUnit shown_unit(const std::string& path, double largest);

}  // namespace tw::report
