// Fat trees of two and three levels: scalable units of nodes below their own leaves, leaves below spines, spines, in
// groups, below cores. With wiring "rails" and as many leaves in a unit as NICs in a node it is rail-optimized; with
// one leaf a unit and wiring "all" it is a plain Ethernet leaf-spine network.
#include <fmt/format.h>

#include <algorithm>

#include "core/codec.hpp"
#include "topology/builder.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {
namespace {

std::string leaf_name(int unit, int leaf, int leaves) {
  if (leaves <= 26) return fmt::format("leaf-{}-{}", unit, static_cast<char>('A' + leaf));
  return fmt::format("leaf-{}-{}", unit, leaf);
}

int leaf_of(NicWiring wiring, int nic, int nics, int leaves, int node_in_unit, int nodes_per_unit) {
  switch (wiring) {
    case NicWiring::halves:
      return nic * leaves / nics;
    case NicWiring::rails:
      return nic % leaves;
    case NicWiring::rail_blocks: {
      const int per_rail = leaves / nics;
      return nic * per_rail + node_in_unit * per_rail / nodes_per_unit;
    }
    case NicWiring::all:
      return node_in_unit * leaves / nodes_per_unit;
  }
  return 0;
}

std::string multiple_of(int unit, int near) {
  return fmt::format("a multiple of {}, such as {}", unit, unit * std::max(1, (near + unit / 2) / unit));
}

void check(FabricBuilder& b) {
  const FabricType& f = b.cluster.fabric;
  const int nics = b.cluster.node.nics;
  if (f.wiring == NicWiring::halves && nics % f.leaves_per_unit != 0)
    b.fault("/node/nics", fmt::format("{} NICs do not divide over {} leaves", nics, f.leaves_per_unit),
            fmt::format("a multiple of {}", f.leaves_per_unit));
  if (f.wiring == NicWiring::rail_blocks && f.leaves_per_unit % nics != 0)
    b.fault("/fabric/leaves_per_unit", fmt::format("{} leaves do not divide over {} rails", f.leaves_per_unit, nics),
            multiple_of(nics, f.leaves_per_unit));
  if (f.spines > 0 && f.spines % f.spine_groups != 0)
    b.fault("/fabric/spines", fmt::format("{} spines do not divide into {} groups", f.spines, f.spine_groups),
            multiple_of(f.spine_groups, f.spines));
  const int dealt = f.spine_grouping == SpineGrouping::units ? f.units : f.leaves_per_unit;
  if (f.spine_groups > 1 && dealt % f.spine_groups != 0)
    b.fault("/fabric/spine_groups",
            fmt::format("{} {} do not divide over {} groups of spines", dealt,
                        f.spine_grouping == SpineGrouping::units ? "units" : "leaves of a unit", f.spine_groups),
            fmt::format("a divisor of {}", dealt));
  const int reachable = f.spines / f.spine_groups;
  if (reachable > 0 && f.uplinks_per_leaf % reachable != 0)
    b.fault("/fabric/uplinks_per_leaf",
            fmt::format("the {} uplinks of leaf-0-A do not divide onto {} spines", f.uplinks_per_leaf, reachable),
            multiple_of(reachable, f.uplinks_per_leaf));
  if (f.spines > 0 && f.uplinks_per_leaf > 0 && !(f.uplink_bandwidth.value() > 0))
    b.fault("/fabric/uplink_bandwidth", "the leaf-spine cables have no bandwidth", "such as \"400 Gbit/s\"");
}

// Cores in blocks, one for each place of a spine in its group: every group reaches every core.
void add_cores(FabricBuilder& b, const std::vector<int>& spines) {
  const FabricType& f = b.cluster.fabric;
  if (f.cores == 0) return;
  const int per_group = f.spines / f.spine_groups;
  if (per_group == 0)
    return b.fault("/fabric/cores", fmt::format("{} cores above no spines", f.cores),
                   "no cores, or a spine in each group at least");
  const int block = f.cores >= per_group ? f.cores / per_group : f.cores;
  if (f.cores >= per_group && f.cores % per_group != 0)
    return b.fault("/fabric/cores",
                   fmt::format("{} cores do not divide over the {} spines of a group", f.cores, per_group),
                   multiple_of(per_group, f.cores));
  if (f.uplinks_per_spine == 0 || f.uplinks_per_spine % block != 0)
    return b.fault("/fabric/uplinks_per_spine",
                   fmt::format("the {} uplinks of spine-0 do not divide onto {} cores", f.uplinks_per_spine, block),
                   multiple_of(block, std::max(1, f.uplinks_per_spine)));
  const double line_Bps = f.core_bandwidth.value() > 0 ? f.core_bandwidth.value() : f.uplink_bandwidth.value();
  std::vector<int> cores;
  for (int c = 0; c < f.cores; ++c) cores.push_back(b.add_switch(fmt::format("core-{}", c), 3, -1));
  for (int s = 0; s < f.spines; ++s) {
    const int first = f.cores >= per_group ? s % per_group * block : 0;
    for (int u = 0; u < f.uplinks_per_spine; ++u)
      b.connect(spines[static_cast<size_t>(s)], cores[static_cast<size_t>(first + u % block)], CableKind::core,
                line_Bps);
  }
}

void generate_fat_tree(FabricBuilder& b) {
  const FabricType& f = b.cluster.fabric;
  const int nics = b.cluster.node.nics;
  if (f.leaves_per_unit == 0 || nics == 0) {
    if (b.fabric.node_count > b.cluster.node.nvlink.nodes)
      b.fault(
          nics == 0 ? "/node/nics" : "/fabric/leaves_per_unit",
          fmt::format("node-1 is not reachable from node-0: {}", nics == 0 ? "nodes have no NIC" : "there is no leaf"),
          "at least 1 for a cluster of more than one node");
    else
      b.fabric.nics = 0;  // adapters that are plugged in nowhere
    return;
  }
  check(b);
  if (!b.faults.empty()) return;

  std::vector<int> spines;
  const int per_group = f.spines / f.spine_groups;
  for (int s = 0; s < f.spines; ++s)
    spines.push_back(b.add_switch(fmt::format("spine-{}", s), 2, f.spine_groups > 1 ? s / per_group : -1));
  for (int u = 0; u < f.units; ++u) {
    std::vector<int> leaves;
    for (int l = 0; l < f.leaves_per_unit; ++l)
      leaves.push_back(b.add_switch(leaf_name(u, l, f.leaves_per_unit), 1, u));
    for (int n = 0; n < f.nodes_per_unit; ++n)
      for (int k = 0; k < nics; ++k)
        b.connect_nic(u * f.nodes_per_unit + n, k,
                      leaves[static_cast<size_t>(leaf_of(f.wiring, k, nics, f.leaves_per_unit, n, f.nodes_per_unit))]);
    for (int l = 0; l < f.leaves_per_unit && f.spines > 0; ++l) {
      const int group = f.spine_grouping == SpineGrouping::units ? u * f.spine_groups / f.units
                                                                 : l * f.spine_groups / f.leaves_per_unit;
      for (int c = 0; c < f.uplinks_per_leaf; ++c)
        b.connect(leaves[static_cast<size_t>(l)], spines[static_cast<size_t>(group * per_group + c % per_group)],
                  CableKind::uplink, f.uplink_bandwidth.value());
    }
  }
  add_cores(b, spines);
}

void describe_fat_tree(Description<FabricType>& d) {
  describe_units(d);
  d.optional("leaves_per_unit", &FabricType::leaves_per_unit, "leaf switches in a scalable unit", between(0, 4096));
  d.optional("spines", &FabricType::spines, "spine switches of the cluster", between(0, 100000));
  d.optional("uplinks_per_leaf", &FabricType::uplinks_per_leaf, "cables from a leaf to the spines, dealt out evenly",
             between(0, 4096));
  d.optional("uplink_bandwidth", &FabricType::uplink_bandwidth,
             "bandwidth of one cable between switches (leaf-spine, of a torus, inside a group), one direction");
  d.optional("wiring", &FabricType::wiring, "how the NICs of a node are spread over the leaves of its unit");
  d.optional("spine_groups", &FabricType::spine_groups, "groups of spines in a fat tree of three levels",
             between(1, 4096));
  d.optional("spine_grouping", &FabricType::spine_grouping, "which leaves share a group of spines");
  d.optional("cores", &FabricType::cores, "core switches above the spines; 0: two levels", between(0, 100000));
  d.optional("uplinks_per_spine", &FabricType::uplinks_per_spine, "cables from a spine to the cores", between(0, 4096));
  d.optional("core_bandwidth", &FabricType::core_bandwidth,
             "bandwidth of one spine-core cable, one direction; absent: as uplink_bandwidth");
}

int levels_of_fat_tree(const FabricType& f) {
  if (f.leaves_per_unit == 0) return 0;
  return f.spines == 0 ? 1 : f.cores == 0 ? 2 : 3;
}

}  // namespace

extern const FabricKind fat_tree_kind{
    "fat_tree", describe_fat_tree, generate_fat_tree, nodes_in_units, nodes_of_unit, levels_of_fat_tree, "units"};
extern const FabricKind scalable_units_kind{
    "scalable_units", describe_fat_tree, generate_fat_tree, nodes_in_units, nodes_of_unit, levels_of_fat_tree, "units"};

}  // namespace tw
