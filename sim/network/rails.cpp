// Rails and planes that do not meet: a message goes through adapters that do, over NVLink to and from them. As NCCL
// does (PXN), the sender's domain forwards where it can; where it has no rail of the receiver, the receiver's does.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "network/link_loads.hpp"

namespace tw::network {

bool rails_apart(const Fabric& f, int node) {
  std::vector<int> wanted;
  for (int k = 0; k < f.nics; ++k)
    if (f.nic_alive(node, k)) wanted.push_back(f.nic_switch(node, k));
  if (wanted.empty()) return false;
  std::vector<int> queue{wanted.front()};
  std::vector<char> seen(f.vertices.size(), 0);
  seen[static_cast<size_t>(queue.front())] = 1;
  const auto is_seen = [&](int v) { return seen[static_cast<size_t>(v)] != 0; };
  for (size_t i = 0; i < queue.size() && !std::all_of(wanted.begin(), wanted.end(), is_seen); ++i)
    for (const int id : f.cables_at[static_cast<size_t>(queue[i])]) {
      const Cable& c = f.cables[static_cast<size_t>(id)];
      const auto next = static_cast<size_t>(c.a == queue[i] ? c.b : c.a);
      const FabricVertex& v = f.vertices[next];
      if (c.failed || v.failed || v.kind != VertexKind::network_switch || seen[next] != 0) continue;
      seen[next] = 1;
      queue.push_back(static_cast<int>(next));
    }
  return !std::all_of(wanted.begin(), wanted.end(), is_seen);
}

bool LinkLoads::planes_apart() {
  int first = -1;
  for (int node = 0; node < fabric_.node_count; ++node)
    for (int k = 0; k < fabric_.nics; ++k) {
      if (!fabric_.nic_alive(node, k)) continue;
      if (first < 0) first = plane(node, k);
      if (plane(node, k) != first) return true;
    }
  return false;
}

// Has an adapter of each a path to one of the other?
bool LinkLoads::meet(const Group& group, int a, int b) {
  const int from = group.ranks[static_cast<size_t>(a)].node, to = group.ranks[static_cast<size_t>(b)].node;
  for (const int k : group.adapters(a))
    for (const int j : group.adapters(b))
      if (plane(from, k) == plane(to, j)) return true;
  return false;
}

// The ranks through whose adapters a message goes: the two themselves, else a mate of the sender that has a rail of the
// receiver, else a mate of the receiver that has one of the sender, else one of each.
std::pair<int, int> LinkLoads::ends_on_a_rail(const Group& group, int from, int to) {
  if (meet(group, from, to)) return {from, to};
  const std::vector<int>& mine = group.domains[static_cast<size_t>(group.domain_of(from))];
  const std::vector<int>& theirs = group.domains[static_cast<size_t>(group.domain_of(to))];
  for (const int mate : mine)
    if (meet(group, mate, to)) return {mate, to};
  for (const int mate : theirs)
    if (meet(group, from, mate)) return {from, mate};
  for (const int a : mine)
    for (const int b : theirs)
      if (meet(group, a, b)) return {a, b};
  const Rank &a = group.ranks[static_cast<size_t>(from)], &b = group.ranks[static_cast<size_t>(to)];
  throw InputError({{fabric_.cluster_name, "/fabric",
                     fmt::format("there is no live path from node-{} GPU {} to node-{} GPU {}: no adapters of the "
                                 "ranks on the two nodes are on a rail or plane in common",
                                 a.node, a.gpu, b.node, b.gpu),
                     "ranks that share a rail, or switches that join the rails"}});
}

// Pairs of adapters, each with an equal part of what goes from a rank to another; every adapter carries as much as its
// neighbours.
std::vector<std::pair<int, int>> LinkLoads::lanes_between(const Group::Adapters& mine, int from,
                                                          const Group::Adapters& theirs, int to) {
  std::vector<std::pair<int, int>> lanes;
  const size_t count = std::lcm(mine.size(), theirs.size());
  for (size_t i = 0; i < count; ++i) lanes.emplace_back(mine[i], theirs[i]);
  const auto joined = [&](const auto& lane) { return plane(from, lane.first) == plane(to, lane.second); };
  if (!apart_ || std::all_of(lanes.begin(), lanes.end(), joined)) return lanes;
  lanes.clear();
  for (const int k : mine)
    for (const int j : theirs)
      if (joined(std::pair{k, j})) lanes.emplace_back(k, j);
  return lanes;
}

std::vector<int> LinkLoads::planes_of(const Group& group, int rank) {
  std::vector<int> planes;
  for (const int k : group.adapters(rank)) planes.push_back(plane(group.ranks[static_cast<size_t>(rank)].node, k));
  return planes;
}

// Are all in one domain, or does each send to each adapter by adapter?
bool LinkLoads::on_one_rail(const Group& group, const std::vector<int>& members) {
  const int domain = group.domain_of(members.front());
  if (std::all_of(members.begin(), members.end(), [&](int r) { return group.domain_of(r) == domain; })) return true;
  const std::vector<int> first = planes_of(group, members.front());
  return std::all_of(members.begin(), members.end(), [&](int r) { return planes_of(group, r) == first; });
}

// Of domains that have the same rails, as most have, every message goes to its rail inside the sender's domain and then
// along it, summed as for all ranks of a rail; what goes to or from the others is looked at one by one.
void LinkLoads::add_clique_apart(const Group& group, const Clique& clique, double nvlink) {
  std::map<int, std::vector<std::pair<std::vector<int>, int>>> of_domain;  // domain -> (planes, rank)
  for (const int r : clique.members) of_domain[group.domain_of(r)].emplace_back(planes_of(group, r), r);
  std::map<std::vector<std::vector<int>>, std::vector<int>> alike;  // rails -> domains
  for (auto& [domain, ranks] : of_domain) {
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::vector<int>> rails;
    for (const auto& [planes, r] : ranks) rails.push_back(planes);
    alike[std::move(rails)].push_back(domain);
  }
  const auto most = std::max_element(alike.begin(), alike.end(), [](const auto& a, const auto& b) {
    return a.second.size() * a.first.size() < b.second.size() * b.first.size();
  });
  const std::vector<int>& same = most->second;
  if (same.size() > 1) {
    const size_t rails = most->first.size();
    for (const int domain : same) {
      Clique inside{{}, clique.share * static_cast<double>(same.size())};
      for (const auto& [planes, r] : of_domain[domain]) inside.members.push_back(r);
      if (rails > 1) add_clique(group, inside, nvlink);
    }
    for (size_t l = 0; l < rails; ++l) {
      Clique rail{{}, clique.share * static_cast<double>(rails)};
      for (const int domain : same) rail.members.push_back(of_domain[domain][l].second);
      add_clique(group, rail, nvlink);
    }
  }
  std::vector<char> summed(static_cast<size_t>(group.count()), 0);
  if (same.size() > 1)
    for (const int domain : same) summed[static_cast<size_t>(domain)] = 1;
  const auto is_summed = [&](int r) { return summed[static_cast<size_t>(group.domain_of(r))] != 0; };
  for (const int a : clique.members)
    for (const int b : clique.members)
      if (a != b && !(is_summed(a) && is_summed(b))) add_flow(group, {a, b, clique.share}, {nvlink, 1});
}

}  // namespace tw::network
