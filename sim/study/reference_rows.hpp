// Predicted figures beside the measured ones of a scenario.
#pragma once

#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

// Fills result.reference from the scenario's measured figures; quantities as in study/validate.hpp.
void fill_reference(Result& result, const Reference& reference);

}  // namespace tw
