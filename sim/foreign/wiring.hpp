// Nodes, switches and the cables between them as lists give them; tiers and units are inferred, and a tree of equal
// units is recognised, which is simulated faster than an explicit graph.
#pragma once

#include <string>
#include <vector>

#include "foreign/cluster_file.hpp"

namespace tw::foreign {

struct WiredCable {
  std::string from, to;  // a node or a switch each
  double bandwidth_Bps = 0;
  int count = 1;
  size_t line = 0;                 // of the file
  std::string from_port, to_port;  // may be empty
};

struct Wiring {
  std::vector<std::string> nodes, switches;
  std::vector<WiredCable> cables;
};

// Fills `parts` (fabric, ports, adapters of a node) and says what was inferred. Faults name lines: nodes with unlike
// numbers of cables, switches that no node reaches, cables between two nodes.
void put_wiring(const Source& source, Wiring wiring, ClusterParts& parts, std::vector<std::string>& said,
                Faults& faults);

}  // namespace tw::foreign
