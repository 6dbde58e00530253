// Checks of output names before anything is simulated, shared by the subcommands.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "topology/cluster.hpp"

namespace tw::cli {

// Adds a fault when `folder` exists and is no folder, or cannot be written to.
void check_output_folder(const std::string& option, const std::string& folder, Faults& faults);
// The same for a file ("-" is stdout).
void check_output_file(const std::string& option, const std::string& file, Faults& faults);

std::string in_folder(const std::string& folder, const std::string& name);

// Writes to a file, or to stdout for "-".
void write_output(const Console& console, const std::string& file, const std::string& text);
// The same of what is made piece by piece, as it may be too large for the memory.
using Pieces = std::function<void(const std::function<void(std::string_view)>& write)>;
void write_output(const Console& console, const std::string& file, const Pieces& pieces);

// Those asked for; 0: one a processor.
int workers(int asked);

// A cluster of its own, with overrides. Good only where no fault was added.
Cluster load_cluster(const std::string& file, const std::vector<std::string>& set, Faults& faults);

// Longest time one scenario may take.
constexpr double kDeadline_s = 3600;

}  // namespace tw::cli
