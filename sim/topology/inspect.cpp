#include "topology/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/text.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {
namespace {

bool live(const Fabric& f, const Cable& c) {
  return !c.failed && !f.vertices[static_cast<size_t>(c.a)].failed && !f.vertices[static_cast<size_t>(c.b)].failed;
}

bool layered(const Fabric& f) {
  return std::none_of(f.cables.begin(), f.cables.end(),
                      [](const Cable& c) { return c.kind == CableKind::mesh || c.kind == CableKind::global; });
}

std::string level_name(const Fabric& f, int tier) {
  if (!layered(f)) return kind_of(f.type).switch_name;
  if (tier == 1) return "leaf";
  return tier == 2 ? "spine" : "core";
}

int diameter_of(const Fabric& f, const InspectProgress& progress) {
  Router router(f);
  std::set<int> ends;
  for (int n = 0; n < f.node_count; ++n)
    for (int k = 0; k < f.nics; ++k)
      if (f.nic_alive(n, k)) ends.insert(f.nic_switch(n, k));
  const bool symmetric = kind_of(f.type).symmetric && f.type.failed.empty();
  int longest = 0;
  size_t done = 0;
  for (const int from : ends) {
    if (progress) progress(done++, ends.size());
    router.search_whole(from);
    for (const int to : ends) longest = std::max(longest, router.distance(to, from));
    if (symmetric) break;
    router.forget();
  }
  return f.node_count > 1 && !ends.empty() ? longest + 2 : 0;
}

// Where an exchange of all is too large for what adaptive routing does at its best.
std::string left_unbalanced(const Fabric& f) {
  Router router(f);
  if (f.routing != RoutingPolicy::adaptive || router.tree() != nullptr || router.same_everywhere()) return "";
  std::map<int, std::set<int>> leaves;  // by plane
  for (int n = 0; n < f.node_count; ++n)
    for (int k = 0; k < f.nics; ++k)
      if (f.nic_alive(n, k)) leaves[router.plane(f.nic_switch(n, k))].insert(f.nic_switch(n, k));
  size_t most = 0;
  for (const auto& [plane, here] : leaves) most = std::max(most, here.size());
  if (most * most <= kMostBalanced) return "";
  return fmt::format(
      "paths are uneven: an exchange among all nodes is left at what each switch sees of its next cables, as {} pairs "
      "of "
      "switches are more than the {} that are balanced",
      most * most, kMostBalanced);
}

struct End {
  int node = 0, nic = 0;
};

End end_of(const Fabric& f, const std::string& name) {
  for (int n = 0; n < f.node_count; ++n) {
    const std::string& node = f.vertices[static_cast<size_t>(n)].name;
    if (name.rfind(node, 0) != 0) continue;
    if (name == node) {
      for (int k = 0; k < f.nics; ++k)
        if (f.nic_alive(n, k)) return {n, k};
      return {n, 0};
    }
    for (int k = 0; k < f.nics; ++k)
      if (name == fmt::format("{} nic {}", node, k)) return {n, k};
  }
  std::vector<std::string> known;
  for (int n = 0; n < f.node_count; ++n) known.push_back(f.vertices[static_cast<size_t>(n)].name);
  throw InputError(
      {{f.cluster_name, "", fmt::format("there is no node or adapter \"{}\"", name),
        fmt::format("{}; an adapter: \"node-0 nic 0\" to \"node-0 nic {}\"", suggest(name, known, 3), f.nics - 1)}});
}

void check_end(const Fabric& f, const End& e) {
  const Cable& c = f.cables[static_cast<size_t>(f.nic_cable[static_cast<size_t>(e.node * f.nics + e.nic)])];
  if (live(f, c)) return;
  const FabricVertex& leaf = f.vertices[static_cast<size_t>(c.b)];
  throw InputError({{f.cluster_name, "/fabric/failed",
                     fmt::format("node-{} nic {} is cabled to {}{}", e.node, e.nic, leaf.name,
                                 leaf.failed ? ", which has failed" : " by a cable that has failed"),
                     "another adapter"}});
}

}  // namespace

