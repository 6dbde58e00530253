// Kinds of fabric: each stands in one file, with the keys that it reads, and in one line of the table of
// fabric_kind.cpp. Nobody compares their names.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace tw {

class FabricBuilder;

struct FabricKind {
  const char* name;
  void (*describe)(Description<FabricType>&);  // its own keys
  void (*generate)(FabricBuilder&);
  int (*nodes)(const FabricType&);           // how many the cluster has
  int (*nodes_per_unit)(const FabricType&);  // nodes come unit by unit; 0: no units
  int (*levels)(const FabricType&);          // of a tree of equal units; 0: no such tree
  const char* size_key;                      // what to change when the cluster is too large
  const char* switch_name = "switch";        // of a switch without a level
  bool own_switches = true;                  // switches are boxes beside the nodes, with a power of their own
  bool symmetric = false;                    // looks the same from every node
};

const std::vector<FabricKind>& fabric_kinds();

// Those of the program, or what a program that links this library brings along (FabricType::kinds).
const std::vector<FabricKind>& kinds_known(const FabricType& type);
// Null for a name that is none.
const FabricKind* find_kind(const FabricType& type);
// Throws SimulationError for a name that is none: inputs are checked before.
const FabricKind& kind_of(const FabricType& type);
// The keys of the fabric block, each kind's with its name.
void describe_fabric(Description<FabricType>& d, const std::vector<FabricKind>& kinds);

// Node next to one of a torus along a dimension: over its end, and on by its twist.
int torus_neighbour(const FabricType& type, int node, size_t dimension);

// For kinds whose units are units * nodes_per_unit nodes, and their keys.
int nodes_in_units(const FabricType& type);
int nodes_of_unit(const FabricType& type);
void describe_units(Description<FabricType>& d);

}  // namespace tw
