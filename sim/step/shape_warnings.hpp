// Kernels whose times are extrapolated, in words for the result.
#pragma once

#include <string>
#include <vector>

#include "step/inputs.hpp"

namespace tw {

// One line for each matrix product of the step that lies far outside what the accelerator's profile measured, and one
// when the profile has no measurements at all.
std::vector<std::string> shape_warnings(const StepInputs& in);

}  // namespace tw
