// What topology generators write to.
#pragma once

#include <string>
#include <vector>

#include "topology/fabric.hpp"

namespace tw {

// A fault in the words of the cluster block: pointer below the cluster ("/fabric/spines"), what, what is allowed.
struct FabricFault {
  std::string pointer, what, allowed;
};

// Thrown by the builder when numbers multiply to more than a machine should hold; generate() makes a fault of it.
struct FabricTooLarge {};

class FabricBuilder {
 public:
  explicit FabricBuilder(const Cluster& cluster);
  // `ports` 0: of the cluster's switch type. Returns the vertex.
  int add_switch(std::string name, int tier, int unit, int ports = 0);
  void connect(int a, int b, CableKind kind, double line_Bps, int nic = -1);
  void connect_nic(int node, int nic, int to, double line_Bps = 0);  // 0: as the node's adapters
  void fault(std::string pointer, std::string what, std::string allowed = "") {
    faults.push_back({std::move(pointer), std::move(what), std::move(allowed)});
  }
  const Cluster& cluster;
  Fabric fabric;
  std::vector<FabricFault> faults;
};

// Cables named by "node-3 nic 2", "leaf-0-A - spine-1" or one end; empty when nothing has that name.
std::vector<int> cables_named(const Fabric& fabric, const std::string& name);

// The PCIe trees of the nodes, and the adapters that serve each accelerator (pcie_paths.cpp).
void add_pcie(FabricBuilder& b);

// Marks what is broken and changes speeds, as the fabric block says.
void apply_changes(FabricBuilder& b);

}  // namespace tw
