#include "cli/sweep_outputs.hpp"

#include <filesystem>

#include "core/files.hpp"
#include "report/sweep_report.hpp"

namespace tw::cli {

void write_sweep_outputs(Console& console, const std::string& folder) {
  const auto in_folder = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  SweepStore store(folder);
  const Study study = study_from_canonical(store.about().canonical);
  const report::SweepTable table = report::sweep_table_of(store);
  store.close();
  write_file(in_folder("sweep.csv"), report::sweep_csv(table));
  const std::string text = report::sweep_table(study, table);
  write_file(in_folder("table.txt"), text);
  for (const std::string& note : report::draw(report::sweep_figures(folder, study, table))) console.message(note);
  console.result(text);
}

}  // namespace tw::cli
