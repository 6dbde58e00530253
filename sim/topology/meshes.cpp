// Networks without levels: the torus, whose nodes carry their own router, and the dragonfly.
#include <fmt/format.h>

#include <algorithm>

#include "core/codec.hpp"
#include "topology/builder.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {
namespace {

int no_levels(const FabricType&) {
  return 0;
}

void describe_torus(Description<FabricType>& d) {
  d.optional("dimensions", &FabricType::dimensions, "nodes along each dimension of a torus, such as [16, 16, 16]",
             between(1, 100000));
  d.optional(
      "twists", &FabricType::twists,
      "nodes by which the wrap-around of each dimension but the last is shifted along the next one, such as [2] of "
      "a twisted torus [2, 4]",
      between(0, 100000));
  d.optional("uplink_bandwidth", &FabricType::uplink_bandwidth, "");
}

int nodes_in_torus(const FabricType& f) {
  long long n = f.dimensions.empty() ? 0 : 1;
  for (const int d : f.dimensions) n = std::min<long long>(n * d, 1000000);
  return static_cast<int>(n);
}

}  // namespace

int torus_neighbour(const FabricType& f, int node, size_t dimension) {
  const auto twist = [&](size_t i) { return i < f.twists.size() ? f.twists[i] % f.dimensions[i + 1] : 0; };
  int stride = 1;
  for (size_t i = 0; i < dimension; ++i) stride *= f.dimensions[i];
  int next = node;
  for (int by = 1; by > 0; ++dimension) {  // over the end along the next one by the twist, and over its end in turn
    const int size = f.dimensions[dimension], x = node / stride % size;
    next += ((x + by) % size - x) * stride;
    by = x + by < size ? 0 : twist(dimension);
    stride *= size;
  }
  return next;
}

