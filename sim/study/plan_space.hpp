// All plans of a space that divide and fit.
#pragma once

#include "study/plan_search.hpp"

namespace tw {

// Counts what is considered and left out in `out`. `too_large` gets those that only memory, or only more recomputation,
// stands in the way of.
std::vector<PlanCandidate> enumerate_plans(const Scenario& scenario, const PlanSearchOptions& options, PlanSearch& out,
                                           std::vector<PlanCandidate>& too_large);

// What is asked for and no plan of the scenario can have: told by the option's name, before anything is searched.
void check_plan_space(const LoadedScenario& base, const std::vector<std::string>& overrides, const PlanSpace& space,
                      Faults& faults);

}  // namespace tw
