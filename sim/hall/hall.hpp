// Many jobs in one hall, on one clock: from one event to the next, nothing in between.
#pragma once

#include "hall/hall_plan.hpp"
#include "hall/hall_result.hpp"

namespace tw::hall {

// Throws DoesNotFit, one line, for a job that can never start and a limit that idle nodes alone exceed while the hall
// is looked at.
void check_hall(const HallPlan& plan);

constexpr double kMostNodeFailures = 1e5;  // of all nodes of a hall
// The second of them at one moment, for halls whose end nobody knows beforehand.
void check_idle(const HallPlan& plan, double then_s);
// `keep_power`: with HallOutcome::power and stays, for tables and figures.
HallOutcome run_hall(const HallPlan& plan, uint64_t seed, bool keep_power = true);

}  // namespace tw::hall
