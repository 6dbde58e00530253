#include "study/lab_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/codec.hpp"
#include "core/csv.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "hardware/gpu_power.hpp"
#include "study/validate.hpp"

namespace tw {

ActivityTimes LabPhase::mix(double iterations_per_s) const {
  double busy = share;
  if (kernel.value() > 0) {
    const double filled = tiles > 0 ? std::min(1.0, static_cast<double>(tiles) / multiprocessors) : 1;
    busy = iterations_per_s * per_iteration * kernel.value() * filled;
  }
  ActivityTimes t;
  t[rest] = 1 - std::min(1.0, busy);
  t[activity] += std::min(1.0, busy);
  return t;
}

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
    const auto known =
        std::find_if(phases.phases.begin(), phases.phases.end(), [&](const LabPhase& p) { return p.phase == phase; });
    if (board == boards.end() || known == phases.phases.end()) {
      faults.add({phases.csv, fmt::format("/{}", i),
                  board == boards.end() ? fmt::format("no profile for \"{}\"", gpu)
                                        : fmt::format("the suite does not describe phase \"{}\"", phase),
                  ""});
      continue;
    }
    Accelerator used = board->second;
    used.power = with_toggling(used.power, known->toggling);
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
    const ActivityTimes mix = known->mix(table.number(i, "iterations_per_s").value_or(0));
    row.predicted = board_power(used, mix, used.board_limit).watts;
    row.error_pct = error_pct(row.predicted, row.row.measured);
    rows.push_back(std::move(row));
  }
  return rows;
}

void LabPhase::describe(Description<LabPhase>& d) {
  d.object("lab_phase", "What an accelerator does in a steady phase of a laboratory.");
  d.required("phase", &LabPhase::phase, "cell of column phase");
  d.required("activity", &LabPhase::activity, "what it does");
  d.optional("share", &LabPhase::share, "share of the time that it does so", between(0, 1));
  d.optional("rest", &LabPhase::rest, "what it does the rest of the time");
  d.optional("kernel", &LabPhase::kernel, "time of one kernel: the share is the rate of kernels times this");
  d.optional("per_iteration", &LabPhase::per_iteration, "kernels of an iteration of the table", above(0));
  d.optional("tiles", &LabPhase::tiles, "tiles of one kernel, where it does not fill the device");
  d.optional("multiprocessors", &LabPhase::multiprocessors, "of the device", at_least(1));
  d.optional("toggling", &LabPhase::toggling, "0: data of zeros", between(0, 1));
  d.optional("source", &LabPhase::source, "where the numbers come from");
}

void PowerPhases::describe(Description<PowerPhases>& d) {
  d.object("power_phases", "A table of steady power phases of accelerators, one row each (quantity phase_w).");
  d.required("csv", &PowerPhases::csv, "the table: columns gpu, phase, watts_each, watts_mean, iterations_per_s");
  d.required("accelerators", &PowerPhases::accelerators, "accelerator profile by the cells of column gpu");
  d.required("phases", &PowerPhases::phases, "what the accelerator does in each phase");
  d.optional("bound_pct", &PowerPhases::bound_pct, "largest error allowed, in percent", above(0));
}

}  // namespace tw
