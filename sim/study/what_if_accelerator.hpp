// What if an accelerator had another peak or memory bandwidth: its kernel tables are times, which have to follow.
#pragma once

#include <string>

#include "hardware/accelerator.hpp"

namespace tw {

class Document;

// When a peak or the memory bandwidth of the accelerator at `pointer` was overridden from outside the profile that
// holds its kernel tables, scales the tables, copy and norm bandwidth (unless they were overridden too) from the
// profile as it stands to the wanted figures, each kernel by the roofline (hardware/calibration.hpp, transferred()),
// and says so in transferred_from. Otherwise leaves `a` as it is.
void follow_what_if(Accelerator& a, const Document& document, const std::string& pointer);

}  // namespace tw
