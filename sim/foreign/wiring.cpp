#include "foreign/wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "foreign/lines.hpp"

namespace tw::foreign {
namespace {

struct End {
  int vertex = 0;
  double bandwidth_Bps = 0;
  std::string port;  // at this vertex
};

// Vertices 0 .. nodes - 1 are the nodes, in the order of the cluster; switches follow.
struct Graph {
  std::vector<std::string> names;
  size_t nodes = 0;
  std::vector<std::vector<End>> at;  // [vertex], one entry a cable, in the order of its ports
  std::vector<int> tier, unit;       // of a switch: distance from the nodes; unit -1: above the leaves
  size_t units = 1;
  bool equal_units = true;
  size_t nodes_per_unit() const { return nodes / units; }
};

size_t at(int v) {
  return static_cast<size_t>(v);
}

// Both ends of every cable; false when a fault was added.
bool plug(const Source& source, const Wiring& w, Graph& g, Faults& faults) {
  std::map<std::string, int> place;
  for (const std::string& name : g.names) place.emplace(name, static_cast<int>(place.size()));
  g.at.assign(g.names.size(), {});
  const size_t before = faults.size();
  for (const WiredCable& c : w.cables) {
    const int a = place.at(c.from), b = place.at(c.to);
    if (a == b || (at(a) < g.nodes && at(b) < g.nodes)) {
      faults.add({source.name, line_place(c.line),
                  a == b ? fmt::format("a cable from {} to itself", c.from)
                         : fmt::format("a cable between two nodes, {} and {}", c.from, c.to),
                  "cables end on a switch; --node-names PREFIX says which names are nodes"});
      continue;
    }
    for (int k = 0; k < c.count; ++k) {
      g.at[at(a)].push_back({b, c.bandwidth_Bps, c.from_port});
      g.at[at(b)].push_back({a, c.bandwidth_Bps, c.to_port});
    }
  }
  for (auto& ends : g.at)
    std::stable_sort(ends.begin(), ends.end(), [](const End& x, const End& y) { return natural_less(x.port, y.port); });
  return faults.size() == before;
}

size_t last_line_of(const Wiring& w, const std::string& name) {
  size_t line = 0;
  for (const WiredCable& c : w.cables)
    if (c.from == name || c.to == name) line = c.line;
  return line;
}

// Every node has as many cables as most have; false when a fault was added.
bool equal_nodes(const Source& source, const Wiring& w, const Graph& g, Faults& faults) {
  std::map<size_t, size_t> counts;
  for (size_t n = 0; n < g.nodes; ++n) ++counts[g.at[n].size()];
  size_t usual = 0, most = 0;
  for (const auto& [cables, nodes] : counts)
    if (nodes >= most) usual = cables, most = nodes;
  for (size_t n = 0; n < g.nodes; ++n)
    if (g.at[n].size() != usual) {
      faults.add({source.name, line_place(last_line_of(w, g.names[n])),
                  fmt::format("{} has {} cables where most nodes have {}", g.names[n], g.at[n].size(), usual),
                  "as many for every node"});
      return false;
    }
  return true;
}

// Tiers by breadth-first search from all nodes at once.
bool find_tiers(const Source& source, const Wiring& w, Graph& g, Faults& faults) {
  g.tier.assign(g.names.size(), -1);
  std::vector<int> queue(g.nodes);
  std::iota(queue.begin(), queue.end(), 0);
  for (const int n : queue) g.tier[at(n)] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (const End& e : g.at[at(queue[i])])
      if (g.tier[at(e.vertex)] < 0) {
        g.tier[at(e.vertex)] = g.tier[at(queue[i])] + 1;
        queue.push_back(e.vertex);
      }
  for (size_t v = 0; v < g.names.size(); ++v)
    if (g.tier[v] < 0) {
      faults.add({source.name, line_place(last_line_of(w, g.names[v])),
                  fmt::format("no node reaches the switch {}", g.names[v]), "cables to it, or no such switch"});
      return false;
    }
  return true;
}

// Units: nodes that share leaves. Nodes are put in the order of their units, which have to be of one size.
void find_units(Graph& g) {
  std::vector<int> unit(g.names.size(), -1);
  std::vector<size_t> sizes;
  for (size_t n = 0; n < g.nodes; ++n) {
    if (unit[n] >= 0) continue;
    std::vector<size_t> queue{n};
    unit[n] = static_cast<int>(sizes.size());
    sizes.push_back(0);
    for (size_t i = 0; i < queue.size(); ++i) {
      if (queue[i] < g.nodes) ++sizes.back();
      for (const End& e : g.at[queue[i]]) {
        const bool down = at(e.vertex) < g.nodes, leaf = g.tier[at(e.vertex)] == 1 && queue[i] < g.nodes;
        if ((down || leaf) && unit[at(e.vertex)] < 0) {
          unit[at(e.vertex)] = unit[n];
          queue.push_back(at(e.vertex));
        }
      }
    }
  }
  g.equal_units = std::all_of(sizes.begin(), sizes.end(), [&](size_t s) { return s == sizes.front(); });
  g.units = g.equal_units ? sizes.size() : 1;
  if (!g.equal_units) std::fill(unit.begin(), unit.end(), 0);
  for (size_t v = g.nodes; v < g.names.size(); ++v)
    if (g.tier[v] > 1) unit[v] = -1;
  g.unit = std::move(unit);
  std::vector<int> order(g.names.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.begin() + static_cast<long>(g.nodes),
                   [&](int a, int b) { return g.unit[at(a)] < g.unit[at(b)]; });
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[at(order[i])] = static_cast<int>(i);
  Graph sorted = g;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.names[i] = g.names[at(order[i])];
    sorted.at[i] = g.at[at(order[i])];
    sorted.tier[i] = g.tier[at(order[i])];
    sorted.unit[i] = g.unit[at(order[i])];
    for (End& e : sorted.at[i]) e.vertex = place[at(e.vertex)];
  }
  g = std::move(sorted);
}

// The one value of all, or nothing.
template <class T>
struct One {
  std::optional<T> value;
  bool same = true;
  void see(const T& v) {
    if (!value) value = v;
    same = same && *value == v;
  }
};

// "rails" or "halves": where adapter k of every node goes among the leaves of its unit; empty where nodes differ.
std::string wiring_of(const Graph& g, const std::vector<std::vector<int>>& leaves) {
  const size_t nics = g.at[0].size(), L = leaves[0].size();
  bool rails = true, halves = true;
  for (size_t n = 0; n < g.nodes; ++n) {
    const auto& mine = leaves[at(g.unit[n])];
    std::vector<size_t> count(L);
    std::vector<int> seen;  // leaves in the order of this node's adapters
    for (const End& e : g.at[n]) {
      const auto found = std::find(mine.begin(), mine.end(), e.vertex);
      ++count[static_cast<size_t>(found - mine.begin())];
      if (std::find(seen.begin(), seen.end(), e.vertex) == seen.end()) seen.push_back(e.vertex);
    }
    for (const size_t c : count)
      if (c * L != nics) return "";
    for (size_t k = 0; k < nics; ++k) {
      rails = rails && g.at[n][k].vertex == seen[k % L];
      halves = halves && g.at[n][k].vertex == seen[k * L / nics];
    }
  }
  return L == nics ? "rails" : halves ? "halves" : rails ? "rails" : "";
}

// Two levels of equal units: every leaf has the same cables up, dealt evenly over all spines. Null where it is not so.
Json tree_of(const Graph& g) {
  if (!g.equal_units || g.at[0].empty()) return nullptr;
  std::vector<std::vector<int>> leaves(g.units);
  std::vector<int> spines;
  for (size_t v = g.nodes; v < g.names.size(); ++v) {
    if (g.tier[v] > 2) return nullptr;
    (g.tier[v] == 1 ? leaves[at(g.unit[v])] : spines).push_back(static_cast<int>(v));
  }
  One<size_t> per_unit, uplinks, per_spine;
  One<double> nic, up;
  for (const auto& list : leaves) per_unit.see(list.size());
  for (size_t n = 0; n < g.nodes; ++n)
    for (const End& e : g.at[n]) nic.see(e.bandwidth_Bps);
  for (const auto& list : leaves)
    for (const int leaf : list) {
      std::map<int, size_t> to;
      size_t all = 0;
      for (const End& e : g.at[at(leaf)]) {
        if (at(e.vertex) < g.nodes) continue;
        if (g.tier[at(e.vertex)] == 1) return nullptr;  // leaves that are cabled to one another
        up.see(e.bandwidth_Bps);
        ++to[e.vertex], ++all;
      }
      uplinks.see(all);
      if (to.size() != spines.size()) return nullptr;
      for (const auto& [spine, count] : to) per_spine.see(count);
    }
  for (const int s : spines)
    for (const End& e : g.at[at(s)])
      if (g.tier[at(e.vertex)] != 1) return nullptr;  // spines that are cabled to one another
  if (!per_unit.same || !uplinks.same || !per_spine.same || !nic.same || !up.same) return nullptr;
  const std::string wiring = wiring_of(g, leaves);
  if (wiring.empty()) return nullptr;
  Json tree{{"kind", "scalable_units"},
            {"units", g.units},
            {"nodes_per_unit", g.nodes_per_unit()},
            {"leaves_per_unit", *per_unit.value},
            {"wiring", wiring},
            {"spines", spines.size()},
            {"uplinks_per_leaf", spines.empty() ? 0 : *uplinks.value}};
  if (up.value) tree["uplink_bandwidth"] = bits_text(*up.value);
  tree["routing"] = "adaptive";
  return tree;
}

// Cable by cable; parallel ones that follow one another are one entry.
Json graph_of(const Graph& g) {
  Json switches = Json::array(), cables = Json::array();
  for (size_t v = g.nodes; v < g.names.size(); ++v)
    switches.push_back({{"name", g.names[v]}, {"tier", g.tier[v]}, {"unit", g.unit[v]}});
  const auto name = [&](size_t v) { return v < g.nodes ? fmt::format("node-{}", v) : g.names[v]; };
  for (size_t v = 0; v < g.names.size(); ++v)
    for (const End& e : g.at[v]) {
      // Each cable once, from its lower end.
      const size_t other = at(e.vertex);
      const bool lower_end = g.tier[v] != g.tier[other] ? g.tier[v] < g.tier[other] : v < other;
      if (!lower_end) continue;
      const std::string bandwidth = bits_text(e.bandwidth_Bps);
      if (!cables.empty() && cables.back()["from"] == name(v) && cables.back()["to"] == g.names[other] &&
          cables.back()["bandwidth"] == bandwidth)
        cables.back()["count"] = cables.back().value("count", 1) + 1;
      else
        cables.push_back({{"from", name(v)}, {"to", g.names[other]}, {"count", 1}, {"bandwidth", bandwidth}});
    }
  return {{"kind", "graph"},
          {"units", g.units},
          {"nodes_per_unit", g.nodes_per_unit()},
          {"graph_switches", switches},
          {"graph_cables", cables}};
}

void say(const Graph& g, const Json& fabric, size_t cables, std::vector<std::string>& said) {
  std::map<int, int> tiers;
  for (size_t v = g.nodes; v < g.names.size(); ++v) ++tiers[g.tier[v]];
  std::string levels;
  for (const auto& [tier, count] : tiers)
    levels += fmt::format("{}{} in tier {}", levels.empty() ? "" : ", ", count, tier);
  said.push_back(fmt::format("{} nodes with {} cables each, {} switches ({}), {} cables", g.nodes, g.at[0].size(),
                             g.names.size() - g.nodes, levels, cables));
  said.push_back(fmt::format("nodes in the order of the cluster: node-0 is {}{}", g.names[0],
                             g.nodes > 1 ? fmt::format(", node-{} is {}", g.nodes - 1, g.names[g.nodes - 1]) : ""));
  if (!g.equal_units)
    said.push_back("nodes that share leaves do not come in groups of one size: the cluster is one unit");
  else
    said.push_back(
        fmt::format("{} unit{} of {} nodes that share leaves", g.units, g.units == 1 ? "" : "s", g.nodes_per_unit()));
  said.push_back(fabric["kind"] == "graph"
                     ? "no tree of two levels with equal units: an explicit graph, cable by cable"
                     : fmt::format("recognised: scalable units, wiring {}, {} leaves a unit, {} spines",
                                   fabric["wiring"].get<std::string>(), fabric["leaves_per_unit"].dump(),
                                   fabric["spines"].dump()));
}

}  // namespace

