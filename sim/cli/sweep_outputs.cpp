#include "cli/sweep_outputs.hpp"

#include "cli/outputs.hpp"
#include "core/files.hpp"
#include "report/sweep_report.hpp"

namespace tw::cli {

void write_sweep_outputs(Console& console, const std::string& folder) {
  SweepStore store(folder);
  const Study study = study_from_canonical(store.about().canonical);
  const report::SweepTable table = report::sweep_table_of(store);
  store.close();
  write_file(in_folder(folder, "sweep.csv"), report::sweep_csv(table));
  const std::string text = report::sweep_table(study, table);
  write_file(in_folder(folder, "table.txt"), text);
  for (const std::string& note : report::draw(report::sweep_figures(folder, study, table))) console.message(note);
  console.result(text);
}

}  // namespace tw::cli
