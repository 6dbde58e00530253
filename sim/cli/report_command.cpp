// trainwatt report: one page of a folder of results.
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "mlperf/import_page.hpp"
#include "report/report_page.hpp"

namespace tw::cli {
namespace {

struct ReportArguments {
  std::string folder, output;
};

ExitCode run(const ReportArguments& a, Console& console) {
  const std::string target = a.output.empty() ? in_folder(a.folder, "report.html") : a.output;
  check_output_file("-o", target, console.faults);
  console.faults.throw_if_any();
  std::error_code ignored;
  const bool imported =
      std::filesystem::is_regular_file(std::filesystem::path(a.folder) / mlperf::kImportFile, ignored);
  write_output(console, target, imported ? mlperf::import_page(a.folder) : report::report_page(a.folder));
  if (target != "-") console.message("wrote " + target);
  return ExitCode::done;
}

}  // namespace

Command report_command() {
  const auto a = std::make_shared<ReportArguments>();
  return {"report",
          "Makes one HTML page of a folder that run, sweep, validate or import wrote",
          "  trainwatt run scenarios/smc-llama2-70b-lora-8n.json -o out\n"
          "  trainwatt report out -o report.html",
          {argument("folder", "DIR", "folder made by run, sweep, validate or import with -o", &a->folder),
           option("-o,--output", "FILE", "the page; - is stdout (default: report.html in DIR)", &a->output)},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
