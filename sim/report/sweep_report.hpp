// Studies as a table: a row a point, its inputs, its outputs, its error; and figures of them.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"
#include "study/simulate.hpp"
#include "study/sweep.hpp"
#include "study/sweep_store.hpp"

namespace tw::report {

// Finished points in order. Outputs are named by the path of their keys ("step.time_s", "power.node_dc_w.mean"), in the
// order of the contract; lists and texts are left out. A value that does not apply has an empty text.
struct SweepTable {
  struct Row {
    size_t point = 0;
    std::vector<std::string> inputs;
    std::string status, error;         // done, skipped or failed, and why
    std::vector<std::string> outputs;  // may be shorter than the columns
  };
  std::vector<std::string> inputs, outputs;  // columns
  std::vector<Row> rows;
  std::string value(const Row& row, const std::string& name) const;
};
SweepTable sweep_table_of(const SweepStore& store);

// Columns: point, the pointers, error, status, then the outputs.
std::string sweep_csv(const SweepTable& table);

// The same for people: inputs, step time, time to train, node power, energy, error; at most `most` rows.
std::string sweep_table(const Study& study, const SweepTable& table, size_t most = 40);

// FOLDER/NAME-1.{csv,svg,png}, ... for the figures of the study.
Figures sweep_figures(const std::string& folder, const Study& study, const SweepTable& table);

// FOLDER/step-breakdown-1.{csv,svg,png}: where a step goes, a bar a scenario.
Figures step_breakdown_figure(const std::string& folder, const std::vector<Outcome>& outcomes);

}  // namespace tw::report
