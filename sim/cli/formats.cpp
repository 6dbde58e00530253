#include "cli/formats.hpp"

#include <algorithm>
#include <memory>

#include "cli/outputs.hpp"
#include "report/rows.hpp"

namespace tw::cli {
namespace {

const std::vector<std::string> kFormats{"table", "csv", "json", "sqlite"};

struct Asked {
  std::string format = "table", file;  // no file: stdout
};

ExitCode run_for_rows(const Asked& asked, std::string& json, const std::function<ExitCode(Console&)>& run,
                      Console& console) {
  if (asked.format == "table") {
    if (!asked.file.empty()) console.faults.add({"--rows", "", "needs a format", "--format csv, json or sqlite"});
    return run(console);
  }
  if (!json.empty()) console.faults.add({"--format", "", "cannot be combined with --json", "one of them"});
  if (asked.format == "sqlite" && (asked.file.empty() || asked.file == "-"))
    console.faults.add({"--format", "", "a database cannot go to stdout", "--rows FILE"});
  json = "-";
  std::string captured;
  console.capture = &captured;
  const ExitCode code = run(console);
  console.capture = nullptr;
  if (captured.empty()) return code;
  const std::string to = asked.file.empty() ? "-" : asked.file;
  if (asked.format == "json")
    write_output(console, to, captured);
  else if (asked.format == "csv")
    write_output(console, to, report::rows_csv(report::rows_of_json(captured)));
  else
    report::write_rows_sqlite(asked.file, report::rows_of_json(captured));
  return code;
}

}  // namespace

Command with_formats(Command command) {
  const auto json =
      std::find_if(command.options.begin(), command.options.end(), [](const Option& o) { return o.names == "--json"; });
  if (json == command.options.end()) return command;
  std::string* const target = *std::get_if<std::string*>(&json->target);
  const auto asked = std::make_shared<Asked>();
  const auto read = [asked](const std::string& word) {
    asked->format = word;
    return std::count(kFormats.begin(), kFormats.end(), word) > 0 ? std::string() : choice_problem(word, kFormats);
  };
  const auto after = json + 1;
  const auto rows = command.options.insert(
      after, output_file("--rows", "where --format writes to (default: stdout, in place of the table)", &asked->file));
  command.options.insert(rows,
                         option("--format", "FORMAT", "rows as table (default), csv, json or sqlite", Reader(read)));
  command.run = [asked, target, run = std::move(command.run)](Console& console) {
    return run_for_rows(*asked, *target, run, console);
  };
  return command;
}

}  // namespace tw::cli
