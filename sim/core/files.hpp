// Files: inputs found by name, outputs written whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

// Folders that hold models/, topologies/, scenarios/, reference/: $TRAINWATT_DATA, then the folder the program was
// built from or installed with.
std::vector<std::string> data_folders();

// `name` as given, else beside the file `named_in`, else in a data folder. Paths come back as short as they were given.
std::optional<std::string> find_input_file(const std::string& name, const std::string& named_in);

// "did you mean ...?" among files of the same folder; empty when there is nothing near.
std::string suggest_file(const std::string& name);

// The whole file; throws InputError when it cannot be read.
std::string read_file(const std::string& path);

// Writes beside the target and renames, so that a reader never sees half a file. Creates folders. Throws InputError
// (the folder is the user's choice) when it cannot.
void write_file(const std::string& path, std::string_view content);

std::string sha256_hex(std::string_view data);

}  // namespace tw
