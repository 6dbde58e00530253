// Plans that a search found, for people and for programs.
#pragma once

#include <string>

#include "study/plan_search.hpp"

namespace tw::report {

// How many plans were looked at, the best ones, why the best wins, and what stands in its way.
std::string plan_table(const PlanSearch& search, size_t most);

// {"objectives", "considered", "left_out", "estimated", "simulated", "plans": [{"plan", "recompute", "sharding",
//  "values", "front", "step_s", "estimated_step_s", "breakdown_s", ...}], "beyond_limits": [...], "too_large": [...]}
std::string plan_json(const PlanSearch& search, const std::string& scenario);

// A scenario that builds on another and has the plan of a candidate.
std::string plan_scenario(const PlanCandidate& candidate, const std::string& use, const std::string& name);

}  // namespace tw::report
