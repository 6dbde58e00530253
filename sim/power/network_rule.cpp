#include <algorithm>
#include <set>
#include <utility>

#include "core/sum.hpp"
#include "power/rule_shares.hpp"
#include "topology/fabric.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {
namespace {

size_t at(int index) {
  return static_cast<size_t>(index);
}

bool between_switches(const Cable& cable) {
  return cable.kind != CableKind::nic && cable.kind != CableKind::nvlink;
}

// Live switches next to each switch, each once.
std::vector<std::vector<int>> switch_graph(const Fabric& fabric) {
  std::vector<std::vector<int>> next(fabric.vertices.size());
  for (const Cable& c : fabric.cables) {
    if (!between_switches(c) || c.failed || fabric.vertices[at(c.a)].failed || fabric.vertices[at(c.b)].failed)
      continue;
    next[at(c.a)].push_back(c.b);
    next[at(c.b)].push_back(c.a);
  }
  for (std::vector<int>& list : next) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return next;
}

// Marks everything on shortest ways from one switch to `ends`: one search, then back along the ways it came.
void mark_ways(const std::vector<std::vector<int>>& next, int from, const std::vector<int>& ends,
               std::vector<char>& reached) {
  std::vector<int> distance(next.size(), -1), order{from};
  distance[at(from)] = 0;
  for (size_t i = 0; i < order.size(); ++i)
    for (const int v : next[at(order[i])])
      if (distance[at(v)] < 0) {
        distance[at(v)] = distance[at(order[i])] + 1;
        order.push_back(v);
      }
  std::vector<char> on_way(next.size(), 0);
  for (const int end : ends)
    if (distance[at(end)] >= 0) on_way[at(end)] = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int v = order[i];
    if (on_way[at(v)] == 0) continue;
    reached[at(v)] = 1;
    for (const int nearer : next[at(v)])
      if (distance[at(nearer)] == distance[at(v)] - 1) on_way[at(nearer)] = 1;
  }
}

// Leaves with the same neighbours stand for one another: what lies on ways from one lies on ways from all. A way that
// leaves the leaves does so at one that has another neighbour, and so does the part of it outside, which is a shortest
// way, too: those inside begin none (routers of a torus).
void mark_rail(const std::vector<std::vector<int>>& next, const std::vector<int>& leaves, std::vector<char>& reached) {
  std::vector<char> own(next.size(), 0);
  for (const int leaf : leaves) reached[at(leaf)] = own[at(leaf)] = 1;
  std::vector<int> edge;
  for (const int leaf : leaves)
    if (std::any_of(next[at(leaf)].begin(), next[at(leaf)].end(), [&](int v) { return own[at(v)] == 0; }))
      edge.push_back(leaf);
  std::set<std::vector<int>> searched;
  for (const int leaf : edge) {
    if (std::all_of(reached.begin(), reached.end(), [](char c) { return c != 0; })) return;
    if (searched.insert(next[at(leaf)]).second) mark_ways(next, leaf, edge, reached);
  }
}

// How much of its ports' time a job keeps a cable busy, 0 to 1.
double busy(const Fabric& fabric, const NetworkJob& job, size_t cable) {
  const double both_ways_Bps = 2 * fabric.cables[cable].capacity_Bps;
  return job.cable_Bps.empty() || !(both_ways_Bps > 0) ? 0 : std::min(1.0, job.cable_Bps[cable] / both_ways_Bps);
}

// Per job and switch; a job's row is empty where it reaches nothing.
using Table = std::vector<std::vector<double>>;

struct Usage {
  Table reached, nics, ports, busy_ports;  // ports: its own, and its part of those it shares
  std::vector<double> load;                // of all jobs, over the cabled ports of a switch
  bool full = false;                       // the jobs hold every node
};

// Cables between switches are shared by the jobs that reach both ends: by their NIC cables there, or, where none has
// any, by all their NIC cables.
void share_cable(const Fabric& fabric, const std::vector<NetworkJob>& jobs, size_t c, Usage& use,
                 std::vector<double>& near, std::vector<double>& all) {
  const Cable& cable = fabric.cables[c];
  double near_sum = 0, all_sum = 0;
  for (size_t j = 0; j < jobs.size(); ++j) {
    near[j] = all[j] = 0;
    if (use.reached[j][at(cable.a)] == 0 || use.reached[j][at(cable.b)] == 0) continue;
    near[j] = use.nics[j][at(cable.a)] + use.nics[j][at(cable.b)];
    all[j] = static_cast<double>(jobs[j].nodes.size());
    near_sum += near[j];
    all_sum += all[j];
  }
  if (!(all_sum > 0)) return;
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (!(all[j] > 0)) continue;
    const double part = near_sum > 0 ? near[j] / near_sum : all[j] / all_sum;
    for (const int end : {cable.a, cable.b}) {
      use.ports[j][at(end)] += part;
      use.busy_ports[j][at(end)] += busy(fabric, jobs[j], c);
    }
  }
}

