#include "topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/incremental_components.hpp>

#include "core/text.hpp"
#include "topology/builder.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {

const char* cable_kind_name(CableKind kind) {
  switch (kind) {
    case CableKind::nic:
      return "NIC";
    case CableKind::uplink:
      return "leaf-spine";
    case CableKind::core:
      return "spine-core";
    case CableKind::mesh:
      return "mesh";
    case CableKind::global:
      return "global";
    case CableKind::nvlink:
      return "NVLink";
  }
  return "?";
}

std::string Fabric::link_name(int link) const {
  if (link >= pcie_links()) return pcie_link_name(link);
  if (link >= cable_links()) {
    const int gpu = (link - cable_links()) / 2 % (node_count * gpus);
    return fmt::format("node-{} GPU {} {} {}", gpu / gpus, gpu % gpus, link_class(link),
                       (link - cable_links()) % 2 == 0 ? "out" : "in");
  }
  const Cable& c = cables[static_cast<size_t>(link / 2)];
  const std::string lower = vertices[static_cast<size_t>(c.a)].name + (c.nic >= 0 ? fmt::format(" nic {}", c.nic) : "");
  const std::string& upper = vertices[static_cast<size_t>(c.b)].name;
  return link % 2 == 0 ? lower + " -> " + upper : upper + " -> " + lower;
}

const char* Fabric::link_class(int link) const {
  if (link >= pcie_links()) {
    const int at = (link - pcie_links()) % pcie_links_of_node() / 2;
    return at < static_cast<int>(pcie.switches.size()) ? "PCIe switch" : "inter-socket";
  }
  if (link >= host_links()) return "PCIe";
  return link >= cable_links() ? "NVLink" : cable_kind_name(cables[static_cast<size_t>(link / 2)].kind);
}

bool Fabric::nic_alive(int node, int nic) const {
  const Cable& c = cables[static_cast<size_t>(nic_cable[static_cast<size_t>(node * nics + nic)])];
  return !c.failed && !vertices[static_cast<size_t>(c.b)].failed && !vertices[static_cast<size_t>(c.a)].failed;
}

bool Fabric::goes_up(int cable, int vertex) const {
  const Cable& c = cables[static_cast<size_t>(cable)];
  return (c.kind == CableKind::uplink || c.kind == CableKind::core) && c.a == vertex && !c.failed &&
         !vertices[static_cast<size_t>(c.b)].failed;
}

int Fabric::vertex_named(const std::string& name) const {
  for (size_t v = 0; v < vertices.size(); ++v)
    if (vertices[v].name == name) return static_cast<int>(v);
  return -1;
}

int Fabric::ports_used(int vertex) const {
  return static_cast<int>(cables_at[static_cast<size_t>(vertex)].size());
}

int Fabric::add_vertex(FabricVertex vertex) {
  vertices.push_back(std::move(vertex));
  cables_at.emplace_back();
  return static_cast<int>(vertices.size()) - 1;
}

FabricBuilder::FabricBuilder(const Cluster& c) : cluster(c) {
  fabric.cluster_name = c.name;
  fabric.type = c.fabric;
  fabric.nvlink = c.node.nvlink;
  // The shortest call of a host that issues one after the other is its own time to issue it.
  if (fabric.nvlink.host_calls)
    for (DomainCollective& known : fabric.nvlink.collectives)
      known.floor = seconds(known.floor.value() / c.hosts.launch_speed);
  fabric.pcie = c.node.pcie;
  fabric.nics = c.node.nics;
  fabric.gpus = c.node.gpus;
  fabric.nvlink_Bps = c.node.nvlink.bandwidth.value();
  fabric.host_Bps = c.node.accelerator.host_bandwidth.value();
  fabric.hop_latency_s = c.fabric.hop_latency.value();
  fabric.routing = c.fabric.routing;
}

constexpr size_t kMostCables = 4000000;

int FabricBuilder::add_switch(std::string name, int tier, int unit, int ports) {
  if (fabric.vertices.size() >= kMostCables) throw FabricTooLarge();
  return fabric.add_vertex({VertexKind::network_switch, std::move(name), tier, unit,
                            ports > 0 ? ports : cluster.fabric.switches.ports, false});
}

void FabricBuilder::connect(int a, int b, CableKind kind, double line_Bps, int nic) {
  if (fabric.cables.size() >= kMostCables) throw FabricTooLarge();
  const int id = static_cast<int>(fabric.cables.size());
  const double efficiency = kind == CableKind::nvlink ? 1 : cluster.fabric.link_efficiency;
  fabric.cables.push_back({kind, a, b, line_Bps, line_Bps * efficiency, false, nic});
  for (const int end : {a, b}) fabric.cables_at[static_cast<size_t>(end)].push_back(id);
}

void FabricBuilder::connect_nic(int node, int nic, int to, double line_Bps) {
  fabric.nic_cable[static_cast<size_t>(node * fabric.nics + nic)] = static_cast<int>(fabric.cables.size());
  connect(node, to, CableKind::nic, line_Bps > 0 ? line_Bps : cluster.node.nic_bandwidth.value(), nic);
}

