// Subcommands: each is declared in a file of its own and listed in commands.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/error.hpp"

namespace tw::cli {

// Results go to stdout, messages to stderr.
class Console {
 public:
  bool quiet = false;
  std::string* capture = nullptr;  // takes the results instead of stdout
  Faults faults;                   // of what the command line names: told together with those that the command finds
  void result(const std::string& text) const;
  void message(const std::string& text) const;  // a line; nothing when quiet
  void error(const std::string& text) const;    // a line, also when quiet
  bool stderr_is_terminal() const;
};

struct Command {
  std::string name;
  std::string summary;
  std::string examples;  // shown below the help
  std::vector<Option> options;
  std::function<ExitCode(Console&)> run;
};

// Where a file that the command line names stands; a fault where it is nowhere.
std::optional<std::string> named_file(const std::string& name, Faults& faults);

Command run_command();
Command check_command();
Command validate_command();
Command topology_command();
Command collective_command();
Command timeline_command();
Command calibrate_command();
Command sweep_command();
Command merge_command();
Command plan_command();
Command compare_command();
Command report_command();
Command import_command();
Command read_command();
Command schema_command();

const std::vector<Command>& commands();

// What parse() found: either a command to run, or text to print and an exit code.
struct Parsed {
  const Command* command = nullptr;
  std::string text;
  bool to_stderr = false;
  ExitCode code = ExitCode::done;
};
// Reads the command line (without the program's name) into the targets of the command's options.
Parsed parse(const std::vector<Command>& known, const std::vector<std::string>& arguments);

// The whole program but its signal handling; returns the exit code. Never throws. What one call's options were told
// stays in the commands: a second call needs new ones.
int application(const std::vector<std::string>& arguments, const std::vector<Command>& known = commands());

}  // namespace tw::cli
