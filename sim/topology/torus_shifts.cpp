#include "topology/torus_shifts.hpp"

#include <algorithm>
#include <map>

#include "topology/fabric_kind.hpp"

namespace tw {

std::optional<TorusShifts> TorusShifts::of(const Fabric& fabric, const SwitchArcs& arcs) {
  const std::vector<int>& sizes = fabric.type.dimensions;
  if (!kind_of(fabric.type).symmetric || fabric.nics == 0 || 2 * sizes.size() > 32) return std::nullopt;
  TorusShifts t;
  t.sizes_ = sizes;
  t.index_.assign(fabric.vertices.size(), -1);
  for (size_t d = 0; d < sizes.size(); ++d)
    t.twists_.push_back(d < fabric.type.twists.size() ? fabric.type.twists[d] % sizes[d + 1] : 0);
  for (int n = 0; n < fabric.node_count; ++n) {
    t.routers_.push_back(fabric.nic_switch(n, 0));
    t.index_[at(t.routers_.back())] = n;
    t.live_.push_back(fabric.vertices[at(t.routers_.back())].failed ? 0 : 1);
    int rest = n;
    for (const int size : sizes) t.place_.push_back(rest % size), rest /= size;
  }
  t.usual_.assign(2 * sizes.size(), 0);
  t.next_.assign(t.routers_.size() * t.ways(), -1);
  for (int n = 0; n < t.count(); ++n)
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int to = torus_neighbour(fabric.type, n, d);
      t.next_[at(n) * t.ways() + 2 * d] = to;
      t.next_[at(to) * t.ways() + 2 * d + 1] = n;
    }
  t.look(arcs);
  if (std::find(t.way_.begin(), t.way_.end(), -1) != t.way_.end()) return std::nullopt;
  for (size_t i = 0; i < t.own_.size(); ++i)
    if (t.own_[i] > 0 && t.usual_[i % t.ways()] <= 0) return std::nullopt;  // most are gone
  t.search();
  if (std::find(t.distance_.begin(), t.distance_.end(), -1) != t.distance_.end()) return std::nullopt;
  return t;
}

// Which way each arc goes, and where there is less or more on a way than at most routers.
void TorusShifts::look(const SwitchArcs& arcs) {
  way_.assign(arcs.arcs.size(), -1);
  own_.assign(next_.size(), 0);
  for (int n = 0; n < count(); ++n)
    for (int a = arcs.first[at(routers_[at(n)])]; a < arcs.first[at(routers_[at(n)]) + 1]; ++a)
      for (size_t way = 0; way < ways() && way_[at(a)] < 0; ++way) {
        if (routers_[at(next_[at(n) * ways() + way])] != arcs.arcs[at(a)].to) continue;
        way_[at(a)] = static_cast<int>(way);
        own_[at(n) * ways() + way] += arcs.arcs[at(a)].capacity;
      }
  differs_.assign(routers_.size(), 0);
  for (size_t way = 0; way < ways(); ++way) {
    std::map<double, int> seen;
    for (size_t i = way; i < own_.size(); i += ways()) ++seen[own_[i]];
    const auto most = std::max_element(seen.begin(), seen.end(), [](auto& a, auto& b) { return a.second < b.second; });
    usual_[way] = most->first;
    for (size_t n = 0; n < routers_.size(); ++n)
      if (own_[n * ways() + way] != usual_[way]) differs_[n] |= 1U << way;
  }
  for (int n = 0; n < count(); ++n)
    if (differs_[at(n)] != 0) odd_.push_back(n);
}

void TorusShifts::search() {
  distance_.assign(routers_.size(), -1);
  nearer_.assign(routers_.size(), 0);
  reached_.assign(routers_.size(), -1);
  order_.assign(1, 0);
  distance_[0] = 0;
  for (size_t i = 0; i < order_.size(); ++i)
    for (size_t way = 0; way < ways(); ++way) {
      const int to = next_[at(order_[i]) * ways() + way];
      if (usual_[way] <= 0 || distance_[at(to)] >= 0) continue;
      distance_[at(to)] = distance_[at(order_[i])] + 1;
      order_.push_back(to);
    }
  for (size_t n = 0; n < routers_.size(); ++n)
    for (size_t way = 0; way < ways(); ++way)
      if (usual_[way] > 0 && distance_[at(next_[n * ways() + way])] == distance_[n] - 1) nearer_[n] |= 1U << way;
}

// Over the end of a dimension one goes on along the next one by the twist.
int TorusShifts::between(int from, int to) const {
  const size_t dimensions = sizes_.size();
  int result = 0, stride = 1, carry = 0;
  for (size_t d = 0; d < dimensions; ++d) {
    int x = place_[at(from) * dimensions + d] - place_[at(to) * dimensions + d] + carry;
    for (carry = 0; x < 0; x += sizes_[d]) carry -= twists_[d];
    for (; x >= sizes_[d]; x -= sizes_[d]) carry += twists_[d];
    result += x * stride;
    stride *= sizes_[d];
  }
  return result;
}

bool TorusShifts::reached(int to) const {
  const int t = index(to);
  if (t < 0 || live_[at(t)] == 0) return false;
  signed char& known = reached_[at(t)];
  if (known >= 0) return known != 0;
  known = 1;
  for (const int n : odd_) {
    if (n == t || live_[at(n)] == 0) continue;
    const uint32_t ways_there = nearer_[at(between(n, t))];
    bool any = false;
    for (size_t way = 0; way < ways(); ++way)
      any = any || ((ways_there >> way & 1U) != 0 && own_[at(n) * ways() + way] > 0);
    if (!any) known = 0;
  }
  return known != 0;
}

// For each router the first of those that shifts move it to which leave `weight`, by switch, as it is.
std::vector<int> TorusShifts::alike(const std::vector<double>& weight) const {
  std::vector<size_t> allowed;
  for (size_t way = 0; way < ways(); way += 2) {
    bool same = true;
    for (size_t n = 0; n < routers_.size() && same; ++n)
      same = weight[at(routers_[at(next_[n * ways() + way])])] == weight[at(routers_[n])];
    if (same) allowed.push_back(way);
  }
  std::vector<int> first(routers_.size(), -1), moved;
  for (size_t n = 0; n < first.size(); ++n) {
    if (first[n] >= 0) continue;
    first[n] = static_cast<int>(n);
    moved.assign(1, first[n]);
    for (size_t i = 0; i < moved.size(); ++i)
      for (const size_t way : allowed) {
        const int to = next_[at(moved[i]) * ways() + way];
        if (first[at(to)] >= 0) continue;
        first[at(to)] = first[n];
        moved.push_back(to);
      }
  }
  return first;
}

}  // namespace tw
