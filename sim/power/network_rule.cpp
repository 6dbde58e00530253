#include "power/network_rule.hpp"

#include <algorithm>
#include <set>

#include "core/codec.hpp"
#include "core/sum.hpp"
#include "topology/fabric.hpp"

namespace tw {
namespace {

int higher_end(const Fabric& fabric, const Cable& cable) {
  const auto tier = [&](int v) { return fabric.vertices[static_cast<size_t>(v)].tier; };
  return tier(cable.a) >= tier(cable.b) ? cable.a : cable.b;
}

// The published formula knows leaves, spines and units; on other fabrics it says nothing.
bool two_level_units(const Fabric& fabric) {
  return fabric.type.kind == "scalable_units" && fabric.type.leaves_per_unit > 0 && fabric.type.spines > 0;
}

}  // namespace

double switch_watts(const Fabric& fabric, int vertex, double load) {
  const SwitchType& type = fabric.type.switches;
  if (type.power.model == SwitchPowerModel::nameplate) return type.nameplate.value();
  const int ports = fabric.ports_used(vertex);
  const double busy = type.power.model == SwitchPowerModel::load ? std::clamp(load, 0.0, 1.0) : 0;
  return type.power.idle.value() + ports * (type.power.per_port.value() + busy * type.power.per_load.value());
}

std::vector<SwitchUse> switch_use(const Fabric& fabric, const std::vector<int>& nodes,
                                  const std::vector<double>& cable_Bps) {
  std::vector<SwitchUse> uses;
  if (nodes.size() < 2) return uses;
  const std::set<int> job(nodes.begin(), nodes.end());
  std::map<int, std::set<int>> by_tier;        // tier -> switches of the job
  std::map<int, std::vector<int>> job_cables;  // switch -> cables that count as the job's ports
  for (size_t c = 0; c < fabric.cables.size(); ++c) {
    const Cable& cable = fabric.cables[c];
    if (cable.kind != CableKind::nic || job.count(cable.a) == 0) continue;
    by_tier[fabric.vertices[static_cast<size_t>(cable.b)].tier].insert(cable.b);
    job_cables[cable.b].push_back(static_cast<int>(c));
  }
  if (by_tier.empty()) return uses;
  // Upwards, tier by tier: a switch above is touched by the cables that end on touched switches below it.
  const bool climbs = by_tier.begin()->second.size() > 1;
  for (int tier = by_tier.begin()->first; climbs && by_tier.count(tier) != 0; ++tier) {
    for (size_t c = 0; c < fabric.cables.size(); ++c) {
      const Cable& cable = fabric.cables[c];
      if (cable.kind == CableKind::nic || cable.kind == CableKind::nvlink) continue;
      const int high = higher_end(fabric, cable);
      const int low = high == cable.a ? cable.b : cable.a;
      if (by_tier[tier].count(low) == 0) continue;
      job_cables[low].push_back(static_cast<int>(c));
      const int high_tier = fabric.vertices[static_cast<size_t>(high)].tier;
      if (high_tier > tier) by_tier[high_tier].insert(high);
      if (high_tier > tier || by_tier[tier].count(high) != 0) job_cables[high].push_back(static_cast<int>(c));
    }
  }
  for (const auto& [tier, switches] : by_tier) {
    for (const int v : switches) {
      const FabricVertex& vertex = fabric.vertices[static_cast<size_t>(v)];
      SwitchUse use{v, tier, vertex.unit, vertex.ports, static_cast<int>(job_cables[v].size()), 0};
      if (!cable_Bps.empty() && use.job_ports > 0) {
        Sum load;
        for (const int c : job_cables[v]) {
          const double both_ways = 2 * fabric.cables[static_cast<size_t>(c)].capacity_Bps;
          if (both_ways > 0) load.add(std::min(1.0, cable_Bps[static_cast<size_t>(c)] / both_ways));
        }
        use.job_load = load.value() / use.job_ports;
      }
      uses.push_back(use);
    }
  }
  return uses;
}

std::optional<std::vector<SwitchShare>> switch_shares(NetworkRule rule, const Fabric& fabric,
                                                      const std::vector<int>& nodes,
                                                      const std::vector<double>& cable_Bps) {
  std::vector<SwitchShare> shares;
  if (nodes.size() < 2) return shares;
  const std::vector<SwitchUse> uses = switch_use(fabric, nodes, cable_Bps);
  if (uses.empty()) return std::nullopt;  // no switches: the nodes are cabled to one another
  if (rule == NetworkRule::by_load && cable_Bps.empty()) return std::nullopt;
  if (rule == NetworkRule::as_published && !two_level_units(fabric)) return std::nullopt;
  std::set<int> units;
  for (const SwitchUse& use : uses)
    if (use.tier == 1) units.insert(use.unit);
  const FabricType& type = fabric.type;
  const double nics_per_leaf = static_cast<double>(fabric.nics) / std::max(1, type.leaves_per_unit);
  const double published_spine =
      (type.uplinks_per_leaf + nics_per_leaf * static_cast<double>(units.size())) / type.switches.ports;
  std::set<int> touched;
  for (const SwitchUse& use : uses) {
    touched.insert(use.vertex);
    const double by_ports = static_cast<double>(use.job_ports) / use.ports;
    double share = 1;
    if (rule == NetworkRule::as_stated) share = by_ports;
    if (rule == NetworkRule::by_load) share = by_ports * use.job_load;
    if (rule == NetworkRule::as_published && use.tier > 1) share = published_spine;
    // The job's load fills its own ports only.
    const int cabled = std::max(1, fabric.ports_used(use.vertex));
    const double load = use.job_load * use.job_ports / cabled;
    shares.push_back({use.vertex, share, share * switch_watts(fabric, use.vertex, load)});
  }
  if (rule == NetworkRule::as_published)  // its formula counts every spine, touched or not
    for (size_t v = 0; v < fabric.vertices.size(); ++v)
      if (fabric.vertices[v].kind == VertexKind::network_switch && fabric.vertices[v].tier == 2 &&
          touched.count(static_cast<int>(v)) == 0)
        shares.push_back(
            {static_cast<int>(v), published_spine, published_spine * switch_watts(fabric, static_cast<int>(v))});
  return shares;
}

std::optional<double> network_power_w(NetworkRule rule, const Fabric& fabric, const std::vector<int>& nodes,
                                      const std::vector<double>& cable_Bps) {
  const auto shares = switch_shares(rule, fabric, nodes, cable_Bps);
  if (!shares) return std::nullopt;
  Sum sum;
  if (fabric.type.switches.power.model != SwitchPowerModel::nameplate) {
    for (const SwitchShare& share : *shares) sum.add(share.watts);
    return sum.value();
  }
  for (const SwitchShare& share : *shares) sum.add(share.share);  // exact for the published sums of whole ports
  return fabric.type.switches.nameplate.value() * sum.value();
}

std::map<std::string, std::optional<double>> network_power_by_rule(const Fabric& fabric, const std::vector<int>& nodes,
                                                                   const std::vector<double>& cable_Bps) {
  std::map<std::string, std::optional<double>> all;
  for (const auto& [name, rule] : Choices<NetworkRule>::table())
    all[name] = network_power_w(rule, fabric, nodes, cable_Bps);
  return all;
}

std::vector<double> network_shares(NetworkRule rule, const Fabric& fabric, const std::vector<std::vector<int>>& jobs) {
  std::vector<double> shares;
  Sum total;
  for (const std::vector<int>& job : jobs) {
    const std::optional<double> alone_w = network_power_w(rule, fabric, job);
    if (!alone_w) return {};
    shares.push_back(*alone_w);
    total.add(*alone_w);
  }
  if (!(total.value() > 0)) return {};
  for (double& share : shares) share /= total.value();
  return shares;
}

std::vector<std::pair<std::string, NetworkRule>> Choices<NetworkRule>::table() {
  return {{"as_published", NetworkRule::as_published},
          {"as_stated", NetworkRule::as_stated},
          {"whole_switches", NetworkRule::whole_switches},
          {"by_load", NetworkRule::by_load}};
}

}  // namespace tw
