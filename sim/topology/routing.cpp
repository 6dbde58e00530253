#include "topology/routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/incremental_components.hpp>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tw {

Router::Router(const Fabric& fabric, uint64_t seed) : policy(fabric.routing), fabric_(fabric), seed_(seed) {
  // Switches only: a node does not forward. Live cables only: nothing is ever routed over a failed one.
  arcs_.first.assign(fabric.vertices.size() + 1, 0);
  for (size_t v = 0; v < fabric.vertices.size(); ++v) {
    arcs_.first[v] = static_cast<int>(arcs_.arcs.size());
    if (fabric.vertices[v].kind != VertexKind::network_switch || fabric.vertices[v].failed) continue;
    for (const int id : fabric.cables_at[v]) {
      const Cable& c = fabric.cables[static_cast<size_t>(id)];
      const int to = c.a == static_cast<int>(v) ? c.b : c.a;
      const FabricVertex& next = fabric.vertices[static_cast<size_t>(to)];
      if (c.failed || next.failed || next.kind != VertexKind::network_switch) continue;
      arcs_.arcs.push_back({to, fabric.link(id, static_cast<int>(v)), c.capacity_Bps});
    }
  }
  arcs_.first.back() = static_cast<int>(arcs_.arcs.size());
  tree_ = TreeLevels::of(fabric, arcs_);
  torus_ = TorusShifts::of(fabric, arcs_);
}

const Router::Search& Router::search_from(int to) {
  Search& s = searches_[to];
  if (!s.all.empty()) return s;
  s.all.assign(fabric_.vertices.size(), -1);
  s.order.assign(1, to);
  s.all[static_cast<size_t>(to)] = 0;
  for (size_t i = 0; i < s.order.size(); ++i) {
    const auto v = static_cast<size_t>(s.order[i]);
    for (int a = arcs_.first[v]; a < arcs_.first[v + 1]; ++a) {
      int& next = s.all[static_cast<size_t>(arcs_.arcs[static_cast<size_t>(a)].to)];
      if (next >= 0) continue;
      next = s.all[v] + 1;
      s.order.push_back(arcs_.arcs[static_cast<size_t>(a)].to);
    }
  }
  return s;
}

// From both ends at once, level by level, until they meet: in a fat tree the two halves see a pod each, one search from
// one end would see the whole cluster.
void Router::search_between(const std::vector<int>& from, int to, std::unordered_map<int, int>& d) {
  ahead_.resize(fabric_.vertices.size(), -1);
  behind_.resize(fabric_.vertices.size(), -1);
  std::vector<int> seen_ahead = from, seen_behind{to}, front_ahead = from, front_behind{to}, met;
  for (const int v : from) ahead_[static_cast<size_t>(v)] = 0;
  behind_[static_cast<size_t>(to)] = 0;
  int levels_ahead = 0, levels_behind = 0;
  const auto widen = [&](std::vector<int>& front, std::vector<int>& mine, const std::vector<int>& other,
                         std::vector<int>& seen, int level) {
    std::vector<int> next;
    for (const int at : front)
      for (int a = arcs_.first[static_cast<size_t>(at)]; a < arcs_.first[static_cast<size_t>(at) + 1]; ++a) {
        const int v = arcs_.arcs[static_cast<size_t>(a)].to;
        if (mine[static_cast<size_t>(v)] >= 0) continue;
        mine[static_cast<size_t>(v)] = level;
        next.push_back(v);
        if (other[static_cast<size_t>(v)] >= 0) met.push_back(v);
      }
    seen.insert(seen.end(), next.begin(), next.end());
    front = std::move(next);
  };
  while (met.empty() && !front_ahead.empty() && !front_behind.empty()) {
    if (front_ahead.size() <= front_behind.size())
      widen(front_ahead, ahead_, behind_, seen_ahead, ++levels_ahead);
    else
      widen(front_behind, behind_, ahead_, seen_behind, ++levels_behind);
  }
  for (const int v : seen_behind) d[v] = behind_[static_cast<size_t>(v)];
  // Where they met is on shortest paths; so is whatever leads there level by level from the other end.
  std::vector<int> level = met;
  for (int k = levels_ahead - 1; k >= 0 && !level.empty(); --k) {
    std::vector<int> nearer;
    for (const int at : level)
      for (int a = arcs_.first[static_cast<size_t>(at)]; a < arcs_.first[static_cast<size_t>(at) + 1]; ++a) {
        const int v = arcs_.arcs[static_cast<size_t>(a)].to;
        if (ahead_[static_cast<size_t>(v)] != k) continue;
        ahead_[static_cast<size_t>(v)] = -1;  // once is enough
        d[v] = levels_ahead + levels_behind - k;
        nearer.push_back(v);
      }
    level = std::move(nearer);
  }
  for (const int v : seen_ahead) ahead_[static_cast<size_t>(v)] = -1;
  for (const int v : seen_behind) behind_[static_cast<size_t>(v)] = -1;
}

