// What sweep and merge leave beside sweep.sqlite.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace tw::cli {

// Writes sweep.csv, table.txt and the figures of what FOLDER/sweep.sqlite holds, and prints the table.
void write_sweep_outputs(Console& console, const std::string& folder);

}  // namespace tw::cli
