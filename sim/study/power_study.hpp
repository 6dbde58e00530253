// The power side of a simulated run: failures of its supply, the grid's view, hourly carbon and cost.
#pragma once

#include "run/run_model.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

// Throws DoesNotFit, with place and time, when a part of the supply is loaded beyond its rating, and InputError when an
// hourly series does not cover the run. `energy` is that of window run.
GridResult grid_view(const LoadedScenario& loaded, const SimulatedRun& run, const PowerRun& power,
                     const RunModel& model, const EnergyResult& energy, double network_w, double samples,
                     double step_s);

}  // namespace tw
