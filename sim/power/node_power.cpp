#include "power/node_power.hpp"

#include <algorithm>
#include <cmath>

#include "core/quantile.hpp"
#include "core/random.hpp"

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

NodeParts phase_node_parts(const NodeType& node, const Phase& phase, Power board_limit, bool over_fabric) {
  if (phase.kind == PhaseKind::off) return {};
  const bool outside_job = phase.kind == PhaseKind::before || phase.kind == PhaseKind::after;
  // Evaluations are launched kernel by kernel: their gaps are the host's, and draw as launch-bound work does.
  const bool in_step = phase.kind == PhaseKind::train || phase.kind == PhaseKind::first_step;
  const NodeState state{over_fabric && !outside_job, in_step};
  const Power limit = phase.gpu_limit_w > 0 ? std::min(board_limit, watts(phase.gpu_limit_w)) : board_limit;
  if (phase.parts.empty()) return node_parts(node, phase.shares, limit, state);
  NodeParts sum;
  for (const PhasePart& part : phase.parts) sum.add(node_parts(node, part.shares, limit, state), part.share);
  return sum;
}

double spread_factor(const NodeType& node, uint64_t seed, int number) {
  const double sigma = node.power.spread;
  if (!(sigma > 0)) return 1;
  SplitMix64 stream = random_stream(seed, "node power", static_cast<uint64_t>(number));
  return 1 + sigma * std::clamp(normal_quantile(uniform(stream)), -3.0, 3.0);
}

NodeParts idle_node(const NodeType& node, Power gpu_limit) {
  return node_parts(node, ActivityTimes::only(Activity::idle), gpu_limit, {});
}

Power effective_limit(const NodeType& node, const std::optional<Power>& cap) {
  const Power board = node.accelerator.board_limit;
  return cap && *cap < board ? *cap : board;
}

}  // namespace tw