double max_flow_Bps(const Fabric& f, const std::vector<int>& from, const std::vector<int>& to) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<boost::edge_capacity_t, long long,
                      boost::property<boost::edge_residual_capacity_t, long long,
                                      boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  const size_t n = f.vertices.size();
  Graph g(n + 2);
  auto capacity = boost::get(boost::edge_capacity, g);
  auto reverse = boost::get(boost::edge_reverse, g);
  // A reverse arc has no capacity of its own: the algorithm hands left-over flow back only along such arcs. A cable
  // that may carry both ways is two arcs.
  const auto arc = [&](size_t a, size_t b, double Bps) {
    const auto e = boost::add_edge(a, b, g).first, r = boost::add_edge(b, a, g).first;
    capacity[e] = std::llround(Bps);
    capacity[r] = 0;
    reverse[e] = r;
    reverse[r] = e;
  };
  std::vector<int> side(n, 0);
  for (const int v : from) side[static_cast<size_t>(v)] = 1;
  for (const int v : to) side[static_cast<size_t>(v)] = 2;
  std::map<std::pair<int, int>, double> bundles;
  std::vector<double> adapters(n, 0);
  for (const Cable& c : f.cables) {
    if (!live(f, c) || c.kind == CableKind::nvlink) continue;
    bundles[{c.a, c.b}] += c.capacity_Bps;
    if (c.kind == CableKind::nic) adapters[static_cast<size_t>(c.a)] += c.capacity_Bps;
  }
  for (const auto& [ends, bandwidth] : bundles) {
    const auto a = static_cast<size_t>(ends.first), b = static_cast<size_t>(ends.second);
    const bool from_switch = ends.first >= f.node_count;
    if (from_switch || side[a] == 1) arc(a, b, bandwidth);
    if (from_switch || side[a] == 2) arc(b, a, bandwidth);
  }
  for (int v = 0; v < f.node_count; ++v) {
    const auto u = static_cast<size_t>(v);
    if (side[u] == 1) arc(n, u, adapters[u]);
    if (side[u] == 2) arc(u, n + 1, adapters[u]);
  }
  return static_cast<double>(boost::push_relabel_max_flow(g, n, n + 1));
}

TopologySummary topology_summary(const Fabric& f, const InspectProgress& progress) {
  TopologySummary s;
  s.cluster = f.cluster_name;
  s.kind = f.type.kind;
  s.nodes = f.node_count;
  s.gpus = f.node_count * f.gpus;
  s.nvlink_domains = f.node_count / f.nodes_per_domain;
  s.cables = static_cast<int>(
      std::count_if(f.cables.begin(), f.cables.end(), [](const Cable& c) { return c.kind != CableKind::nvlink; }));
  std::map<int, LevelSummary> levels;
  for (size_t v = 0; v < f.vertices.size(); ++v) {
    const FabricVertex& x = f.vertices[v];
    if (x.failed) s.failed.push_back(x.name);
    if (x.kind != VertexKind::network_switch) continue;
    ++s.switches;
    LevelSummary& level = levels[x.tier];
    level.tier = x.tier;
    if (level.switches++ == 0) level.name = level_name(f, x.tier);  // a look at every cable
    level.failed += x.failed ? 1 : 0;
    level.ports += x.ports;
    level.ports_used += f.ports_used(static_cast<int>(v));
  }
  std::map<CableKind, CableSummary> kinds;
  for (const Cable& c : f.cables) {
    CableSummary& k = kinds[c.kind];
    k.kind = cable_kind_name(c.kind);
    k.least_Bps = k.count == 0 ? c.line_Bps : std::min(k.least_Bps, c.line_Bps);
    k.most_Bps = std::max(k.most_Bps, c.line_Bps);
    ++k.count;
    if (c.failed) {
      ++k.failed;
      s.failed.push_back(fmt::format("{}{} - {}", f.vertices[static_cast<size_t>(c.a)].name,
                                     c.nic >= 0 ? fmt::format(" nic {}", c.nic) : "",
                                     f.vertices[static_cast<size_t>(c.b)].name));
    }
    if (!live(f, c) || c.kind == CableKind::nvlink) continue;
    const int low = f.vertices[static_cast<size_t>(c.a)].tier, high = f.vertices[static_cast<size_t>(c.b)].tier;
    if (c.kind == CableKind::global) levels[low].up_Bps += 2 * c.capacity_Bps;  // out of the groups at both ends
    if (low == high) continue;
    levels[high].down_Bps += c.capacity_Bps;
    if (low > 0) levels[low].up_Bps += c.capacity_Bps;
  }
  for (auto& [tier, level] : levels) s.levels.push_back(level);
  for (auto& [kind, k] : kinds) s.cable_kinds.push_back(k);
  if (f.node_count > 1 && f.nics > 0) {
    std::vector<int> first(static_cast<size_t>(f.node_count / 2)),
        second(static_cast<size_t>(f.node_count - f.node_count / 2));
    std::iota(first.begin(), first.end(), 0);
    std::iota(second.begin(), second.end(), f.node_count / 2);
    s.bisection_Bps = max_flow_Bps(f, first, second);
    double could = 0;
    for (const int v : first)
      for (int k = 0; k < f.nics; ++k) could += f.link_capacity_Bps(f.nic_link_out(v, k));
    s.bisection_share = could > 0 ? s.bisection_Bps / could : 0;
  }
  s.diameter = diameter_of(f, progress);
  if (std::string left = left_unbalanced(f); !left.empty()) s.warnings.push_back(std::move(left));
  return s;
}

