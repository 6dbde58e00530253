// trainwatt schema: JSON Schema of the inputs, for editors.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/manual.hpp"
#include "cli/outputs.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "report/output_keys.hpp"
#include "report/reference_pages.hpp"
#include "report/schemas.hpp"

namespace tw::cli {
namespace {

struct SchemaArguments {
  std::string kind, output, markdown, manual, completion;
};

// The help of every command, as the program prints it.
std::string commands_markdown() {
  std::string out =
      "# Commands\n\nMade by `trainwatt schema --markdown docs/reference`; a test holds it against the program.\n\n"
      "Results go to stdout or files, progress and messages to stderr. Exit codes: 0 done, 1 a bug of ours, 2 bad "
      "input,\n"
      "3 a valid input that does not fit (memory, power rating), 4 the simulation failed, 130 interrupted.\n";
  for (const Command& c : commands()) {
    out += fmt::format("\n## trainwatt {}\n\n{}.\n\n{}\n\n| argument | meaning |\n|---|---|\n", c.name, c.summary,
                       fmt::format("```text\n{}\n```", c.examples));
    for (const Option& o : c.options) {
      std::string meaning = o.meaning;
      for (size_t at = 0; (at = meaning.find('|', at)) != std::string::npos; at += 2) meaning.insert(at, "\\");
      out += fmt::format("| `{}{}{}` | {}{} |\n", o.names, o.value.empty() ? "" : " ", o.value, meaning,
                         o.required ? " (required)" : "");
    }
  }
  return out;
}

void write_reference(const std::string& folder) {
  write_file(in_folder(folder, "inputs.md"), report::inputs_markdown());
  write_file(in_folder(folder, "outputs.md"), report::outputs_markdown());
  write_file(in_folder(folder, "commands.md"), commands_markdown());
  write_file(in_folder(folder, "choices.md"), report::choices_markdown());
}

ExitCode run(const SchemaArguments& a, Console& console) {
  const auto schemas = report::schemas();
  Faults& faults = console.faults;
  std::vector<std::string> names;
  for (const auto& entry : schemas) names.push_back(entry.first);
  if (!a.kind.empty() && schemas.count(a.kind) == 0)
    faults.add({"schema", "", fmt::format("unknown kind of input \"{}\"", a.kind), suggest(a.kind, names, 64)});
  faults.throw_if_any();
  if (!a.markdown.empty()) write_reference(a.markdown);
  if (!a.manual.empty()) write_manual(a.manual);
  if (!a.completion.empty()) write_completion(a.completion);
  if (!(a.markdown + a.manual + a.completion).empty() && a.output.empty() && a.kind.empty()) return ExitCode::done;
  for (const auto& [name, text] : schemas) {
    if (!a.kind.empty() && name != a.kind) continue;
    if (!a.output.empty())
      write_file(in_folder(a.output, report::schema_file_name(name)), text);
    else
      console.result(a.kind.empty() ? name + "\n" : text);
  }
  return ExitCode::done;
}

}  // namespace

Command schema_command() {
  const auto a = std::make_shared<SchemaArguments>();
  return {
      "schema",
      "Prints the JSON Schema of an input kind, or lists the kinds",
      "  trainwatt schema\n"
      "  trainwatt schema scenario\n"
      "  trainwatt schema -o schemas\n"
      "  trainwatt schema --markdown docs/reference",
      {option("kind", "KIND", "kind of input, such as scenario or cluster (default: list them)", &a->kind),
       output_folder("-o,--output", "write the schema of the kind, or of all kinds, into DIR", &a->output),
       output_folder("--markdown", "write the reference pages of inputs, outputs and commands into DIR", &a->markdown),
       output_folder("--man", "write the manual pages of all commands into DIR", &a->manual),
       output_folder("--completion", "write the completion of bash and zsh into DIR", &a->completion)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
