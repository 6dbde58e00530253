#include "study/lab_rows.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "core/codec.hpp"
#include "core/csv.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "hardware/gpu_power.hpp"
#include "power/lab_phases.hpp"
#include "study/validate.hpp"

namespace tw {

std::vector<RowOutcome> phase_rows(const PowerPhases& phases, Faults& faults) {
  std::vector<RowOutcome> rows;
  std::map<std::string, Accelerator> boards;
  for (const auto& [gpu, file] : phases.accelerators) {
    const size_t before = faults.size();
    const Document document = Document::load(file, description<Accelerator>().info(), {}, faults);
    if (faults.size() == before) boards[gpu] = read<Accelerator>(document, faults);
  }
  const auto path = find_input_file(phases.csv, "");
  if (!path) {
    faults.add({phases.csv, "", "there is no such table", ""});
    return rows;
  }
  const CsvTable table = CsvTable::load(*path);
  for (size_t i = 0; i < table.rows(); ++i) {
    const std::string gpu = table.text(i, "gpu"), phase = table.text(i, "phase");
    const auto board = boards.find(gpu);
    const auto mix = lab_phase(phase, table.number(i, "iterations_per_s").value_or(0));
    if (board == boards.end() || !mix) {
      faults.add({phases.csv, fmt::format("/{}", i),
                  board == boards.end() ? fmt::format("no profile for \"{}\"", gpu)
                                        : fmt::format("\"{}\" is no phase that is known here", phase),
                  ""});
      continue;
    }
    Accelerator used = board->second;
    used.power = with_toggling(used.power, mix->toggling);
    RowOutcome row;
    row.row.id = gpu + "/" + phase;
    row.row.quantity = "phase_w";
    row.row.unit = "W";
    // Where only the first board did the work, the mean is blank.
    row.row.measured =
        table.number(i, "watts_mean").value_or(std::strtod(table.text(i, "watts_each").c_str(), nullptr));
    row.row.kind = RowKind::fitted;
    row.row.bound_pct = phases.bound_pct;
    row.row.source = phases.csv + ", " + phase;
    row.predicted = board_power(used, mix->shares, used.board_limit).watts;
    row.error_pct = error_pct(row.predicted, row.row.measured);
    rows.push_back(std::move(row));
  }
  return rows;
}

void PowerPhases::describe(Description<PowerPhases>& d) {
  d.object("power_phases", "A table of steady power phases of accelerators, one row each (quantity phase_w).");
  d.required("csv", &PowerPhases::csv, "the table: columns gpu, phase, watts_each, watts_mean, iterations_per_s");
  d.required("accelerators", &PowerPhases::accelerators, "accelerator profile by the cells of column gpu");
  d.optional("bound_pct", &PowerPhases::bound_pct, "largest error allowed, in percent", above(0));
}

}  // namespace tw
