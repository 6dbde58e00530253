// Manual pages and shell completion, made from the same declarations as the help.
#pragma once

#include <string>

namespace tw::cli {

// trainwatt.1 and trainwatt-COMMAND.1 in FOLDER.
void write_manual(const std::string& folder);
// trainwatt.bash and _trainwatt (zsh) in FOLDER.
void write_completion(const std::string& folder);

}  // namespace tw::cli
