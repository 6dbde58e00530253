// What a cluster's graph holds: switches, cables, ports, oversubscription, routes.
#pragma once

#include <string>

#include "topology/fabric.hpp"

namespace tw::report {

std::string topology_table(const Cluster& cluster, const Fabric& fabric);
std::string topology_json(const Cluster& cluster, const Fabric& fabric);
// Links that carry traffic between two nodes, with each one's share of the bytes. `a`, `b`: names of nodes, as node-3.
// Throws InputError for a name that is no node.
std::string route_table(const Fabric& fabric, const std::string& a, const std::string& b);
// Graphviz: nodes, switches and cables.
std::string topology_dot(const Fabric& fabric);

}  // namespace tw::report
