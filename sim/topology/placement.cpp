#include "topology/placement.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "core/codec.hpp"
#include "core/text.hpp"

namespace tw {
namespace {

void check_count(const Fabric& fabric, int nodes) {
  if (nodes < 0 || nodes > fabric.node_count)
    throw InputError({{fabric.cluster_name, "", fmt::format("{} nodes are asked for", nodes),
                       fmt::format("the cluster has {}", fabric.node_count)}});
}

}  // namespace

int unit_of(const Fabric& f, int node) {
  return f.nics == 0 ? -1 : f.vertices[static_cast<size_t>(f.nic_switch(node, 0))].unit;
}

std::vector<int> place_packed(const Fabric& fabric, int nodes) {
  check_count(fabric, nodes);
  std::vector<int> list(static_cast<size_t>(nodes));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

std::vector<int> place_spread(const Fabric& fabric, int nodes) {
  check_count(fabric, nodes);
  std::map<int, std::vector<int>> by_unit;
  for (int n = 0; n < fabric.node_count; ++n) by_unit[unit_of(fabric, n)].push_back(n);
  std::vector<int> list;
  if (by_unit.size() == 1) {
    for (int i = 0; i < nodes; ++i)
      list.push_back(static_cast<int>(static_cast<long long>(i) * fabric.node_count / nodes));
    return list;
  }
  for (size_t turn = 0; list.size() < static_cast<size_t>(nodes); ++turn)
    for (const auto& [unit, members] : by_unit)
      if (turn < members.size() && list.size() < static_cast<size_t>(nodes)) list.push_back(members[turn]);
  return list;
}

std::vector<int> place(const Fabric& fabric, Placement placement, int nodes) {
  return placement == Placement::spread ? place_spread(fabric, nodes) : place_packed(fabric, nodes);
}

std::vector<int> place(const Fabric& fabric, const NodePlacement& placement, int nodes) {
  return placement.nodes.empty() ? place(fabric, placement.rule, nodes) : place_named(fabric, placement.nodes);
}

int node_index(const std::string& name, int nodes) {
  if (name.rfind("node-", 0) != 0) return -1;
  int index = -1;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 5, end, index);
  const bool plain = error == std::errc() && stop == end && name == fmt::format("node-{}", index);
  return plain && index < nodes ? index : -1;
}

void check_placement(const NodePlacement& placement, int cluster_nodes, int nodes, const ReadContext& at) {
  if (placement.nodes.empty()) return;
  std::set<int> seen;
  const ReadContext list = at.at("nodes");
  for (size_t i = 0; i < placement.nodes.size(); ++i) {
    const int index = node_index(placement.nodes[i], cluster_nodes);
    if (index < 0)
      list.at(i).fault(fmt::format("there is no node \"{}\"", placement.nodes[i]),
                       fmt::format("node-0 to node-{}", cluster_nodes - 1));
    else if (!seen.insert(index).second)
      list.at(i).fault(fmt::format("\"{}\" stands twice", placement.nodes[i]), "every node once");
  }
  if (nodes > 0 && placement.nodes.size() != static_cast<size_t>(nodes))
    list.fault(fmt::format("{} nodes are named, but the plan has {}", placement.nodes.size(), nodes),
               fmt::format("{} names", nodes));
}

std::vector<int> place_named(const Fabric& fabric, const std::vector<std::string>& names) {
  std::map<std::string, int> known;
  std::vector<std::string> all;
  for (int n = 0; n < fabric.node_count; ++n) {
    all.push_back(fabric.vertices[static_cast<size_t>(n)].name);
    known[all.back()] = n;
  }
  std::vector<int> list;
  std::set<int> seen;
  for (const std::string& name : names) {
    const auto it = known.find(name);
    if (it == known.end())
      throw InputError(
          {{fabric.cluster_name, "", fmt::format("there is no node \"{}\"", name), suggest(name, all, 4)}});
    if (!seen.insert(it->second).second)
      throw InputError({{fabric.cluster_name, "", fmt::format("node \"{}\" is placed twice", name), ""}});
    list.push_back(it->second);
  }
  return list;
}

void NodePlacement::describe(Description<NodePlacement>& d) {
  d.object("placement", "Which nodes of the cluster a job gets.");
  d.optional("rule", &NodePlacement::rule, "packed: the first nodes; spread: dealt out over all units in turn");
  d.optional("nodes", &NodePlacement::nodes, "or the nodes by name, in the order of the ranks, as [\"node-3\"]");
}

}  // namespace tw
