// Many jobs in one hall, on one clock: from one event to the next, nothing in between.
#pragma once

#include "hall/hall_plan.hpp"
#include "hall/hall_result.hpp"

namespace tw::hall {

// Throws DoesNotFit, one line, for a job that can never start and a limit that idle nodes alone exceed. `keep_power`:
// with HallOutcome::power and stays, for tables and figures.
void check_hall(const HallPlan& plan);
HallOutcome run_hall(const HallPlan& plan, uint64_t seed, bool keep_power = true);

}  // namespace tw::hall
