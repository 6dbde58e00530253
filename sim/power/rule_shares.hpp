// What every rule charges to the first of the jobs of a cluster, from one look at who uses what.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "power/network_rule.hpp"

namespace tw {

// By the names of the rules; absent where a rule is undefined.
std::map<std::string, std::optional<std::vector<SwitchShare>>> shares_by_rule(const Fabric& fabric,
                                                                              const std::vector<NetworkJob>& jobs);

}  // namespace tw
