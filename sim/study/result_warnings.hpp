// What a reader of a result has to know beside its numbers.
#pragma once

#include "power/power_run.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

// Adds to result.warnings: what its inputs leave out, what is an estimate, what does not belong together.
void warn_about(Result& result, const LoadedScenario& loaded, const PowerRun& power);

}  // namespace tw