RouteExplanation explain_route(const Fabric& f, const std::string& from, const std::string& to, uint64_t seed) {
  RouteExplanation r;
  r.from = from;
  r.to = to;
  const End a = end_of(f, from), b = end_of(f, to);
  if (a.node / f.nodes_per_domain == b.node / f.nodes_per_domain) {
    r.policy = "NVLink";
    r.bandwidth_Bps = f.nvlink_Bps;
    return r;
  }
  check_end(f, a);
  check_end(f, b);
  r.from = fmt::format("node-{} nic {}", a.node, a.nic);
  r.to = fmt::format("node-{} nic {}", b.node, b.nic);
  r.policy = choice_name(f.routing);
  Router router(f, seed);
  const std::vector<LinkShare> links = router.route(a.node, a.nic, b.node, b.nic);
  r.cables = router.hops(a.node, a.nic, b.node, b.nic);
  r.latency_s = r.cables * f.hop_latency_s;
  r.bandwidth_Bps = std::numeric_limits<double>::infinity();
  std::set<int> used;
  for (const LinkShare& l : links) {
    r.bandwidth_Bps = std::min(r.bandwidth_Bps, f.link_capacity_Bps(l.link) / l.share);
    used.insert(l.link);
  }
  const int last = f.nic_switch(b.node, b.nic);
  for (int at = f.nic_switch(a.node, a.nic); at != last;) {
    RouteStep step;
    step.at = f.vertices[static_cast<size_t>(at)].name;
    std::set<std::string> names;
    int next = -1;
    for (const int link : router.next_links(at, last)) {
      const Cable& c = f.cables[static_cast<size_t>(link / 2)];
      const int end = link % 2 == 0 ? c.b : c.a;
      names.insert(f.vertices[static_cast<size_t>(end)].name);
      ++step.links;
      step.links_Bps += c.capacity_Bps;
      if (next < 0 || (f.routing == RoutingPolicy::ecmp && used.count(link) != 0)) next = end;
    }
    step.equal_cost.assign(names.begin(), names.end());
    step.taken = f.routing == RoutingPolicy::adaptive ? "all" : f.vertices[static_cast<size_t>(next)].name;
    r.steps.push_back(std::move(step));
    at = next;
  }
  RouteStep end;
  end.at = f.vertices[static_cast<size_t>(last)].name;
  end.equal_cost = {r.to};
  end.links = 1;
  end.links_Bps = f.link_capacity_Bps(f.nic_link_in(b.node, b.nic));
  end.taken = r.to;
  r.steps.push_back(std::move(end));
  return r;
}

std::vector<std::string> RouteExplanation::lines() const {
  std::vector<std::string> out{
      fmt::format("{} -> {}: {}", from, to, policy == "NVLink" ? "inside one NVLink domain" : policy)};
  for (const RouteStep& s : steps) {
    std::string choices;
    for (size_t i = 0; i < s.equal_cost.size() && i < 4; ++i) choices += (i > 0 ? ", " : "") + s.equal_cost[i];
    if (s.equal_cost.size() > 4) choices += fmt::format(", ... ({} in all)", s.equal_cost.size());
    out.push_back(fmt::format("  {}: {} cable{} of {} together to {}{}", s.at, s.links, s.links == 1 ? "" : "s",
                              format_quantity(s.links_Bps, DimensionOf<Bandwidth>::info), choices,
                              s.links > 1 ? "; takes " + s.taken : ""));
  }
  if (policy != "NVLink")
    out.push_back(fmt::format("  {} cables, {}", cables, format_quantity(latency_s, DimensionOf<Time>::info)));
  return out;
}

}  // namespace tw
