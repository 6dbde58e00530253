#include "topology/routing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tw {

Router::Router(const Fabric& fabric, uint64_t seed) : policy(fabric.routing), fabric_(fabric), seed_(seed) {
  // Switches only: a node does not forward. Live cables only: nothing is ever routed over a failed one.
  first_.assign(fabric.vertices.size() + 1, 0);
  for (size_t v = 0; v < fabric.vertices.size(); ++v) {
    first_[v] = static_cast<int>(arcs_.size());
    if (fabric.vertices[v].kind != VertexKind::network_switch || fabric.vertices[v].failed) continue;
    const auto [begin, end] = boost::out_edges(v, fabric.graph);
    for (auto e = begin; e != end; ++e) {
      const int id = fabric.graph[*e].cable;
      const Cable& c = fabric.cables[static_cast<size_t>(id)];
      const int to = c.a == static_cast<int>(v) ? c.b : c.a;
      const FabricVertex& next = fabric.vertices[static_cast<size_t>(to)];
      if (c.failed || next.failed || next.kind != VertexKind::network_switch) continue;
      arcs_.push_back({to, fabric.link(id, static_cast<int>(v)), c.capacity_Bps});
    }
  }
  first_.back() = static_cast<int>(arcs_.size());
}

const std::vector<int>& Router::distances(int to) {
  const auto [it, fresh] = distances_.try_emplace(to);
  if (!fresh) return it->second;
  std::vector<int>& d = it->second;
  d.assign(fabric_.vertices.size(), -1);
  std::vector<int> queue{to};
  d[static_cast<size_t>(to)] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto v = static_cast<size_t>(queue[i]);
    for (int a = first_[v]; a < first_[v + 1]; ++a) {
      int& next = d[static_cast<size_t>(arcs_[static_cast<size_t>(a)].to)];
      if (next >= 0) continue;
      next = d[v] + 1;
      queue.push_back(arcs_[static_cast<size_t>(a)].to);
    }
  }
  return d;
}

int Router::distance(int from, int to) {
  return distances(to)[static_cast<size_t>(from)];
}

std::vector<int> Router::next_links(int at, int to) {
  const std::vector<int>& d = distances(to);
  std::vector<int> links;
  const auto v = static_cast<size_t>(at);
  for (int a = first_[v]; a < first_[v + 1]; ++a) {
    const Arc& arc = arcs_[static_cast<size_t>(a)];
    if (d[static_cast<size_t>(arc.to)] >= 0 && d[static_cast<size_t>(arc.to)] == d[v] - 1) links.push_back(arc.link);
  }
  return links;
}

void Router::spread(int to, const std::vector<double>& entering, std::vector<double>& loads) {
  const std::vector<int>& d = distances(to);
  // From the farthest switch to the nearest, so that everything has arrived before it is passed on.
  std::vector<std::vector<int>> by_distance;
  std::vector<double> bytes(entering.size(), 0);
  for (size_t v = 0; v < entering.size(); ++v) {
    if (d[v] <= 0) continue;
    if (by_distance.size() <= static_cast<size_t>(d[v])) by_distance.resize(static_cast<size_t>(d[v]) + 1);
    by_distance[static_cast<size_t>(d[v])].push_back(static_cast<int>(v));
    bytes[v] = entering[v];
  }
  for (size_t k = by_distance.size(); k-- > 1;) {
    for (const int s : by_distance[k]) {
      const auto v = static_cast<size_t>(s);
      if (bytes[v] == 0) continue;
      double capacity = 0;
      const auto toward = [&](const Arc& arc) { return d[static_cast<size_t>(arc.to)] == static_cast<int>(k) - 1; };
      for (int a = first_[v]; a < first_[v + 1]; ++a)
        if (toward(arcs_[static_cast<size_t>(a)])) capacity += arcs_[static_cast<size_t>(a)].capacity;
      for (int a = first_[v]; a < first_[v + 1]; ++a) {
        const Arc& arc = arcs_[static_cast<size_t>(a)];
        if (!toward(arc)) continue;
        const double part = bytes[v] * arc.capacity / capacity;
        loads[static_cast<size_t>(arc.link)] += part;
        bytes[static_cast<size_t>(arc.to)] += part;
      }
    }
  }
}

const std::vector<LinkShare>& Router::sprayed(int from, int to) {
  const auto [it, fresh] = sprayed_.try_emplace({from, to});
  if (!fresh) return it->second;
  const std::vector<int>& d = distances(to);
  // Switch by switch in order of distance; the set stays small, as only shortest paths are walked.
  std::vector<std::pair<int, double>> level{{from, 1.0}};
  while (!level.empty() && level.front().first != to) {
    std::map<int, double> next;
    for (const auto& [s, share] : level) {
      const auto v = static_cast<size_t>(s);
      double capacity = 0;
      for (int a = first_[v]; a < first_[v + 1]; ++a)
        if (d[static_cast<size_t>(arcs_[static_cast<size_t>(a)].to)] == d[v] - 1)
          capacity += arcs_[static_cast<size_t>(a)].capacity;
      for (int a = first_[v]; a < first_[v + 1]; ++a) {
        const Arc& arc = arcs_[static_cast<size_t>(a)];
        if (d[static_cast<size_t>(arc.to)] != d[v] - 1) continue;
        const double part = share * arc.capacity / capacity;
        it->second.push_back({arc.link, part});
        next[arc.to] += part;
      }
    }
    level.assign(next.begin(), next.end());
  }
  return it->second;
}

int Router::hops(int node_a, int nic_a, int node_b, int nic_b) {
  return node_a == node_b ? 0 : 2 + distance(fabric_.nic_switch(node_a, nic_a), fabric_.nic_switch(node_b, nic_b));
}

std::vector<LinkShare> Router::route(int node_a, int nic_a, int node_b, int nic_b) {
  if (node_a == node_b) return {};
  const int from = fabric_.nic_switch(node_a, nic_a), to = fabric_.nic_switch(node_b, nic_b);
  if (!fabric_.nic_alive(node_a, nic_a) || !fabric_.nic_alive(node_b, nic_b) || distance(from, to) < 0)
    throw SimulationError(
        fmt::format("there is no live path from node-{} NIC {} to node-{} NIC {}", node_a, nic_a, node_b, nic_b));
  std::vector<LinkShare> links{{fabric_.nic_link_out(node_a, nic_a), 1}};
  if (policy == RoutingPolicy::adaptive) {
    const std::vector<LinkShare>& middle = sprayed(from, to);
    links.insert(links.end(), middle.begin(), middle.end());
  } else {
    // Real switches hash the same header fields at every hop with their own seed: mix the switch in.
    const auto flow = static_cast<uint64_t>(node_a * fabric_.nics + nic_a) << 32U |
                      static_cast<uint64_t>(node_b * fabric_.nics + nic_b);
    for (int at = from; at != to;) {
      const std::vector<int> next = next_links(at, to);
      auto stream = random_stream(seed_ ^ flow, "ecmp", static_cast<uint64_t>(at));
      const int link = next[stream() % next.size()];
      links.push_back({link, 1});
      const Cable& c = fabric_.cables[static_cast<size_t>(link / 2)];
      at = link % 2 == 0 ? c.b : c.a;
    }
  }
  links.push_back({fabric_.nic_link_in(node_b, nic_b), 1});
  return links;
}

}  // namespace tw
