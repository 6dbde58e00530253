// Fabrics written down cable by cable, and changes to single cables and switches of any fabric.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/codec.hpp"
#include "core/text.hpp"
#include "topology/builder.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {
namespace {

std::vector<std::string> names_of(const Fabric& f) {
  std::vector<std::string> names;
  for (const FabricVertex& v : f.vertices) names.push_back(v.name);
  return names;
}

CableKind kind_between(const FabricVertex& lower, const FabricVertex& upper) {
  if (lower.tier == upper.tier) return lower.unit == upper.unit ? CableKind::mesh : CableKind::global;
  return std::max(lower.tier, upper.tier) >= 3 ? CableKind::core : CableKind::uplink;
}

// Nodes are units * nodes_per_unit, named node-0 and up. A cable from a node takes its next free adapter.
void generate_graph(FabricBuilder& b) {
  const FabricType& f = b.cluster.fabric;
  std::map<std::string, int> place;
  for (int n = 0; n < b.fabric.node_count; ++n) place[b.fabric.vertices[static_cast<size_t>(n)].name] = n;
  for (size_t i = 0; i < f.graph_switches.size(); ++i) {
    const ExplicitSwitch& s = f.graph_switches[i];
    if (place.count(s.name) != 0) {
      b.fault(fmt::format("/fabric/graph_switches/{}/name", i), fmt::format("the name \"{}\" is taken", s.name),
              "a name of its own");
      continue;
    }
    place[s.name] = b.add_switch(s.name, s.tier, s.unit, s.ports);
  }
  std::vector<int> plugged(static_cast<size_t>(b.fabric.node_count), 0);
  for (size_t i = 0; i < f.graph_cables.size(); ++i) {
    const ExplicitCable& c = f.graph_cables[i];
    const std::string at = fmt::format("/fabric/graph_cables/{}", i);
    for (const auto& [key, name] : {std::pair{"from", c.from}, std::pair{"to", c.to}})
      if (place.count(name) == 0)
        b.fault(fmt::format("{}/{}", at, key), fmt::format("there is no node or switch \"{}\"", name),
                suggest(name, names_of(b.fabric), 6));
    if (place.count(c.from) == 0 || place.count(c.to) == 0) continue;
    int low = place[c.from], high = place[c.to];
    if (high < b.fabric.node_count || low == high) {
      b.fault(at + "/to", fmt::format("a cable from \"{}\" to \"{}\"", c.from, c.to), "cables end on another switch");
      continue;
    }
    const bool from_node = low < b.fabric.node_count;
    if (!from_node &&
        b.fabric.vertices[static_cast<size_t>(low)].tier > b.fabric.vertices[static_cast<size_t>(high)].tier)
      std::swap(low, high);
    for (int k = 0; k < c.count; ++k) {
      if (!from_node) {
        b.connect(
            low, high,
            kind_between(b.fabric.vertices[static_cast<size_t>(low)], b.fabric.vertices[static_cast<size_t>(high)]),
            c.bandwidth.value());
        continue;
      }
      int& nic = plugged[static_cast<size_t>(low)];
      if (nic >= b.fabric.nics) {
        b.fault(at, fmt::format("{} has more cables than its {} NICs", c.from, b.fabric.nics), "");
        break;
      }
      b.connect_nic(low, nic++, high, c.bandwidth.value());
    }
  }
  for (int n = 0; n < b.fabric.node_count && b.faults.empty(); ++n)
    if (plugged[static_cast<size_t>(n)] < b.fabric.nics)
      b.fault("/fabric/graph_cables",
              fmt::format("{} of the {} NICs of node-{} are cabled", plugged[static_cast<size_t>(n)], b.fabric.nics, n),
              "a cable for every NIC, or fewer NICs");
}

void describe_graph(Description<FabricType>& d) {
  describe_units(d);
  d.optional("graph_switches", &FabricType::graph_switches, "switches of an explicit graph");
  d.optional("graph_cables", &FabricType::graph_cables, "cables of an explicit graph");
}

}  // namespace

extern const FabricKind graph_kind{"graph",        describe_graph, generate_graph,
                                   nodes_in_units, nodes_of_unit,  [](const FabricType&) { return 0; },
                                   "units"};

std::vector<int> cables_named(const Fabric& f, const std::string& name) {
  std::vector<int> found;
  const size_t dash = name.find(" - ");
  const std::string first = name.substr(0, dash), second = dash == std::string::npos ? "" : name.substr(dash + 3);
  for (size_t c = 0; c < f.cables.size(); ++c) {
    const Cable& cable = f.cables[c];
    const std::string& a = f.vertices[static_cast<size_t>(cable.a)].name;
    const std::string& b = f.vertices[static_cast<size_t>(cable.b)].name;
    const bool match =
        second.empty() ? a == name || b == name || (cable.nic >= 0 && fmt::format("{} nic {}", a, cable.nic) == name)
                       : (a == first && b == second) || (a == second && b == first);
    if (match) found.push_back(static_cast<int>(c));
  }
  return found;
}

void apply_changes(FabricBuilder& b) {
  Fabric& f = b.fabric;
  const FabricType& type = b.cluster.fabric;
  const auto unknown = [&](const std::string& pointer, const std::string& name) {
    b.fault(pointer, fmt::format("there is no cable or switch \"{}\"", name), suggest(name, names_of(f), 6));
  };
  for (size_t i = 0; i < type.failed.size(); ++i) {
    const std::string& name = type.failed[i];
    const int v = f.vertex_named(name);
    if (v >= 0) {
      if (f.vertices[static_cast<size_t>(v)].kind == VertexKind::node)
        b.fault(fmt::format("/fabric/failed/{}", i), fmt::format("{} is a node, no switch or cable", name),
                "leave a broken node out by \"placement\"");
      f.vertices[static_cast<size_t>(v)].failed = true;
      continue;
    }
    const std::vector<int> cables = cables_named(f, name);
    if (cables.empty()) unknown(fmt::format("/fabric/failed/{}", i), name);
    for (const int c : cables) f.cables[static_cast<size_t>(c)].failed = true;
  }
  for (size_t i = 0; i < type.cable_changes.size(); ++i) {
    const CableChange& change = type.cable_changes[i];
    const std::vector<int> cables = cables_named(f, change.cable);
    if (cables.empty()) unknown(fmt::format("/fabric/cable_changes/{}/cable", i), change.cable);
    for (const int c : cables) {
      f.cables[static_cast<size_t>(c)].line_Bps = change.bandwidth.value();
      f.cables[static_cast<size_t>(c)].capacity_Bps = change.bandwidth.value() * type.link_efficiency;
    }
  }
}

}  // namespace tw
