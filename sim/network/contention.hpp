// Background traffic on a fabric, and the links on which jobs meet.
#pragma once

#include <string>
#include <vector>

#include "network/collective.hpp"

namespace tw::network {

// Traffic that is not a collective: each source node sends to the destination nodes in equal parts, through all its
// adapters (reads from storage nodes, a copy between jobs). Payload is counted for each source. `remark`, when given,
// gets what CollectiveCost::remark would say.
LoadClass traffic_load(Router& router, const Fabric& fabric, const std::string& name, const std::vector<int>& sources,
                       const std::vector<int>& destinations, std::string* remark = nullptr);

// The link on which class `job` gets least when all classes send at once and share each link by halves, thirds, ...;
// -1 when it loads none.
int narrowest_link(const std::vector<Link>& links, const std::vector<LoadClass>& classes, size_t job);

}  // namespace tw::network
