#include "topology/torus_shifts.hpp"

#include "topology/fabric_kind.hpp"

namespace tw {

std::optional<TorusShifts> TorusShifts::of(const Fabric& fabric, const SwitchArcs& arcs) {
  if (!kind_of(fabric.type).symmetric || fabric.nics == 0) return std::nullopt;
  TorusShifts shifts;
  const size_t dimensions = fabric.type.dimensions.size();
  std::vector<int> routers;
  for (int n = 0; n < fabric.node_count; ++n) routers.push_back(fabric.nic_switch(n, 0));
  shifts.next_.assign(dimensions, std::vector<int>(fabric.vertices.size(), -1));
  for (size_t d = 0; d < dimensions; ++d)
    for (int n = 0; n < fabric.node_count; ++n)
      shifts.next_[d][static_cast<size_t>(routers[static_cast<size_t>(n)])] =
          routers[static_cast<size_t>(torus_neighbour(fabric.type, n, d))];
  shifts.way_.assign(arcs.arcs.size(), -1);
  shifts.parallel_.assign(2 * dimensions, 0);
  std::vector<double> capacity(2 * dimensions, 0);
  for (const int at : routers) {
    std::vector<int> found(2 * dimensions, 0);
    for (int a = arcs.first[static_cast<size_t>(at)]; a < arcs.first[static_cast<size_t>(at) + 1]; ++a) {
      const SwitchArcs::Arc& arc = arcs.arcs[static_cast<size_t>(a)];
      size_t way = 0;
      while (way < 2 * dimensions && (way % 2 == 0 ? shifts.next_[way / 2][static_cast<size_t>(at)] != arc.to
                                                   : shifts.next_[way / 2][static_cast<size_t>(arc.to)] != at))
        ++way;
      if (way == 2 * dimensions) return std::nullopt;
      if (capacity[way] == 0) capacity[way] = arc.capacity;
      if (arc.capacity != capacity[way]) return std::nullopt;
      shifts.way_[static_cast<size_t>(a)] = static_cast<int>(way);
      ++found[way];
    }
    if (at == routers.front()) shifts.parallel_ = found;
    if (found != shifts.parallel_) return std::nullopt;
  }
  return shifts;
}

std::vector<int> TorusShifts::alike(const std::vector<double>& weight) const {
  std::vector<const std::vector<int>*> allowed;
  for (const std::vector<int>& next : next_) {
    bool same = true;
    for (size_t v = 0; v < next.size() && same; ++v)
      same = next[v] < 0 || weight[static_cast<size_t>(next[v])] == weight[v];
    if (same) allowed.push_back(&next);
  }
  std::vector<int> first(weight.size(), -1), moved;
  for (size_t v = 0; v < first.size(); ++v) {
    if (first[v] >= 0) continue;
    first[v] = static_cast<int>(v);
    moved.assign(1, first[v]);
    for (size_t i = 0; i < moved.size(); ++i)
      for (const std::vector<int>* next : allowed) {
        const int to = (*next)[static_cast<size_t>(moved[i])];
        if (to < 0 || first[static_cast<size_t>(to)] >= 0) continue;
        first[static_cast<size_t>(to)] = first[v];
        moved.push_back(to);
      }
  }
  return first;
}

// A shift moves no link onto itself, so each of those that are alike gets, in turn, what any of them carries.
void TorusShifts::sum(const SwitchArcs& arcs, const std::vector<int>& alike, std::vector<double>& loads) const {
  std::vector<double> total(parallel_.size() * alike.size(), 0);
  const auto each = [&](const auto& take) {
    for (size_t v = 0; v < alike.size(); ++v)
      for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
        const auto way = static_cast<size_t>(way_[static_cast<size_t>(a)]);
        take(total[static_cast<size_t>(alike[v]) * parallel_.size() + way], way,
             loads[static_cast<size_t>(arcs.arcs[static_cast<size_t>(a)].link)]);
      }
  };
  each([](double& sum, size_t, double load) { sum += load; });
  each([&](double sum, size_t way, double& load) { load = sum / parallel_[way]; });
}

}  // namespace tw
