// Studies as a table: a row a point, its inputs, its outputs, its error; and figures of them.
#pragma once

#include <string>
#include <vector>

#include "study/sweep.hpp"

namespace tw::report {

// Numbers of a result by the path of their keys in its JSON ("step.time_s", "power.node_dc_w.mean"), in the order of
// the contract; lists are left out. A value that does not apply has an empty text.
std::vector<std::pair<std::string, std::string>> flat_result(const Result& result);

// Columns: point, the pointers, error, then the outputs.
std::string sweep_csv(const Study& study, const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes);

// The same for people: inputs, step time, time to train, node power, error; at most `most` rows.
std::string sweep_table(const Study& study, const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes,
                        size_t most = 40);

// FOLDER/NAME-1.{csv,svg,png}, ... for the figures of the study. Returns what a user should hear.
std::vector<std::string> sweep_figures(const std::string& folder, const Study& study,
                                       const std::vector<StudyPoint>& points, const std::vector<Outcome>& outcomes);

// FOLDER/step-breakdown-1.{csv,svg,png}: where a step goes, a bar a scenario.
std::vector<std::string> step_breakdown_figure(const std::string& folder, const std::vector<Outcome>& outcomes);

}  // namespace tw::report