namespace {

// Node (x, y, z) has router (x, y, z); all its adapters are plugged into it, and cables of uplink_bandwidth go to the
// neighbours along each dimension, with wrap-around. A dimension of 2 has one cable, not two, unless it is twisted.
void generate_torus(FabricBuilder& b) {
  const FabricType& f = b.cluster.fabric;
  if (!f.twists.empty() && f.twists.size() >= f.dimensions.size())
    return b.fault("/fabric/twists", fmt::format("{} twists of {} dimensions", f.twists.size(), f.dimensions.size()),
                   "one less than dimensions at most: nothing comes after the last");
  if (f.dimensions.empty())
    return b.fault("/fabric/dimensions", "a torus needs its dimensions", "such as [16, 16, 16]");
  if (!(f.uplink_bandwidth.value() > 0))
    return b.fault("/fabric/uplink_bandwidth", "the cables of the torus have no bandwidth", "such as \"400 Gbit/s\"");
  if (b.cluster.node.nics == 0)
    return b.fault("/node/nics", "node-1 is not reachable from node-0: nodes have no NIC", "at least 1");
  const int ports = std::max(f.switches.ports, b.cluster.node.nics + 2 * static_cast<int>(f.dimensions.size()));
  std::vector<int> routers;
  for (int n = 0; n < b.fabric.node_count; ++n) {
    routers.push_back(b.add_switch(fmt::format("router-{}", n), 1, -1, ports));
    for (int k = 0; k < b.cluster.node.nics; ++k) b.connect_nic(n, k, routers.back());
  }
  const auto twist = [&](size_t i) { return i < f.twists.size() ? f.twists[i] % f.dimensions[i + 1] : 0; };
  int stride = 1;
  for (size_t i = 0; i < f.dimensions.size(); ++i) {
    const int d = f.dimensions[i];
    for (int n = 0; n < b.fabric.node_count; ++n) {
      const int x = n / stride % d;
      if ((d == 1 || (d == 2 && x == 1)) && (twist(i) == 0 || x + 1 < d)) continue;
      const int next = torus_neighbour(f, n, i);
      if (next != n)
        b.connect(routers[static_cast<size_t>(n)], routers[static_cast<size_t>(next)], CableKind::mesh,
                  f.uplink_bandwidth.value());
    }
    stride *= d;
  }
}

// Units are groups: nodes are dealt over the switches of their group, which are all cabled to one another; the global
// cables of a group are dealt over the other groups in turn (Kim, Dally, Scott, Abts 2008, "absolute" arrangement).
void generate_dragonfly(FabricBuilder& b) {
  const FabricType& f = b.cluster.fabric;
  const int a = f.switches_per_group, h = f.global_links_per_switch, groups = f.units;
  if (!(f.uplink_bandwidth.value() > 0))
    return b.fault("/fabric/uplink_bandwidth", "the cables of the dragonfly have no bandwidth",
                   "such as \"400 Gbit/s\"");
  if (b.cluster.node.nics == 0)
    return b.fault("/node/nics", "node-1 is not reachable from node-0: nodes have no NIC", "at least 1");
  if (groups > 1 && a * h < groups - 1)
    return b.fault("/fabric/global_links_per_switch",
                   fmt::format("{} global cables of a group do not reach {} other groups", a * h, groups - 1),
                   fmt::format("at least {}", (groups - 1 + a - 1) / a));
  const double global_Bps = f.global_bandwidth.value() > 0 ? f.global_bandwidth.value() : f.uplink_bandwidth.value();
  std::vector<int> switches;
  for (int g = 0; g < groups; ++g) {
    for (int s = 0; s < a; ++s) switches.push_back(b.add_switch(fmt::format("switch-{}-{}", g, s), 1, g));
    for (int n = 0; n < f.nodes_per_unit; ++n)
      for (int k = 0; k < b.cluster.node.nics; ++k)
        b.connect_nic(g * f.nodes_per_unit + n, k, switches[static_cast<size_t>(g * a + n * a / f.nodes_per_unit)]);
    for (int s = 0; s < a; ++s)
      for (int t = s + 1; t < a; ++t)
        for (int c = 0; c < f.local_links; ++c)
          b.connect(switches[static_cast<size_t>(g * a + s)], switches[static_cast<size_t>(g * a + t)], CableKind::mesh,
                    f.uplink_bandwidth.value());
  }
  if (groups == 1) return;
  // Each pair of groups gets the same number of cables; which switch carries one follows from its number in the group.
  const int per_pair = a * h / (groups - 1);
  for (int g = 0; g < groups; ++g)
    for (int o = g + 1; o < groups; ++o)
      for (int c = 0; c < per_pair; ++c) {
        const int here = (o - 1) + c * (groups - 1), there = g + c * (groups - 1);
        b.connect(switches[static_cast<size_t>(g * a + here / h)], switches[static_cast<size_t>(o * a + there / h)],
                  CableKind::global, global_Bps);
      }
}

void describe_dragonfly(Description<FabricType>& d) {
  describe_units(d);
  d.optional("uplink_bandwidth", &FabricType::uplink_bandwidth, "");
  d.optional("switches_per_group", &FabricType::switches_per_group, "switches of a dragonfly group (a unit)",
             between(1, 4096));
  d.optional("local_links", &FabricType::local_links, "parallel cables between two switches of a dragonfly group",
             between(1, 4096));
  d.optional("global_links_per_switch", &FabricType::global_links_per_switch,
             "cables of a dragonfly switch to other groups", between(0, 4096));
  d.optional("global_bandwidth", &FabricType::global_bandwidth,
             "bandwidth of one such cable, one direction; absent: as uplink_bandwidth");
}

}  // namespace

extern const FabricKind torus_kind{"torus",   describe_torus, generate_torus, nodes_in_torus, no_levels,
                                   no_levels, "dimensions",   "router",       false,          true};
extern const FabricKind dragonfly_kind{
    "dragonfly", describe_dragonfly, generate_dragonfly, nodes_in_units, nodes_of_unit, no_levels, "units"};

}  // namespace tw
