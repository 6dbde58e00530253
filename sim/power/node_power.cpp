#include "power/node_power.hpp"

#include <algorithm>
#include <cmath>

namespace tw {

void NodeParts::add(const NodeParts& o, double factor) {
  gpus += o.gpus.scaled(factor);
  conversion += o.conversion * factor;
  host += o.host * factor;
  nvswitch += o.nvswitch * factor;
  nics += o.nics * factor;
  fans += o.fans * factor;
}

std::array<double, 5> other_parts(const NodeParts& p) {
  return {p.conversion, p.host, p.nvswitch, p.nics, p.fans};
}

NodeParts node_parts(const NodeType& node, const ActivityTimes& shares, Power gpu_limit, NodeState state) {
  const NodePower& profile = node.power;
  NodeParts parts;
  GpuPower gpu = node.accelerator.power;
  if (state.in_step && profile.gap_power) gpu.spin = *profile.gap_power;
  parts.gpus = watts_by_activity(gpu, shares, gpu_limit).scaled(node.gpus);
  parts.conversion = profile.conversion_loss * parts.gpus.total();
  parts.host = profile.host_base.value();
  const double moving = std::min(1.0, shares[Activity::collective]);
  parts.nvswitch = profile.nvswitch_load.value() * moving;
  if (state.over_fabric) parts.nics = profile.nic_load.value() * moving;
  if (profile.fan_full.value() > 0) {
    // Flow follows heat (constant temperature rise of the air); power follows flow to the fan exponent.
    const double idle_w = profile.fan_idle.value();
    const double full_heat_w = profile.fan_full_heat.value();
    const double flow = full_heat_w > 0 ? std::min(1.0, parts.total() / full_heat_w) : 1;
    parts.fans = std::max(idle_w, profile.fan_full.value() * std::pow(flow, profile.fan_exponent));
  }
  return parts;
}

NodeParts phase_node_parts(const NodeType& node, const Phase& phase, Power gpu_limit, NodeState state) {
  if (phase.parts.empty()) return node_parts(node, phase.shares, gpu_limit, state);
  NodeParts sum;
  for (const PhasePart& part : phase.parts) sum.add(node_parts(node, part.shares, gpu_limit, state), part.share);
  return sum;
}

NodeParts idle_node(const NodeType& node, Power gpu_limit) {
  return node_parts(node, ActivityTimes::only(Activity::idle), gpu_limit, {});
}

Power effective_limit(const NodeType& node, const std::optional<Power>& cap) {
  const Power board = node.accelerator.board_limit;
  return cap && *cap < board ? *cap : board;
}

}  // namespace tw