Usage usage_of(const Fabric& fabric, const std::vector<NetworkJob>& jobs) {
  const Table zeros(jobs.size(), std::vector<double>(fabric.vertices.size(), 0));
  Usage use{zeros, zeros, zeros, zeros, std::vector<double>(fabric.vertices.size(), 0), false};
  std::set<int> held;
  for (size_t j = 0; j < jobs.size(); ++j) {
    held.insert(jobs[j].nodes.begin(), jobs[j].nodes.end());
    for (const int v : switches_reached(fabric, jobs[j])) use.reached[j][at(v)] = 1;
    for (const int node : jobs[j].nodes)
      for (const int c : fabric.cables_at[at(node)]) {
        const Cable& cable = fabric.cables[at(c)];
        if (cable.kind != CableKind::nic || use.reached[j][at(cable.b)] == 0) continue;
        use.nics[j][at(cable.b)] += 1;
        use.ports[j][at(cable.b)] += 1;
        use.busy_ports[j][at(cable.b)] += busy(fabric, jobs[j], at(c));
      }
  }
  use.full = held.size() == at(fabric.node_count);
  std::vector<double> near(jobs.size(), 0), all(jobs.size(), 0);
  for (size_t c = 0; c < fabric.cables.size(); ++c)
    if (between_switches(fabric.cables[c]) && !fabric.cables[c].failed) share_cable(fabric, jobs, c, use, near, all);
  for (size_t v = 0; v < fabric.vertices.size(); ++v) {
    for (size_t j = 0; j < jobs.size(); ++j) use.load[v] += use.busy_ports[j][v];
    use.load[v] = std::min(1.0, use.load[v] / std::max(1, fabric.ports_used(static_cast<int>(v))));
  }
  return use;
}

// (uplinks per leaf + NICs per leaf and node * units of the job) / ports.
double published_spine(const Fabric& fabric, const std::vector<double>& reached) {
  std::set<int> units;
  for (size_t v = 0; v < fabric.vertices.size(); ++v)
    if (reached[v] != 0 && fabric.vertices[v].tier == 1) units.insert(fabric.vertices[v].unit);
  const FabricType& type = fabric.type;
  const double nics_per_leaf = static_cast<double>(fabric.nics) / std::max(1, type.leaves_per_unit);
  return (type.uplinks_per_leaf + nics_per_leaf * static_cast<double>(units.size())) / type.switches.ports;
}

using Shares = std::optional<std::vector<std::vector<SwitchShare>>>;

Shares shares_of(NetworkRule rule, const Fabric& fabric, const std::vector<NetworkJob>& jobs, const Usage& use) {
  if (!rule_defined(rule, fabric.type)) return std::nullopt;
  std::vector<std::vector<SwitchShare>> shares(jobs.size());
  std::vector<double> spine(jobs.size(), 0);
  for (size_t j = 0; j < jobs.size(); ++j) {
    const bool somewhere = std::any_of(use.reached[j].begin(), use.reached[j].end(), [](double r) { return r != 0; });
    if (rule == NetworkRule::by_load && somewhere && jobs[j].cable_Bps.empty()) return std::nullopt;
    if (rule == NetworkRule::as_published && somewhere) spine[j] = published_spine(fabric, use.reached[j]);
  }
  std::vector<double> raw(jobs.size());
  for (size_t v = 0; v < fabric.vertices.size(); ++v) {
    double ports = 0, nics = 0, sum = 0;
    for (size_t j = 0; j < jobs.size(); ++j) {
      ports += use.ports[j][v];
      nics += use.nics[j][v];
    }
    if (!(ports > 0)) continue;
    const FabricVertex& vertex = fabric.vertices[v];
    for (size_t j = 0; j < jobs.size(); ++j) {
      raw[j] = use.ports[j][v] / vertex.ports;
      if (rule == NetworkRule::whole_switches) raw[j] = use.ports[j][v] / ports;
      if (rule == NetworkRule::by_load) raw[j] = use.busy_ports[j][v] / vertex.ports;
      if (rule == NetworkRule::as_published)
        raw[j] = vertex.tier > 1 ? spine[j] * use.reached[j][v] : use.nics[j][v] / std::max(1.0, nics);
      sum += raw[j];
    }
    if (!(sum > 0) && use.full)
      for (size_t j = 0; j < jobs.size(); ++j) sum += raw[j] = use.ports[j][v];  // nobody sends: by ports
    const double scale = sum > 0 && (use.full || sum > 1) ? 1 / sum : 1;
    const double watts = switch_watts(fabric, static_cast<int>(v), use.load[v]);
    for (size_t j = 0; j < jobs.size(); ++j)
      if (use.reached[j][v] != 0) shares[j].push_back({static_cast<int>(v), raw[j] * scale, raw[j] * scale * watts});
  }
  return shares;
}

}  // namespace

