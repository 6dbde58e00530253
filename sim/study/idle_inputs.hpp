// Inputs that a scenario gives and that act on nothing beside its others.
#pragma once

#include <string>
#include <vector>

#include "core/document.hpp"
#include "study/scenario.hpp"

namespace tw {

// A line for each: the key, and what keeps it from acting. Only what the scenario or a --set gives itself is told of,
// not what stands in files of models and clusters, which serve others too. The scenario has passed its checks.
std::vector<std::string> idle_inputs(const Scenario& scenario, const Document& document);

}  // namespace tw
