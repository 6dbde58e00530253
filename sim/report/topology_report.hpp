// What a cluster's graph holds: switches, cables, ports, oversubscription, bisection, routes.
#pragma once

#include <string>

#include "topology/inspect.hpp"

namespace tw::report {

// `summary`: of the fabric, topology_summary().
std::string topology_table(const Cluster& cluster, const Fabric& fabric, const TopologySummary& summary);
std::string topology_json(const Cluster& cluster, const Fabric& fabric, const TopologySummary& summary);
// Links that carry traffic between two ends, with each one's share of the bytes, and the equal-cost choice at every
// switch. `a`, `b`: nodes as "node-3" (all their adapters) or adapters as "node-3 nic 2". Throws InputError for a name
// that is neither, and for an adapter or switch that has failed.
std::string route_table(const Fabric& fabric, const std::string& a, const std::string& b);
// The same choices as data: an array, an entry for each pair of adapters.
std::string route_json(const Fabric& fabric, const std::string& a, const std::string& b);
// Graphviz: nodes, switches and cables.
std::string topology_dot(const Fabric& fabric);

}  // namespace tw::report
