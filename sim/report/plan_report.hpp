// Plans that a search found, for people and for programs.
#pragma once

#include <string>

#include "report/figures.hpp"
#include "study/hall_fit.hpp"
#include "study/plan_search.hpp"

namespace tw::report {

// How many plans were looked at, the best ones, why the best wins, and what stands in its way.
std::string plan_table(const PlanSearch& search, size_t most);

// {"objectives", "considered", "left_out", "estimated", "simulated", "plans": [{"plan", "recompute", "sharding",
//  "values", "front", "step_s", "estimated_step_s", "breakdown_s", ...}], "beyond_limits": [...], "too_large": [...]}
std::string plan_json(const PlanSearch& search, const std::string& scenario);

// "TP4 PP2 CP1 DP8 MBS1 GA4, zero1".
std::string plan_text(const PlanCandidate& candidate);

// FOLDER/plan-search.{csv,svg,png}: memory of a GPU against the time of a step, or of a sample where batches differ.
Figures plan_figure(const std::string& folder, const PlanSearch& search, const std::string& scenario);

// How many nodes a hall carries, by each way of counting.
std::string fit_table(const HallFit& fit);
// {"scenario", "multiple_of", "node_peak_w", "node_nameplate_w", "fit": [{"by", "limit_w", "nodes", "gbs", ...}]}
std::string fit_json(const HallFit& fit);

// A scenario that builds on another and has the plan of a candidate.
std::string plan_scenario(const PlanCandidate& candidate, const std::string& use, const std::string& name);

}  // namespace tw::report
