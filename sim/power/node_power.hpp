// What a node draws on its DC bus, part by part.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "hardware/activity.hpp"
#include "hardware/gpu_power.hpp"
#include "step/timeline.hpp"
#include "topology/cluster.hpp"

namespace tw {

// Watts (or joules) of the parts of a node; total() is the node on its bus.
struct NodeParts {
  ActivityTimes gpus;  // boards, by what they do
  double conversion = 0, host = 0, nvswitch = 0, nics = 0, fans = 0;
  double total() const { return gpus.total() + conversion + host + nvswitch + nics + fans; }
  void add(const NodeParts& o, double factor);
};
constexpr std::array<std::string_view, 5> kNodePartNames{"conversion", "host", "nvswitch", "nics", "fans"};
std::array<double, 5> other_parts(const NodeParts& p);  // in the order of kNodePartNames

// What the job does as far as power is concerned.
struct NodeState {
  bool over_fabric = false;  // the job spans more than one node
  bool in_step = false;      // training steps run: gaps between kernels draw gap_power, not spin
};

// `shares`: of the wall time of each GPU of the node, kernels already lengthened by the limit.
NodeParts node_parts(const NodeType& node, const ActivityTimes& shares, Power gpu_limit, NodeState state);

// A node through a phase of a timeline: its stretches are held to the limit one by one. `over_fabric`: the job spans
// more than one node.
NodeParts phase_node_parts(const NodeType& node, const Phase& phase, Power board_limit, bool over_fabric);

// Boards differ: a draw for each node of the cluster, bounded at three standard deviations, the same whatever else
// runs.
double spread_factor(const NodeType& node, uint64_t seed, int number);

// A node that is on and has no job.
NodeParts idle_node(const NodeType& node, Power gpu_limit);

// The board limit in force: an operator's cap or that of the board, whichever is lower.
Power effective_limit(const NodeType& node, const std::optional<Power>& cap);

}  // namespace tw
