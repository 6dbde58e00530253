#include "topology/tree_levels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw {
namespace {

bool same(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(a, b);
}

int root_of(std::vector<int>& parent, int v) {
  while (parent[static_cast<size_t>(v)] != v) {
    parent[static_cast<size_t>(v)] = parent[static_cast<size_t>(parent[static_cast<size_t>(v)])];
    v = parent[static_cast<size_t>(v)];
  }
  return v;
}

}  // namespace

std::optional<TreeLevels> TreeLevels::of(const Fabric& fabric, const SwitchArcs& arcs) {
  TreeLevels tree;
  if (!tree.build(fabric, arcs)) return std::nullopt;
  return tree;
}

bool TreeLevels::build(const Fabric& fabric, const SwitchArcs& arcs) {
  tier_.assign(fabric.vertices.size(), 0);
  int levels = 0;
  for (size_t v = 0; v < tier_.size(); ++v) {
    const FabricVertex& x = fabric.vertices[v];
    if (x.kind != VertexKind::network_switch || x.failed) continue;
    if (x.tier < 1) return false;
    tier_[v] = x.tier;
    levels = std::max(levels, x.tier);
  }
  for (size_t v = 0; v < tier_.size(); ++v)
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a)
      if (std::abs(tier_[static_cast<size_t>(arcs.arcs[static_cast<size_t>(a)].to)] - tier_[v]) != 1) return false;
  for (const Cable& c : fabric.cables)
    if (c.kind == CableKind::nic && tier_[static_cast<size_t>(c.b)] > 1) return false;
  share_.assign(tier_.size(), 0);
  for (int level = 1; level <= levels; ++level) {
    connect(arcs, level);
    if (!share_out(arcs, level)) return false;
  }
  return find_narrowest(fabric) && levels > 0;
}

void TreeLevels::connect(const SwitchArcs& arcs, int level) {
  std::vector<int> parent(tier_.size());
  std::iota(parent.begin(), parent.end(), 0);
  if (level > 1) {  // switches of one component of the level below stay together
    std::vector<int> first(static_cast<size_t>(components_), -1);
    for (size_t v = 0; v < tier_.size(); ++v) {
      const int c = component_.back()[v];
      if (c < 0) continue;
      int& f = first[static_cast<size_t>(c)];
      if (f < 0) f = static_cast<int>(v);
      parent[v] = f;
    }
  }
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] != level) continue;
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
      const int to = arcs.arcs[static_cast<size_t>(a)].to;
      if (tier_[static_cast<size_t>(to)] > level) continue;
      parent[static_cast<size_t>(root_of(parent, to))] = root_of(parent, static_cast<int>(v));
    }
  }
  std::vector<int> id(tier_.size(), -1), component(tier_.size(), -1);
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] == 0 || tier_[v] > level) continue;
    int& known = id[static_cast<size_t>(root_of(parent, static_cast<int>(v)))];
    if (known < 0) known = components_++;
    component[v] = known;
  }
  component_.push_back(std::move(component));
}

// Shares of the switches at the top of each component, and of the links that lead there from the components below and
// back. False where they differ between components below, or a switch at the top is out of the reach of one.
bool TreeLevels::share_out(const SwitchArcs& arcs, int level) {
  const std::vector<int>& here = component_.back();
  if (level == 1) {
    for (size_t v = 0; v < tier_.size(); ++v)
      if (tier_[v] == 1) share_[v] = 1;
    return true;
  }
  const std::vector<int>& below = component_[static_cast<size_t>(level) - 2];
  // What each switch of the level gets from each component below it.
  std::vector<std::pair<std::pair<int, int>, double>> arrived;  // ((switch, component below), share)
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] != level - 1) continue;
    double capacity = 0;
    const auto climbs = [&](const SwitchArcs::Arc& arc) { return tier_[static_cast<size_t>(arc.to)] == level; };
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a)
      if (climbs(arcs.arcs[static_cast<size_t>(a)])) capacity += arcs.arcs[static_cast<size_t>(a)].capacity;
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
      const SwitchArcs::Arc& arc = arcs.arcs[static_cast<size_t>(a)];
      if (!climbs(arc)) continue;
      const double share = share_[v] * arc.capacity / capacity;
      up_.push_back({arc.link, below[v], share});
      arrived.push_back({{arc.to, below[v]}, share});
    }
    if (capacity == 0) {  // it cannot climb: its component must be alone
      const int c = here[v];
      for (size_t w = 0; w < tier_.size(); ++w)
        if (here[w] == c && below[w] != below[v]) return false;
    }
  }
  std::sort(arrived.begin(), arrived.end());
  std::vector<int> reached_by(tier_.size(), 0), parts(static_cast<size_t>(components_), 0);
  for (size_t i = 0; i < arrived.size();) {
    const auto key = arrived[i].first;
    double share = 0;
    for (; i < arrived.size() && arrived[i].first == key; ++i) share += arrived[i].second;
    double& known = share_[static_cast<size_t>(key.first)];
    if (reached_by[static_cast<size_t>(key.first)]++ == 0)
      known = share;
    else if (!same(known, share))
      return false;
  }
  std::vector<char> counted(static_cast<size_t>(components_), 0);
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (below[v] < 0 || counted[static_cast<size_t>(below[v])] != 0) continue;
    counted[static_cast<size_t>(below[v])] = 1;
    ++parts[static_cast<size_t>(here[v])];
  }
  // The way down: from each switch to the components below, by capacity.
  std::vector<std::pair<int, double>> to_component;
  std::vector<double> coming(tier_.size(), 0);
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] != level) continue;
    if (reached_by[v] == 0) continue;  // no leaf below it
    if (reached_by[v] != parts[static_cast<size_t>(here[v])]) return false;
    to_component.clear();
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
      const SwitchArcs::Arc& arc = arcs.arcs[static_cast<size_t>(a)];
      if (tier_[static_cast<size_t>(arc.to)] == level - 1)
        to_component.emplace_back(below[static_cast<size_t>(arc.to)], arc.capacity);
    }
    std::sort(to_component.begin(), to_component.end());
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
      const SwitchArcs::Arc& arc = arcs.arcs[static_cast<size_t>(a)];
      if (tier_[static_cast<size_t>(arc.to)] != level - 1) continue;
      const int c = below[static_cast<size_t>(arc.to)];
      double capacity = 0;
      for (auto it = std::lower_bound(to_component.begin(), to_component.end(), std::pair{c, 0.0});
           it != to_component.end() && it->first == c; ++it)
        capacity += it->second;
      const double share = share_[v] * arc.capacity / capacity;
      down_.push_back({arc.link, c, share});
      coming[static_cast<size_t>(arc.to)] += share;
    }
  }
  for (size_t v = 0; v < tier_.size(); ++v)
    if (tier_[v] == level - 1 && coming[v] > 0 && !same(coming[v], share_[v])) return false;
  return true;
}