// Beyond this many, single searches to a switch cost more than a whole one.
constexpr int kMostSingle = 32;

const Router::Search& Router::search(int to, int from) {
  Search& s = searches_[to];
  if (s.known.empty()) s.known[to] = 0;
  if (!s.all.empty() || s.known.count(from) != 0) return s;
  if (++s.asked > kMostSingle) return search_from(to);
  search_between({from}, to, s.known);
  return s;
}

void Router::search_many(const std::vector<int>& from, int to) {
  if (tree() != nullptr || on_torus(to)) return;
  Search& s = searches_[to];
  if (!s.all.empty()) return;
  // A search from all ends at once finds the nearest of them; in a tree most are as near.
  if (!tree_ || static_cast<int>(from.size()) > 4 * kMostSingle) {
    search_from(to);
    return;
  }
  s.known[to] = 0;
  std::vector<int> others;  // from itself nothing is to be found
  std::copy_if(from.begin(), from.end(), std::back_inserter(others), [to](int sw) { return sw != to; });
  if (!others.empty()) search_between(others, to, s.known);
}

template <class F>
void Router::each_next(int at, int to, const F& take) {
  const auto v = static_cast<size_t>(at);
  if (tree() != nullptr) {
    // Down when `to` is below, else up over any cable: all that a switch can reach above leads there.
    const int tier = tree_->tier(at);
    const bool below = tree_->component(tier, at) == tree_->component(tier, to);
    for (int a = arcs_.first[v]; a < arcs_.first[v + 1]; ++a) {
      const Arc& arc = arcs_.arcs[static_cast<size_t>(a)];
      const bool down = tree_->tier(arc.to) < tier;
      if (down == below && (!below || tree_->component(tier - 1, arc.to) == tree_->component(tier - 1, to))) take(arc);
    }
    return;
  }
  if (on_torus(to)) {
    for (int a = arcs_.first[v]; at != to && a < arcs_.first[v + 1]; ++a)
      if (torus_->nearer(static_cast<size_t>(a), at, to)) take(arcs_.arcs[static_cast<size_t>(a)]);
    return;
  }
  const Search& s = search(to, at);
  const int d = s.at(at);
  for (int a = arcs_.first[v]; a < arcs_.first[v + 1]; ++a) {
    const Arc& arc = arcs_.arcs[static_cast<size_t>(a)];
    const int next = s.at(arc.to);
    if (next >= 0 && next == d - 1) take(arc);
  }
}

int Router::distance(int from, int to) {
  if (on_torus(to)) return fabric_.vertices[static_cast<size_t>(from)].failed ? -1 : torus_->distance(from, to);
  if (!tree_ || tree_->tier(from) != 1 || tree_->tier(to) != 1) return search(to, from).at(from);
  const int level = tree_->meeting_level(from, to);
  if (level > 0 && !tree_->even(from, to)) return search(to, from).at(from);
  return level == 0 ? -1 : 2 * (level - 1);
}

std::vector<int> Router::neighbours(int sw) const {
  std::vector<int> next;
  for (const Arc& arc : arcs(sw)) next.push_back(arc.to);
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
  return next;
}

int Router::plane(int sw) {
  if (tree_) return tree_->component(tree_->levels(), sw);
  if (planes_.empty()) {
    boost::disjoint_sets_with_storage<> joined(fabric_.vertices.size());
    for (size_t v = 0; v < fabric_.vertices.size(); ++v)
      for (const Arc& arc : arcs(static_cast<int>(v))) joined.union_set(v, static_cast<size_t>(arc.to));
    std::vector<int> first(fabric_.vertices.size(), -1);  // of each: planes keep the order of their first switches
    for (size_t v = 0; v < fabric_.vertices.size(); ++v) {
      int& number = first[joined.find_set(v)];
      if (number < 0) number = static_cast<int>(v);
      planes_.push_back(number);
    }
  }
  return planes_[static_cast<size_t>(sw)];
}

std::vector<int> Router::next_links(int at, int to) {
  std::vector<int> links;
  each_next(at, to, [&](const Arc& arc) { links.push_back(arc.link); });
  return links;
}

