#include <unistd.h>

#include <cstdio>

#include "cli/command.hpp"
#include "cli/formats.hpp"
#include "cli/terminal.hpp"

namespace tw::cli {

Command hall_command();

const std::vector<Command>& commands() {
  static const std::vector<Command> table = [] {
    std::vector<Command> list{run_command(),        check_command(),    validate_command(),  topology_command(),
                              collective_command(), timeline_command(), calibrate_command(), sweep_command(),
                              hall_command(),       merge_command(),    plan_command(),      compare_command(),
                              report_command(),     import_command(),   read_command(),      schema_command()};
    for (Command& command : list) command = with_formats(std::move(command));
    return list;
  }();
  return table;
}

void Console::result(const std::string& text) const {
  if (capture != nullptr) {
    *capture += text;
    return;
  }
  static const bool colour = wants_colour(STDOUT_FILENO);
  const std::string shown = colour ? coloured(text) : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void Console::message(const std::string& text) const {
  if (!quiet) error(text);
}

void Console::error(const std::string& text) const {
  const std::string line = text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool Console::stderr_is_terminal() const {
  return ::isatty(STDERR_FILENO) == 1;
}

}  // namespace tw::cli
