#include "topology/tree_levels.hpp"

#include <algorithm>
#include <boost/graph/incremental_components.hpp>
#include <cmath>

namespace tw {
namespace {

bool same(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(a, b);
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
    odd_.resize(static_cast<size_t>(components_), 0);
    share_out(arcs, level);
  }
  for (const std::vector<Split>* splits : {&up_, &down_}) mark_uneven(fabric, *splits);
  const auto of_odd = [&](const Split& s) { return odd_[static_cast<size_t>(s.component)] != 0; };
  for (std::vector<Split>* splits : {&up_, &down_})
    splits->erase(std::remove_if(splits->begin(), splits->end(), of_odd), splits->end());
  find_narrowest(fabric);
  return levels > 0;
}

void TreeLevels::connect(const SwitchArcs& arcs, int level) {
  boost::disjoint_sets_with_storage<> joined(tier_.size());
  if (level > 1) {  // switches of one component of the level below stay together
    std::vector<size_t> first(static_cast<size_t>(components_), tier_.size());
    for (size_t v = 0; v < tier_.size(); ++v) {
      const int c = component_.back()[v];
      if (c < 0) continue;
      size_t& f = first[static_cast<size_t>(c)];
      if (f == tier_.size()) f = v;
      joined.union_set(f, v);
    }
  }
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] != level) continue;
    for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
      const auto to = static_cast<size_t>(arcs.arcs[static_cast<size_t>(a)].to);
      if (tier_[to] <= level) joined.union_set(to, v);
    }
  }
  std::vector<int> id(tier_.size(), -1), component(tier_.size(), -1);
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] == 0 || tier_[v] > level) continue;
    int& known = id[joined.find_set(v)];
    if (known < 0) known = components_++;
    component[v] = known;
  }
  component_.push_back(std::move(component));
}

// Shares of the switches at the top of each component, and of the links that lead there from the components below and
// back.
void TreeLevels::share_out(const SwitchArcs& arcs, int level) {
  if (level == 1) {
    for (size_t v = 0; v < tier_.size(); ++v)
      if (tier_[v] == 1) share_[v] = 1;
    return;
  }
  Inside inside(static_cast<size_t>(components_));
  const std::vector<int>& below = component_[static_cast<size_t>(level) - 2];
  std::vector<char> counted(static_cast<size_t>(components_), 0);
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (below[v] < 0 || counted[static_cast<size_t>(below[v])] != 0) continue;
    counted[static_cast<size_t>(below[v])] = 1;
    inside[static_cast<size_t>(component_.back()[v])].push_back(below[v]);
  }
  agree(climb(arcs, level, inside), inside);
  descend(arcs, level);
}

// The way up: what each switch of the level gets from each component below it, by capacity.
std::vector<TreeLevels::Arrived> TreeLevels::climb(const SwitchArcs& arcs, int level, const Inside& inside) {
  const std::vector<int>&here = component_.back(), &below = component_[static_cast<size_t>(level) - 2];
  std::vector<Arrived> arrived;
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
      arrived.push_back({arc.to, below[v], share});
    }
    // What climbs leaves such a switch out, what stays in the component does not.
    if (capacity == 0 && inside[static_cast<size_t>(here[v])].size() > 1) mark(below[v]);
  }
  return arrived;
}

// A switch gets the same share from every component below it, or nothing; those that differ from most of their
// neighbours are odd.
void TreeLevels::agree(std::vector<Arrived> arrived, const Inside& inside) {
  const std::vector<int>& here = component_.back();
  const auto order = [](const Arrived& a) { return std::pair{a.at, a.from}; };
  std::stable_sort(arrived.begin(), arrived.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  size_t kept = 0;  // one of each switch and component
  for (const Arrived& a : arrived) {
    if (kept > 0 && order(arrived[kept - 1]) == order(a))
      arrived[kept - 1].share += a.share;
    else
      arrived[kept++] = a;
  }
  arrived.resize(kept);
  for (size_t i = 0, end = 0; i < arrived.size(); i = end) {
    const int at = arrived[i].at;
    while (end < arrived.size() && arrived[end].at == at) ++end;
    const std::vector<int>& parts = inside[static_cast<size_t>(here[static_cast<size_t>(at)])];
    const auto from = arrived.begin() + static_cast<long>(i), to = arrived.begin() + static_cast<long>(end);
    std::vector<double> shares;
    for (auto it = from; it != to; ++it) shares.push_back(it->share);
    std::sort(shares.rbegin(), shares.rend());
    size_t most = 0;
    double usual = 0;
    for (size_t k = 0, next = 0; k < shares.size(); k = next) {
      while (next < shares.size() && same(shares[next], shares[k])) ++next;
      if (next - k > most) most = next - k, usual = shares[k];
    }
    if (parts.size() - shares.size() > most) usual = 0;
    share_[static_cast<size_t>(at)] = usual;
    for (auto it = from; it != to; ++it)
      if (!same(it->share, usual)) mark(it->from);
    if (usual == 0 || shares.size() == parts.size()) continue;
    const auto reaches = [&](int part) {
      const auto it = std::lower_bound(from, to, part, [](const Arrived& a, int p) { return a.from < p; });
      return it != to && it->from == part;
    };
    for (const int part : parts)
      if (!reaches(part)) mark(part);
  }
}

// The way down: from each switch to the components below, by capacity.
void TreeLevels::descend(const SwitchArcs& arcs, int level) {
  const std::vector<int>& below = component_[static_cast<size_t>(level) - 2];
  std::vector<std::pair<int, double>> to_component;
  std::vector<double> coming(tier_.size(), 0);
  for (size_t v = 0; v < tier_.size(); ++v) {
    if (tier_[v] != level || share_[v] == 0) continue;
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
    if (tier_[v] == level - 1 && coming[v] > 0 && !same(coming[v], share_[v])) mark(below[v]);
}

int TreeLevels::even_up_to(int leaf) const {
  for (int level = 1; level <= levels(); ++level)
    if (odd_[static_cast<size_t>(component(level, leaf))] != 0) return level;
  return levels();
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

void TreeLevels::mark_uneven(const Fabric& fabric, const std::vector<Split>& splits) {
  std::vector<double> first(static_cast<size_t>(components_), -1);
  for (const Split& s : splits) {
    const double pressure = s.share / fabric.link_capacity_Bps(s.link);
    double& known = first[static_cast<size_t>(s.component)];
    if (known < 0)
      known = pressure;
    else if (!same(pressure, known))
      even_ = false;
  }
}

void TreeLevels::find_narrowest(const Fabric& fabric) {
  const auto among = [&](const std::vector<Split>& splits) {
    std::vector<Split> narrowest(static_cast<size_t>(components_), {-1, 0, 0});
    std::vector<double> most(narrowest.size(), 0);
    for (const Split& s : splits) {
      const double pressure = s.share / fabric.link_capacity_Bps(s.link);
      Split& known = narrowest[static_cast<size_t>(s.component)];
      double& tightest = most[static_cast<size_t>(s.component)];
      // Of equal ones the first, whatever the rounding.
      if (known.link >= 0 && (same(pressure, tightest) ? s.link > known.link : pressure < tightest)) continue;
      known = s;
      tightest = pressure;
    }
    return narrowest;
  };
  narrow_up_ = among(up_), narrow_down_ = among(down_);
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