bool rule_defined(NetworkRule rule, const FabricType& type) {
  const FabricKind* const kind = find_kind(type);
  return rule != NetworkRule::as_published || (kind != nullptr && kind->levels(type) == 2 && type.spine_groups == 1);
}

std::vector<int> switches_reached(const Fabric& fabric, const NetworkJob& job) {
  std::set<int> domains;
  for (const int node : job.nodes) domains.insert(node / fabric.nodes_per_domain);
  if (domains.size() < 2 || fabric.nics == 0) return {};
  std::vector<char> reached(fabric.vertices.size(), 0);
  for (size_t v = 0; v < reached.size(); ++v) reached[v] = fabric.vertices[v].kind != VertexKind::network_switch;
  const std::vector<std::vector<int>> next = switch_graph(fabric);
  std::set<std::vector<int>> rails;  // several adapters of a node may go the same way
  for (int nic = 0; nic < fabric.nics; ++nic) {
    std::set<int> leaves;
    for (const int node : job.nodes)
      if (fabric.nic_alive(node, nic)) leaves.insert(fabric.nic_switch(node, nic));
    rails.emplace(leaves.begin(), leaves.end());
  }
  for (const std::vector<int>& leaves : rails) mark_rail(next, leaves, reached);
  for (size_t c = 0; c < job.cable_Bps.size(); ++c)
    if (job.cable_Bps[c] > 0) reached[at(fabric.cables[c].a)] = reached[at(fabric.cables[c].b)] = 1;
  std::vector<int> list;
  for (size_t v = 0; v < reached.size(); ++v)
    if (reached[v] != 0 && fabric.vertices[v].kind == VertexKind::network_switch && !fabric.vertices[v].failed)
      list.push_back(static_cast<int>(v));
  return list;
}

double switch_watts(const Fabric& fabric, int vertex, double load) {
  if (fabric.vertices[at(vertex)].failed) return 0;
  const SwitchType& type = fabric.type.switches;
  if (type.power.model == SwitchPowerModel::nameplate) return type.nameplate.value();
  const int ports = fabric.ports_used(vertex);
  const double used = type.power.model == SwitchPowerModel::load ? std::clamp(load, 0.0, 1.0) : 0;
  return type.power.idle.value() + ports * (type.power.per_port.value() + used * type.power.per_load.value());
}

std::optional<std::vector<std::vector<SwitchShare>>> apportion(NetworkRule rule, const Fabric& fabric,
                                                               const std::vector<NetworkJob>& jobs) {
  return shares_of(rule, fabric, jobs, usage_of(fabric, jobs));
}

double network_power_w(const Fabric& fabric, const std::vector<SwitchShare>& shares) {
  const bool nameplate = fabric.type.switches.power.model == SwitchPowerModel::nameplate;
  Sum sum;  // of shares, where all switches draw the same: exact for the published sums of whole ports
  for (const SwitchShare& share : shares) sum.add(nameplate ? share.share : share.watts);
  return nameplate ? fabric.type.switches.nameplate.value() * sum.value() : sum.value();
}

std::optional<double> network_power_w(NetworkRule rule, const Fabric& fabric, const std::vector<NetworkJob>& jobs) {
  const auto shares = apportion(rule, fabric, jobs);
  return shares ? std::optional(network_power_w(fabric, shares->front())) : std::nullopt;
}

std::map<std::string, std::optional<std::vector<SwitchShare>>> shares_by_rule(const Fabric& fabric,
                                                                              const std::vector<NetworkJob>& jobs) {
  std::map<std::string, std::optional<std::vector<SwitchShare>>> all;
  const Usage use = usage_of(fabric, jobs);
  for (const auto& [name, rule] : Choices<NetworkRule>::table()) {
    Shares shares = shares_of(rule, fabric, jobs, use);
    all[name] = shares ? std::optional(std::move(shares->front())) : std::nullopt;
  }
  return all;
}

}  // namespace tw