namespace {

void check_ports(FabricBuilder& b) {
  for (size_t v = 0; v < b.fabric.vertices.size(); ++v) {
    const FabricVertex& x = b.fabric.vertices[v];
    const int used = b.fabric.ports_used(static_cast<int>(v));
    if (x.kind != VertexKind::network_switch || used <= x.ports) continue;
    // Switches of one kind share the fault: the first of a tier stands for all.
    b.fault("/fabric/switch/ports", fmt::format("{} cables on {}, which has {} ports", used, x.name, x.ports),
            fmt::format("at most {} cables a switch, or switches with at least {} ports", x.ports, used));
    return;
  }
}

// Every node must reach node 0 over live cables and switches.
void check_connected(FabricBuilder& b) {
  const Fabric& f = b.fabric;
  boost::disjoint_sets_with_storage<> parts(f.vertices.size());
  for (const Cable& c : f.cables) {
    const auto low = static_cast<size_t>(c.a), high = static_cast<size_t>(c.b);
    if (!c.failed && !f.vertices[low].failed && !f.vertices[high].failed) parts.union_set(low, high);
  }
  int missing = 0, first = -1;
  for (int n = 0; n < f.node_count; ++n)
    if (parts.find_set(static_cast<size_t>(n)) != parts.find_set(size_t{0})) {
      if (first < 0) first = n;
      ++missing;
    }
  if (missing == 0) return;
  const std::string others = missing > 1 ? fmt::format(" (and {} more nodes)", missing - 1) : "";
  b.fault("/fabric",
          fmt::format("{} cannot be reached from {}{}", f.vertices[static_cast<size_t>(first)].name, f.vertices[0].name,
                      others),
          "every node needs a live path to every other");
}

// NVLink domains wider than a node are switches of their own, so that drawings and checks see them.
void add_domains(FabricBuilder& b) {
  Fabric& f = b.fabric;
  f.nodes_per_domain = b.cluster.node.nvlink.nodes;
  if (f.nodes_per_domain == 1) return;
  if (f.node_count % f.nodes_per_domain != 0) {
    b.fault("/node/nvlink/nodes",
            fmt::format("NVLink domains of {} nodes do not divide {} nodes", f.nodes_per_domain, f.node_count),
            "a divisor of the number of nodes");
    return;
  }
  for (int d = 0; d < f.node_count / f.nodes_per_domain; ++d) {
    const int v = f.add_vertex({VertexKind::nvlink_switch, fmt::format("nvlink-{}", d), 1, d, 0, false});
    for (int n = 0; n < f.nodes_per_domain; ++n)
      b.connect(d * f.nodes_per_domain + n, v, CableKind::nvlink, f.nvlink_Bps * f.gpus);
  }
}

FabricBuilder generate(const Cluster& cluster) {
  FabricBuilder b(cluster);
  const auto& measured = cluster.node.nvlink.collectives;
  for (size_t i = 0; i < measured.size(); ++i)
    if (std::count(collective_names().begin(), collective_names().end(), measured[i].operation) == 0)
      b.fault(fmt::format("/node/nvlink/collectives/{}/operation", i),
              fmt::format("there is no collective \"{}\"", measured[i].operation),
              suggest(measured[i].operation, collective_names()));
  const FabricKind* const kind = find_kind(cluster.fabric);
  if (kind == nullptr) {
    std::vector<std::string> known;
    for (const FabricKind& k : kinds_known(cluster.fabric)) known.push_back(k.name);
    b.fault("/fabric/kind", fmt::format("there is no topology \"{}\"", cluster.fabric.kind),
            suggest(cluster.fabric.kind, known));
    return b;
  }
  if (cluster.node.nvlink.island > 0 && !(cluster.node.accelerator.host_bandwidth.value() > 0))
    b.fault("/node/accelerator/host_bandwidth", "accelerators that NVLink does not join need a PCIe link",
            "such as \"53 GB/s\"");
  Fabric& f = b.fabric;
  f.node_count = cluster.nodes();
  if (f.node_count < 1 || f.node_count > 200000) {
    b.fault(std::string("/fabric/") + kind->size_key,
            fmt::format("a cluster of {} nodes cannot be built", f.node_count), "1 to 200,000 nodes");
    return b;
  }
  for (int n = 0; n < f.node_count; ++n) f.add_vertex({VertexKind::node, fmt::format("node-{}", n), 0, -1, 0, false});
  f.nic_cable.assign(static_cast<size_t>(f.node_count) * static_cast<size_t>(f.nics), -1);
  try {
    kind->generate(b);
  } catch (const FabricTooLarge&) {
    b.fault("/fabric", fmt::format("the fabric would have more than {} switches or cables", kMostCables),
            "a smaller one");
    return b;
  }
  add_pcie(b);
  if (b.faults.empty()) add_domains(b);
  if (b.faults.empty()) check_ports(b);
  if (b.faults.empty()) apply_changes(b);
  if (b.faults.empty()) check_connected(b);
  return b;
}

}  // namespace

Fabric build_fabric(const Cluster& cluster) {
  FabricBuilder b = generate(cluster);
  if (!b.faults.empty()) {
    std::vector<Fault> faults;
    for (const FabricFault& f : b.faults) faults.push_back({cluster.name, f.pointer, f.what, f.allowed});
    throw InputError(std::move(faults));
  }
  return std::move(b.fabric);
}

void check_fabric(const Cluster& cluster, const ReadContext& at) {
  for (const FabricFault& f : generate(cluster).faults) {
    ReadContext here = at;
    here.pointer += f.pointer;
    here.fault(f.what, f.allowed);
  }
}

std::string nodes_problem(const Cluster& cluster, int nodes) {
  const int have = cluster.nodes();
  if (nodes <= have) return "";
  return fmt::format("{} nodes are asked for, but {} has {}", nodes, cluster.name, have);
}

}  // namespace tw
