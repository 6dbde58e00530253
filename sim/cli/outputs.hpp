// Checks of output names before anything is simulated, shared by the subcommands.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace tw::cli {

// Adds a fault when `folder` exists and is no folder, or cannot be written to.
void check_output_folder(const std::string& option, const std::string& folder, Faults& faults);
// The same for a file ("-" is stdout).
void check_output_file(const std::string& option, const std::string& file, Faults& faults);

// Writes to a file, or to stdout for "-".
void write_output(const Console& console, const std::string& file, const std::string& text);

// Workers when none are asked for: one a processor.
int default_jobs();

// Longest time one scenario may take.
constexpr double kDeadline_s = 3600;

}  // namespace tw::cli
