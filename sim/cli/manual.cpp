#include "cli/manual.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "core/version.hpp"

namespace tw::cli {
namespace {

// Text of a page in roff: a minus is a minus, a line may not begin with a point or a quote.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    if (c == '\n') out += "\\&";
  }
  return "\\&" + out;
}

std::string heading(const std::string& name, const std::string& summary) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return fmt::format(".TH {} 1 \"\" \"trainwatt {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n", upper, version(),
                     roff(name), roff(summary));
}

std::string options_of(const Command& c) {
  std::string out;
  for (const Option& o : c.options)
    out += fmt::format(".TP\n.B {}{}\n{}{}\n", roff(o.names), o.value.empty() ? "" : " " + roff(o.value),
                       roff(o.meaning), o.required && o.names.front() == '-' ? " (required)" : "");
  return out;
}

std::string page_of(const Command& c) {
  std::string synopsis = "trainwatt " + c.name;
  for (const Option& o : c.options)
    if (o.names.front() != '-') synopsis += o.required ? " " + o.value + "..." : " [" + o.value + "...]";
  return heading("trainwatt-" + c.name, c.summary) + fmt::format(
                                                         ".SH SYNOPSIS\n.B {} [OPTIONS]\n.SH OPTIONS\n{}.SH "
                                                         "EXAMPLES\n.nf\n{}\n.fi\n.SH SEE ALSO\n.BR trainwatt (1)\n",
                                                         roff(synopsis), options_of(c), roff(c.examples));
}

std::string main_page() {
  std::string list, names;
  for (const Command& c : commands()) {
    list += fmt::format(".TP\n.B {}\n{}\n", roff(c.name), roff(c.summary));
    names += fmt::format("{}.BR trainwatt\\-{} (1)", names.empty() ? "" : ",\n", c.name);
  }
  return heading("trainwatt", "predicts time, power, energy and carbon of distributed training") +
         ".SH SYNOPSIS\n.B trainwatt COMMAND [OPTIONS]\n.SH COMMANDS\n" + list +
         ".SH EXIT STATUS\n0 done, 1 a bug of ours, 2 bad input, 3 a valid input that does not fit, 4 the simulation "
         "failed, "
         "130 interrupted.\n.SH FILES\nModels, topologies and scenarios are looked for beside the naming file, in the "
         "working folder, in "
         "$TRAINWATT_DATA, then in /usr/share/trainwatt.\n.SH ENVIRONMENT\n.TP\n.B TRAINWATT_DATA\na folder with "
         "models/, topologies/ and scenarios/\n"
         ".TP\n.B TRAINWATT_ENGINE\nthe engine module, where it is not beside the program\n.TP\n.B NO_COLOR\nno colour "
         "on a terminal\n.SH SEE ALSO\n" +
         names + "\n";
}

std::vector<std::string> names_of(const Command& c) {
  std::vector<std::string> names{"--help"};
  for (const Option& o : c.options)
    if (o.names.front() == '-')
      for (const std::string& name : split(o.names, ',')) names.push_back(name);
  return names;
}

std::string bash() {
  std::string commands_list, cases;
  for (const Command& c : commands()) {
    commands_list += (commands_list.empty() ? "" : " ") + c.name;
    std::string options;
    for (const std::string& name : names_of(c)) options += (options.empty() ? "" : " ") + name;
    cases += fmt::format("    {}) options=\"{}\" ;;\n", c.name, options);
  }
  return fmt::format(
      "# bash completion of trainwatt\n_trainwatt() {{\n  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" options=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$current\"))\n   "
      " return\n  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  case \"$current\" in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n  esac\n}}\ncomplete -o filenames -F _trainwatt "
      "trainwatt\n",
      commands_list, cases);
}

// A text inside single quotes of zsh, where brackets and colons are told apart by the completion itself.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      out += fmt::format("\\{}", c);
    else
      out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string zsh() {
  std::string list, cases;
  for (const Command& c : commands()) {
    list += fmt::format("    '{}:{}'\n", c.name, quoted(c.summary));
    cases += fmt::format("    {})\n      _arguments \\\n", c.name);
    for (const Option& o : c.options) {
      if (o.names.front() != '-') continue;
      for (const std::string& name : split(o.names, ','))
        cases += fmt::format(
            "        '{}[{}]{}' \\\n", name, quoted(o.meaning),
            o.value.empty() ? "" : ":" + quoted(o.value) + ":" + (o.output == Output::folder ? "_files -/" : "_files"));
    }
    cases += "        '*:file:_files' ;;\n";
  }
  return fmt::format(
      "#compdef trainwatt\n_trainwatt() {{\n  local -a commands=(\n{}  )\n  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n    return\n  fi\n  shift words; (( CURRENT-- ))\n  case $words[1] in\n{}  "
      "esac\n}}\n_trainwatt \"$@\"\n",
      list, cases);
}

}  // namespace

void write_manual(const std::string& folder) {
  write_file(in_folder(folder, "trainwatt.1"), main_page());
  for (const Command& c : commands()) write_file(in_folder(folder, "trainwatt-" + c.name + ".1"), page_of(c));
}

void write_completion(const std::string& folder) {
  write_file(in_folder(folder, "trainwatt.bash"), bash());
  write_file(in_folder(folder, "_trainwatt"), zsh());
}

}  // namespace tw::cli