int TreeLevels::meeting_level(int a, int b) const {
  for (int level = 1; level <= levels(); ++level)
    if (component(level, a) == component(level, b)) return level;
  return 0;
}

TreeLevels::Traffic TreeLevels::no_traffic() const {
  return {std::vector<double>(static_cast<size_t>(components_), 0),
          std::vector<double>(static_cast<size_t>(components_), 0)};
}

void TreeLevels::add(Traffic& traffic, int from, int to, double bytes) const {
  for (int level = 1; level <= levels(); ++level) {
    const int a = component(level, from), b = component(level, to);
    if (a == b) return;
    traffic.leaving[static_cast<size_t>(a)] += bytes;
    traffic.entering[static_cast<size_t>(b)] += bytes;
  }
}

void TreeLevels::push(const Traffic& traffic, std::vector<double>& loads) const {
  for (const Split& s : up_)
    loads[static_cast<size_t>(s.link)] += traffic.leaving[static_cast<size_t>(s.component)] * s.share;
  for (const Split& s : down_)
    loads[static_cast<size_t>(s.link)] += traffic.entering[static_cast<size_t>(s.component)] * s.share;
}

// False when some are fuller than others.
bool TreeLevels::find_narrowest(const Fabric& fabric) {
  bool even = true;
  const auto among = [&](const std::vector<Split>& splits) {
    std::vector<Split> narrowest(static_cast<size_t>(components_), {-1, 0, 0});
    std::vector<double> most(narrowest.size(), 0);
    for (const Split& s : splits) {
      const double pressure = s.share / fabric.link_capacity_Bps(s.link);
      Split& known = narrowest[static_cast<size_t>(s.component)];
      double& tightest = most[static_cast<size_t>(s.component)];
      even = even && (known.link < 0 || same(pressure, tightest));
      // Of equal ones the first, whatever the rounding.
      if (known.link >= 0 && (same(pressure, tightest) ? s.link > known.link : pressure < tightest)) continue;
      known = s;
      tightest = pressure;
    }
    return narrowest;
  };
  narrow_up_ = among(up_), narrow_down_ = among(down_);
  return even;
}

void TreeLevels::push_narrowest(const Traffic& traffic, std::vector<std::pair<int, double>>& loads) const {
  const auto add = [&](const std::vector<double>& bytes, const std::vector<Split>& narrowest) {
    for (size_t c = 0; c < bytes.size(); ++c)
      if (bytes[c] > 0 && narrowest[c].link >= 0) loads.emplace_back(narrowest[c].link, bytes[c] * narrowest[c].share);
  };
  add(traffic.leaving, narrow_up_);
  add(traffic.entering, narrow_down_);
}

void TreeLevels::widen(std::vector<double>& loads) const {
  const auto fill = [&](const std::vector<Split>& splits, const std::vector<Split>& narrowest) {
    for (const Split& s : splits) {
      const Split& known = narrowest[static_cast<size_t>(s.component)];
      if (s.link != known.link)
        loads[static_cast<size_t>(s.link)] = loads[static_cast<size_t>(known.link)] * (s.share / known.share);
    }
  };
  fill(up_, narrow_up_);
  fill(down_, narrow_down_);
}

}  // namespace tw
