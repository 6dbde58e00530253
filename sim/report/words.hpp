// What people read for what programs call things: quantities of reference rows, keys of a result.
#pragma once

#include <string>

namespace tw::report {

// "dc_mlperf_j" -> "energy of nodes and network, MLPerf window"; a quantity of no known name with its underscores as
// blanks.
std::string quantity_words(const std::string& quantity);

// "energy.total_dc_j" -> the meaning that the key is described with; else its last part with blanks.
std::string key_words(const std::string& path);

}  // namespace tw::report
