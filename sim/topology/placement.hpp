// Which nodes a job gets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/fabric.hpp"

namespace tw {

enum class Placement { packed, spread };
std::vector<int> place(const Fabric& fabric, Placement placement, int nodes);

// What a scenario says about it.
struct NodePlacement {
  Placement rule = Placement::packed;
  std::vector<std::string> nodes;  // by name; empty: by the rule
  static void describe(Description<NodePlacement>& d);
};
std::vector<int> place(const Fabric& fabric, const NodePlacement& placement, int nodes);
// Names that do not exist or come twice, and a list of the wrong length, told with the place that `at` stands on.
void check_placement(const NodePlacement& placement, int cluster_nodes, int nodes, const ReadContext& at);

// The first n nodes, unit by unit. Throws InputError when the cluster has fewer.
std::vector<int> place_packed(const Fabric& fabric, int nodes);

// n nodes dealt out over all units in turn, so that the job touches as many units as it can. Fabrics without units are
// strided evenly.
std::vector<int> place_spread(const Fabric& fabric, int nodes);

// Node indices by name ("node-3"). Throws InputError naming the one that does not exist or comes twice.
std::vector<int> place_named(const Fabric& fabric, const std::vector<std::string>& names);

// "node-3" -> 3 in a cluster of `nodes` nodes; -1 = no such node.
int node_index(const std::string& name, int nodes);

// The unit a node stands in: that of the switch its first adapter is cabled to; -1 = none.
int unit_of(const Fabric& fabric, int node);

}  // namespace tw
