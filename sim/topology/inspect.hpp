// Looking at a fabric: counts, ports, oversubscription, bisection, diameter, and why a message goes where it goes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "topology/fabric.hpp"
#include "topology/routing.hpp"

namespace tw {

// Switches of one level, from the leaves up.
struct LevelSummary {
  int tier = 1;
  std::string name;  // "leaf", "spine", "core"; "router", "switch" where there are no levels
  int switches = 0, failed = 0;
  int ports = 0, ports_used = 0;  // of all together
  int ports_free() const { return ports - ports_used; }
  double down_Bps = 0, up_Bps = 0;  // of all live cables to the level below and above (other groups), one direction
  // Bandwidth from below over bandwidth to above; nothing at the top.
  std::optional<double> oversubscription() const {
    return up_Bps > 0 ? std::optional<double>(down_Bps / up_Bps) : std::nullopt;
  }
};

struct CableSummary {
  std::string kind;  // "NIC", "leaf-spine", ...
  int count = 0, failed = 0;
  double least_Bps = 0, most_Bps = 0;  // line rate of one, one direction
};

struct TopologySummary {
  std::string cluster, kind;
  int nodes = 0, gpus = 0, nvlink_domains = 0, switches = 0, cables = 0;
  std::vector<LevelSummary> levels;
  std::vector<CableSummary> cable_kinds;
  // Largest flow from the first half of the nodes to the second, and that over what their adapters could send.
  double bisection_Bps = 0;
  double bisection_share = 0;
  int diameter = 0;  // cables on the longest shortest path between two nodes
  std::vector<std::string> failed;
  std::vector<std::string> warnings;
};
// `progress` is told how many ends the longest way was sought from, of all: with failed parts each is searched from.
using InspectProgress = std::function<void(size_t done, size_t all)>;
TopologySummary topology_summary(const Fabric& fabric, const InspectProgress& progress = {});

// Largest flow from one set of nodes to another over the live fabric, B/s. Nodes do not pass on.
double max_flow_Bps(const Fabric& fabric, const std::vector<int>& from, const std::vector<int>& to);

struct RouteStep {
  std::string at;                       // the switch
  std::vector<std::string> equal_cost;  // where a shortest path may go next
  int links = 0;                        // cables to them
  double links_Bps = 0;                 // together
  std::string taken;                    // where this message goes; "all" when it is sprayed
};
struct RouteExplanation {
  std::string from, to;
  std::string policy;  // "adaptive", "ecmp", "NVLink"
  std::vector<RouteStep> steps;
  int cables = 0;
  double latency_s = 0;
  double bandwidth_Bps = 0;                // of one message alone
  std::vector<std::string> lines() const;  // for people
};

// Ends are "node-3" (its first adapter) or "node-3 nic 2". Throws InputError naming an end that does not exist, or what
// has failed when there is no way.
RouteExplanation explain_route(const Fabric& fabric, const std::string& from, const std::string& to, uint64_t seed = 1);

// Graphviz text, and a drawing of its own: levels from the nodes up, units side by side.
std::string dot_text(const Fabric& fabric);
std::string svg_text(const Fabric& fabric);

}  // namespace tw
