#include "report/topology_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "report/numbers.hpp"
#include "topology/routing.hpp"

namespace tw::report {
namespace {

struct TierSummary {
  int switches = 0, ports = 0, used = 0;
  double down_Bps = 0, up_Bps = 0;  // of all cables to lower and to higher tiers, one direction
};

struct CableSummary {
  int count = 0;
  double line_Bps = 0, capacity_Bps = 0;  // of one cable; the slowest
};

const char* tier_name(int tier) {
  switch (tier) {
    case 1:
      return "leaf";
    case 2:
      return "spine";
    case 3:
      return "core";
    default:
      return "other";
  }
}

std::map<int, TierSummary> tiers_of(const Fabric& f) {
  std::map<int, TierSummary> tiers;
  for (size_t v = 0; v < f.vertices.size(); ++v) {
    if (f.vertices[v].kind != VertexKind::network_switch) continue;
    TierSummary& t = tiers[f.vertices[v].tier];
    ++t.switches;
    t.ports += f.vertices[v].ports;
    t.used += f.ports_used(static_cast<int>(v));
  }
  for (const Cable& c : f.cables) {
    const FabricVertex &a = f.vertices[static_cast<size_t>(c.a)], &b = f.vertices[static_cast<size_t>(c.b)];
    if (c.failed || a.tier == b.tier) continue;
    const FabricVertex &low = a.tier < b.tier ? a : b, &high = a.tier < b.tier ? b : a;
    if (low.kind == VertexKind::network_switch) tiers[low.tier].up_Bps += c.capacity_Bps;
    if (high.kind == VertexKind::network_switch) tiers[high.tier].down_Bps += c.capacity_Bps;
  }
  return tiers;
}

std::map<std::string, CableSummary> cables_of(const Fabric& f) {
  std::map<std::string, CableSummary> kinds;
  for (const Cable& c : f.cables) {
    CableSummary& k = kinds[cable_kind_name(c.kind)];
    k.line_Bps = k.count == 0 ? c.line_Bps : std::min(k.line_Bps, c.line_Bps);
    k.capacity_Bps = k.count == 0 ? c.capacity_Bps : std::min(k.capacity_Bps, c.capacity_Bps);
    ++k.count;
  }
  return kinds;
}

std::string rate(double Bps) {
  return fmt::format("{} Gbit/s", plain(Bps * 8e-9));
}

int node_named(const Fabric& f, const std::string& name) {
  const int v = f.vertex_named(name);
  if (v >= 0 && f.vertices[static_cast<size_t>(v)].kind == VertexKind::node) return v;
  std::vector<std::string> names;
  for (const FabricVertex& vertex : f.vertices)
    if (vertex.kind == VertexKind::node) names.push_back(vertex.name);
  throw InputError({{"--route", "", fmt::format("there is no node \"{}\"", name), suggest(name, names, 4)}});
}

}  // namespace

std::string topology_table(const Cluster& cluster, const Fabric& f) {
  std::string out = fmt::format("{}\n  {} nodes, {} accelerators ({} a node, {}), {} NICs a node\n", cluster.name,
                                f.node_count, f.node_count * f.gpus, f.gpus, cluster.node.accelerator.name, f.nics);
  out += fmt::format("  NVLink {} each way per accelerator\n", bytes_text(f.nvlink_Bps) + "/s");
  out += fmt::format("  {:<10} {:>9} {:>8} {:>8} {:>8}   {}\n", "switches", "count", "ports", "used", "free",
                     "bandwidth down : up");
  for (const auto& [tier, t] : tiers_of(f))
    out += fmt::format("    {:<8} {:>9} {:>8} {:>8} {:>8}   {}\n", tier_name(tier), t.switches, t.ports, t.used,
                       t.ports - t.used, t.up_Bps > 0 ? fmt::format("{} : 1", plain(t.down_Bps / t.up_Bps, 3)) : "-");
  out += fmt::format("  {:<10} {:>9} {:>17} {:>17}\n", "cables", "count", "line rate", "payload");
  for (const auto& [kind, k] : cables_of(f))
    out += fmt::format("    {:<8} {:>7} {:>17} {:>17}\n", kind, k.count, rate(k.line_Bps), rate(k.capacity_Bps));
  return out;
}

std::string topology_json(const Cluster& cluster, const Fabric& f) {
  using json = nlohmann::ordered_json;
  json switches = json::array(), cables = json::array();
  for (const auto& [tier, t] : tiers_of(f))
    switches.push_back({{"tier", tier_name(tier)},
                        {"count", t.switches},
                        {"ports", t.ports},
                        {"ports_used", t.used},
                        {"ports_free", t.ports - t.used},
                        {"oversubscription", t.up_Bps > 0 ? json(t.down_Bps / t.up_Bps) : json(nullptr)}});
  for (const auto& [kind, k] : cables_of(f))
    cables.push_back({{"kind", kind}, {"count", k.count}, {"line_Bps", k.line_Bps}, {"payload_Bps", k.capacity_Bps}});
  const json all = {{"cluster", cluster.name}, {"nodes", f.node_count},      {"gpus", f.node_count * f.gpus},
                    {"nics", f.nics},          {"nvlink_Bps", f.nvlink_Bps}, {"switches", switches},
                    {"cables", cables}};
  return all.dump(2) + "\n";
}

std::string route_table(const Fabric& f, const std::string& a, const std::string& b) {
  const int from = node_named(f, a), to = node_named(f, b);
  if (from == to) return fmt::format("{} to itself: no cable\n", a);
  Router router(f);
  router.policy = f.routing;
  std::string out = fmt::format("{} to {}, {} routing\n", a, b, choice_name(f.routing));
  for (int nic = 0; nic < f.nics; ++nic) {
    const auto shares = router.route(from, nic, to, nic);
    out += fmt::format("  NIC {}: {} cables\n", nic, router.hops(from, nic, to, nic));
    for (const LinkShare& s : shares)
      out += fmt::format("    {:<44} {:>7.2f} % of the bytes, {}\n", f.link_name(s.link), 100 * s.share,
                         rate(f.link_capacity_Bps(s.link)));
  }
  return out;
}

std::string topology_dot(const Fabric& f) {
  std::string out = "graph fabric {\n  rankdir=BT;\n  node [shape=box, fontsize=10];\n";
  for (const FabricVertex& v : f.vertices)
    out += fmt::format("  \"{}\"{};\n", v.name, v.kind == VertexKind::node ? "" : " [style=rounded]");
  // Cables between the same two ends are drawn as one, with their number.
  std::map<std::pair<int, int>, int> pairs;
  for (const Cable& c : f.cables) ++pairs[{c.a, c.b}];
  for (const auto& [ends, count] : pairs)
    out += fmt::format("  \"{}\" -- \"{}\"{};\n", f.vertices[static_cast<size_t>(ends.first)].name,
                       f.vertices[static_cast<size_t>(ends.second)].name,
                       count > 1 ? fmt::format(" [label=\"{}\"]", count) : "");
  return out + "}\n";
}

}  // namespace tw::report
