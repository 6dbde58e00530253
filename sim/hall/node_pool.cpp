#include "hall/node_pool.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw::hall {
NodePool::NodePool(const Cluster& cluster, Placing placing, std::vector<Window> maintenance)
    : cluster_(&cluster),
      placing_(placing),
      maintenance_(std::move(maintenance)),
      holder_(at(cluster.nodes), -1),
      unit_(cluster.unit),
      failed_(at(cluster.nodes), 0) {
  if (unit_.empty()) unit_.assign(at(cluster.nodes), 0);
  for (const int unit : unit_) units_ = std::max(units_, unit + 1);
}

bool NodePool::usable(int node, double now_s, double until_s) const {
  if (holder_[at(node)] >= 0 || failed_[at(node)] != 0) return false;
  return std::none_of(maintenance_.begin(), maintenance_.end(), [&](const Window& w) {
    return w.from_s < until_s && now_s < w.to_s && std::binary_search(w.nodes.begin(), w.nodes.end(), node);
  });
}

bool NodePool::in_maintenance(int node, double now_s) const {
  return std::any_of(maintenance_.begin(), maintenance_.end(), [&](const Window& w) {
    return w.from_s <= now_s && now_s < w.to_s && std::binary_search(w.nodes.begin(), w.nodes.end(), node);
  });
}

bool NodePool::serviced(double now_s, double until_s) const {
  return std::any_of(maintenance_.begin(), maintenance_.end(),
                     [&](const Window& w) { return w.from_s < until_s && now_s < w.to_s; });
}

int NodePool::free(double now_s, double until_s, bool spares) const {
  const int last = cluster_->nodes - (spares ? 0 : cluster_->spares);
  if (!serviced(now_s, until_s)) return last - busy_[0] - (spares ? busy_[1] : 0);
  int count = 0;
  for (int node = 0; node < last; ++node) count += usable(node, now_s, until_s) ? 1 : 0;
  return count;
}

std::vector<int> NodePool::choose(int count, double now_s, double until_s, bool spares) const {
  const int last = cluster_->nodes - (spares ? 0 : cluster_->spares);
  std::vector<std::vector<int>> free(at(units_));
  std::vector<char> shared(at(units_), 0);  // another job is in the unit
  for (int node = 0; node < cluster_->nodes; ++node) {
    if (holder_[at(node)] >= 0) shared[at(unit_[at(node)])] = 1;
    if (node < last && usable(node, now_s, until_s)) free[at(unit_[at(node)])].push_back(node);
  }
  std::vector<int> order(at(units_));
  std::iota(order.begin(), order.end(), 0);
  const auto room = [&](int u) { return static_cast<int>(free[at(u)].size()); };
  std::vector<int> nodes;
  if (placing_ == Placing::spread) {  // dealt out over the units in turn
    for (size_t k = 0; static_cast<int>(nodes.size()) < count; ++k) {
      const size_t before = nodes.size();
      for (const int u : order)
        if (k < free[at(u)].size() && static_cast<int>(nodes.size()) < count) nodes.push_back(free[at(u)][k]);
      if (nodes.size() == before) break;
    }
  } else {
    // Of the units that hold the whole job the fullest, else the emptiest ones first: few units, few holes.
    if (placing_ == Placing::units) std::erase_if(order, [&](int u) { return shared[at(u)] != 0; });
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const bool whole_a = room(a) >= count, whole_b = room(b) >= count;
      if (whole_a != whole_b) return whole_a;
      return whole_a ? room(a) < room(b) : room(a) > room(b);
    });
    for (const int u : order)
      for (const int node : free[at(u)])
        if (static_cast<int>(nodes.size()) < count) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

void NodePool::take(const std::vector<int>& nodes, int job) {
  for (const int node : nodes) holder_[at(node)] = job, ++busy(node);
  held_ += static_cast<int>(nodes.size());
}

void NodePool::release(const std::vector<int>& nodes) {
  for (const int node : nodes) holder_[at(node)] = -1, --busy(node);
  held_ -= static_cast<int>(nodes.size());
}

void NodePool::set_failed(int node, bool failed, double back_s) {
  if ((failed_[at(node)] != 0) == failed) return;
  failed_[at(node)] = failed ? 1 : 0;
  if (failed)
    back_s_[node] = back_s;
  else
    back_s_.erase(node);
  busy(node) += failed ? 1 : -1;
}

int NodePool::off(double then_s) const {
  int count = 0;  // a failed node holds no job
  for (const auto& [node, back_s] : back_s_) count += back_s > then_s ? 1 : 0;
  if (!serviced(then_s, std::nextafter(then_s, kNever))) return count;
  for (int node = 0; node < cluster_->nodes; ++node) {
    if (holder_[at(node)] >= 0 || !in_maintenance(node, then_s)) continue;
    const auto failed = back_s_.find(node);
    count += failed == back_s_.end() || failed->second <= then_s ? 1 : 0;
  }
  return count;
}

void NodePool::repair(double then_s) {
  for (const auto& [node, back_s] : std::map<int, double>(back_s_))
    if (back_s <= then_s) set_failed(node, false);
}

double NodePool::next_back_s(double after_s) const {
  double next_s = kNever;
  for (const auto& entry : back_s_)
    if (entry.second > after_s) next_s = std::min(next_s, entry.second);
  return next_s;
}

}  // namespace tw::hall