void put_wiring(const Source& source, Wiring w, ClusterParts& parts, std::vector<std::string>& said, Faults& faults) {
  if (w.nodes.empty()) return faults.add({source.name, "", "names no node", "cables from nodes to switches"});
  for (auto* list : {&w.nodes, &w.switches}) {
    std::sort(list->begin(), list->end(), natural_less);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  Graph g;
  g.names = w.nodes;
  g.nodes = w.nodes.size();
  g.names.insert(g.names.end(), w.switches.begin(), w.switches.end());
  if (!plug(source, w, g, faults) || !equal_nodes(source, w, g, faults) || !find_tiers(source, w, g, faults)) return;
  find_units(g);
  Json tree = tree_of(g);
  parts.fabric() = tree.is_null() ? graph_of(g) : std::move(tree);
  size_t cables = 0;
  for (size_t v = g.nodes; v < g.names.size(); ++v)
    parts.ports = std::max(parts.ports, static_cast<int>(g.at[v].size()));
  for (const WiredCable& c : w.cables) cables += static_cast<size_t>(c.count);
  parts.node()["nics"] = g.at[0].size();
  parts.node()["nic_bandwidth"] = bits_text(g.at[0].empty() ? 0 : g.at[0][0].bandwidth_Bps);
  say(g, parts.fabric(), cables, said);
}

}  // namespace tw::foreign
