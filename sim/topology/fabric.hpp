// The fabric as a graph: nodes (each with its adapters), NVLink domains wider than a node, switches, and cables between
// them. A cable is one undirected edge that carries its bandwidth in each direction, so it gives two links.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace tw {

enum class VertexKind { node, nvlink_switch, network_switch };

struct FabricVertex {
  VertexKind kind = VertexKind::node;
  std::string name;
  int tier = 0;   // 0 node, 1 leaf (or router), 2 spine, 3 core
  int unit = -1;  // scalable unit, pod or group; -1 = none
  int ports = 0;  // of a network switch
  bool failed = false;
};

enum class CableKind { nic, uplink, core, mesh, global, nvlink };
// "NIC", "leaf-spine", ...: the class of links that reports name as a bottleneck.
const char* cable_kind_name(CableKind kind);

struct Cable {
  CableKind kind = CableKind::uplink;
  int a = 0, b = 0;         // vertices; a is the lower end
  double line_Bps = 0;      // one direction, line rate
  double capacity_Bps = 0;  // one direction, payload
  bool failed = false;
  int nic = -1;  // adapter of node `a`, for cables of kind nic
};

// Vertices 0 .. nodes-1 are the nodes. Link 2c is cable c from its end a to its end b, link 2c + 1 the way back; after
// the cables come two NVLink links per accelerator, out and in, then two of its PCIe link, then, node by node, two of
// each PCIe switch, up and down, and two of each socket, out and in.
class Fabric {
 public:
  std::vector<FabricVertex> vertices;
  std::vector<std::vector<int>> cables_at;  // [vertex] -> its cables, failed ones too
  std::vector<Cable> cables;
  std::vector<int> nic_cable;  // [node * nics + nic] -> cable
  int node_count = 0;
  int nics = 0;              // per node
  int gpus = 0;              // per node
  int nodes_per_domain = 1;  // nodes that share one NVLink domain
  double nvlink_Bps = 0;     // per accelerator and direction
  double host_Bps = 0;       // the same of its PCIe link; 0: no limit
  double hop_latency_s = 0;
  RoutingPolicy routing = RoutingPolicy::adaptive;
  std::string cluster_name;
  FabricType type;  // as described
  NvlinkDomain nvlink;
  PcieTree pcie;
  std::vector<int> pcie_above;                // [switch] -> switch, -1: the root
  std::vector<int> gpu_place, nic_place;      // -> switch; empty without a tree
  std::vector<std::vector<int>> nics_beside;  // [gpu] -> adapters that serve it

  int cable_links() const { return 2 * static_cast<int>(cables.size()); }
  int host_links() const { return cable_links() + 2 * node_count * gpus; }  // first of the PCIe links
  int pcie_links() const { return host_links() + 2 * node_count * gpus; }   // first of those that devices share
  int pcie_links_of_node() const {
    return pcie.switches.empty() ? 0 : 2 * (static_cast<int>(pcie.switches.size()) + pcie.sockets());
  }
  int link_count() const { return pcie_links() + node_count * pcie_links_of_node(); }
  int link(int cable, int from_vertex) const {
    return 2 * cable + (cables[static_cast<size_t>(cable)].a == from_vertex ? 0 : 1);
  }
  int nvlink_out(int node, int gpu) const { return cable_links() + 2 * (node * gpus + gpu); }
  int nvlink_in(int node, int gpu) const { return nvlink_out(node, gpu) + 1; }
  int host_out(int node, int gpu) const { return host_links() + 2 * (node * gpus + gpu); }
  int host_in(int node, int gpu) const { return host_out(node, gpu) + 1; }
  // Accelerators of one node that NVLink does not join?
  bool over_host(int node_a, int gpu_a, int node_b, int gpu_b) const {
    return nvlink.island > 0 && node_a == node_b && gpu_a / nvlink.island != gpu_b / nvlink.island;
  }
  double link_capacity_Bps(int link) const {
    if (link < cable_links()) return cables[static_cast<size_t>(link / 2)].capacity_Bps;
    if (link < pcie_links()) return link < host_links() ? nvlink_Bps : host_Bps;
    const auto s = static_cast<size_t>((link - pcie_links()) % pcie_links_of_node() / 2);
    return (s < pcie.switches.size() ? pcie.switches[s].uplink : pcie.inter_socket).value();
  }
  // Shared links from a device below switch `from` of a node to one below `to`.
  std::vector<int> pcie_path(int node, int from, int to) const;
  std::string link_name(int link) const;   // "node-3 nic 2 -> leaf-0-A"
  const char* link_class(int link) const;  // "NIC", "leaf-spine", "NVLink", ...
  int nic_link_out(int node, int nic) const { return link(nic_cable[static_cast<size_t>(node * nics + nic)], node); }
  int nic_link_in(int node, int nic) const { return nic_link_out(node, nic) ^ 1; }
  int nic_switch(int node, int nic) const {
    return cables[static_cast<size_t>(nic_cable[static_cast<size_t>(node * nics + nic)])].b;
  }
  int add_vertex(FabricVertex vertex);
  bool nic_alive(int node, int nic) const;
  bool goes_up(int cable, int vertex) const;        // from this switch to a live one of the level above
  int vertex_named(const std::string& name) const;  // -1 = none
  int ports_used(int vertex) const;                 // cables plugged in, failed ones too

 private:
  std::string pcie_link_name(int link) const;
};

// Builds the graph and checks it. Throws InputError naming the switch that has too few ports, uplinks that do not
// divide, the node that cannot be reached.
Fabric build_fabric(const Cluster& cluster);

// The same faults, told with the file and pointer of the cluster block that `at` stands on.
void check_fabric(const Cluster& cluster, const ReadContext& at);

// Empty when `nodes` nodes fit on the cluster, else what is wrong.
std::string nodes_problem(const Cluster& cluster, int nodes);

}  // namespace tw
