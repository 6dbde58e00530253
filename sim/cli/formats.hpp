// --format and --rows of every command that can write JSON: its rows as a table, CSV, JSON or SQLite.
#pragma once

#include "cli/command.hpp"

namespace tw::cli {

// The command with both options, when it declares --json; else as it is. Its JSON is what the rows are taken from, so
// that nothing is said twice.
Command with_formats(Command command);

}  // namespace tw::cli
