// The page of a folder that `import -o` wrote (`trainwatt report`).
#pragma once

#include <string>

namespace tw::mlperf {

constexpr const char* kImportFile = "import.json";

// Scores, figures, runs and findings; numbers carry their place in import.json. Throws InputError when that is damaged.
std::string import_page(const std::string& folder);

}  // namespace tw::mlperf
