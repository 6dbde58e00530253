// trainwatt schema: JSON Schema of the inputs, for editors.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "report/schemas.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::string kind, output;
};

ExitCode run(const Arguments& a, Console& console) {
  const auto schemas = report::schemas();
  Faults faults;
  check_output_folder("-o", a.output, faults);
  std::vector<std::string> names;
  for (const auto& entry : schemas) names.push_back(entry.first);
  if (!a.kind.empty() && schemas.count(a.kind) == 0)
    faults.add({"schema", "", fmt::format("unknown kind of input \"{}\"", a.kind), suggest(a.kind, names, 64)});
  faults.throw_if_any();
  for (const auto& [name, text] : schemas) {
    if (!a.kind.empty() && name != a.kind) continue;
    if (!a.output.empty())
      write_file((std::filesystem::path(a.output) / report::schema_file_name(name)).string(), text);
    else
      console.result(a.kind.empty() ? name + "\n" : text);
  }
  return ExitCode::done;
}

}  // namespace

Command schema_command() {
  const auto a = std::make_shared<Arguments>();
  return {"schema",
          "Prints the JSON Schema of an input kind, or lists the kinds",
          "  trainwatt schema\n"
          "  trainwatt schema scenario\n"
          "  trainwatt schema -o schemas",
          {{"kind", "KIND", "kind of input, such as scenario or cluster (default: list them)", &a->kind, false, {}},
           {"-o,--output", "DIR", "write the schema of the kind, or of all kinds, into DIR", &a->output, false, {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