template <class F>
void Router::walk(std::vector<std::pair<int, double>> level, int to, const F& take) {
  arriving_.resize(fabric_.vertices.size(), 0);
  // Switch by switch in order of distance; the set stays small, as only shortest paths are walked.
  std::vector<int> next;
  while (!level.empty() && level.front().first != to) {
    next.clear();
    for (const auto& arrived : level) {
      double capacity = 0;
      each_next(arrived.first, to, [&](const Arc& arc) { capacity += arc.capacity; });
      each_next(arrived.first, to, [&](const Arc& arc) {
        const double share = arrived.second * arc.capacity / capacity;
        take(arc.link, share);
        double& there = arriving_[static_cast<size_t>(arc.to)];
        if (there == 0) next.push_back(arc.to);
        there += share;
      });
    }
    std::sort(next.begin(), next.end());
    level.clear();
    for (const int s : next) {
      level.emplace_back(s, arriving_[static_cast<size_t>(s)]);
      arriving_[static_cast<size_t>(s)] = 0;
    }
  }
}

void Router::spray(int from, int to, double bytes, std::vector<LinkShare>& carried) {
  if (bytes > 0) walk({{from, bytes}}, to, [&](int link, double part) { carried.push_back({link, part}); });
}

void Router::spread(int to, const std::vector<std::pair<int, double>>& entering, std::vector<double>& loads) {
  const auto known = searches_.find(to);
  if (tree() == nullptr && known != searches_.end() && known->second.all.empty()) {
    std::map<int, std::vector<std::pair<int, double>>> by_distance;
    for (const auto& [from, bytes] : entering) by_distance[distance(from, to)].emplace_back(from, bytes);
    for (const auto& [far, from] : by_distance)
      walk(from, to, [&](int link, double part) { loads[static_cast<size_t>(link)] += part; });
    return;
  }
  const Search& s = search_from(to);
  arriving_.resize(fabric_.vertices.size(), 0);
  for (const auto& [from, bytes] : entering) arriving_[static_cast<size_t>(from)] += bytes;
  // From the farthest switch to the nearest, so that everything has arrived before it is passed on.
  for (auto at = s.order.rbegin(); at != s.order.rend(); ++at) {
    const auto v = static_cast<size_t>(*at);
    const double bytes = std::exchange(arriving_[v], 0);
    if (bytes == 0 || *at == to) continue;
    double capacity = 0;
    const auto toward = [&](const Arc& arc) { return s.all[static_cast<size_t>(arc.to)] == s.all[v] - 1; };
    for (int a = arcs_.first[v]; a < arcs_.first[v + 1]; ++a)
      if (toward(arcs_.arcs[static_cast<size_t>(a)])) capacity += arcs_.arcs[static_cast<size_t>(a)].capacity;
    for (int a = arcs_.first[v]; a < arcs_.first[v + 1]; ++a) {
      const Arc& arc = arcs_.arcs[static_cast<size_t>(a)];
      if (!toward(arc)) continue;
      const double part = bytes * arc.capacity / capacity;
      loads[static_cast<size_t>(arc.link)] += part;
      arriving_[static_cast<size_t>(arc.to)] += part;
    }
  }
}

int Router::hops(int node_a, int nic_a, int node_b, int nic_b) {
  return node_a == node_b ? 0 : 2 + distance(fabric_.nic_switch(node_a, nic_a), fabric_.nic_switch(node_b, nic_b));
}

std::vector<LinkShare> Router::route(int node_a, int nic_a, int node_b, int nic_b) {
  if (node_a == node_b) return {};
  const int from = fabric_.nic_switch(node_a, nic_a), to = fabric_.nic_switch(node_b, nic_b);
  if (!fabric_.nic_alive(node_a, nic_a) || !fabric_.nic_alive(node_b, nic_b) || distance(from, to) < 0)
    throw InputError(
        {{fabric_.cluster_name, "/fabric",
          fmt::format("there is no live path from node-{} NIC {} to node-{} NIC {}", node_a, nic_a, node_b, nic_b),
          ""}});
  std::vector<LinkShare> links{{fabric_.nic_link_out(node_a, nic_a), 1}};
  if (policy == RoutingPolicy::adaptive) {
    spray(from, to, 1, links);
  } else {
    // Real switches hash the same header fields at every hop with their own seed: mix the switch in. Every queue pair
    // is a flow with a source port of its own.
    const auto flow = static_cast<uint64_t>(node_a * fabric_.nics + nic_a) << 32U |
                      static_cast<uint64_t>(node_b * fabric_.nics + nic_b);
    for (int q = 0; q < queue_pairs; ++q)
      for (int at = from; at != to;) {
        const std::vector<int> next = next_links(at, to);
        auto stream =
            random_stream(seed_ ^ flow ^ (static_cast<uint64_t>(q) << 56U), "ecmp", static_cast<uint64_t>(at));
        const int link = next[stream() % next.size()];
        links.push_back({link, 1.0 / queue_pairs});
        const Cable& c = fabric_.cables[static_cast<size_t>(link / 2)];
        at = link % 2 == 0 ? c.b : c.a;
      }
  }
  links.push_back({fabric_.nic_link_in(node_b, nic_b), 1});
  return links;
}

}  // namespace tw
