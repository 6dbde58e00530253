#include "topology/fabric_kind.hpp"

#include <algorithm>

#include "core/codec.hpp"
#include "core/error.hpp"

namespace tw {

// A new kind is one file and one line here.
extern const FabricKind scalable_units_kind, fat_tree_kind, torus_kind, dragonfly_kind, graph_kind;

const std::vector<FabricKind>& fabric_kinds() {
  static const std::vector<FabricKind> kinds{scalable_units_kind, fat_tree_kind, torus_kind, dragonfly_kind,
                                             graph_kind};
  return kinds;
}

const std::vector<FabricKind>& kinds_known(const FabricType& type) {
  return type.kinds != nullptr ? *type.kinds : fabric_kinds();
}

const FabricKind* find_kind(const FabricType& type) {
  for (const FabricKind& kind : kinds_known(type))
    if (kind.name == type.kind) return &kind;
  return nullptr;
}

const FabricKind& kind_of(const FabricType& type) {
  const FabricKind* const kind = find_kind(type);
  if (kind == nullptr) throw SimulationError("there is no topology \"" + type.kind + "\"");
  return *kind;
}

int nodes_in_units(const FabricType& type) {
  return static_cast<int>(std::min<long long>(static_cast<long long>(type.units) * type.nodes_per_unit, 1000000000));
}

int nodes_of_unit(const FabricType& type) {
  return type.nodes_per_unit;
}

void describe_units(Description<FabricType>& d) {
  d.optional("units", &FabricType::units, "number of scalable units", between(1, 100000));
  d.optional("nodes_per_unit", &FabricType::nodes_per_unit, "nodes in a scalable unit", between(1, 100000));
}

int Cluster::nodes() const {
  const FabricKind* const kind = find_kind(fabric);
  return kind == nullptr ? nodes_in_units(fabric) : kind->nodes(fabric);
}

void FabricType::describe(Description<FabricType>& d) {
  describe_fabric(d, fabric_kinds());
}

void describe_fabric(Description<FabricType>& d, const std::vector<FabricKind>& kinds) {
  d.object("fabric", "The training network between the nodes.");
  std::vector<std::string> names;
  for (const FabricKind& kind : kinds) names.push_back(kind.name);
  d.variant("kind", &FabricType::kind, names, "topology generator");
  for (const FabricKind& kind : kinds) {
    d.when({kind.name});
    kind.describe(d);
  }
  d.when({});
  d.optional("routing", &FabricType::routing, "adaptive spraying over equal-cost paths, or ECMP hashing");
  d.optional("failed", &FabricType::failed, "what is broken: switches by name, cables as in cable_changes");
  d.optional("cable_changes", &FabricType::cable_changes, "cables that run at another speed");
  d.required("switch", &FabricType::switches, "the switch type");
  d.optional("network_rule", &FabricType::network_rule,
             "how switch power is apportioned to a job whose scenario names no rule");
  d.optional("link_efficiency", &FabricType::link_efficiency, "payload bandwidth over line rate", between(0.01, 1));
  d.optional("hop_latency", &FabricType::hop_latency, "latency of one cable and the switch or adapter behind it");
  d.optional("source", &FabricType::source, "where the numbers come from");
}

}  // namespace tw
