// Exchanges on a torus: of destinations that shifts move to each other one is looked at, in the whole torus, and for
// each what changes behind cables that failed or are slow.
#include <algorithm>
#include <utility>

#include "topology/torus_shifts.hpp"

namespace tw {

class TorusExchange {
 public:
  TorusExchange(const TorusShifts& torus, const std::vector<double>& weight, double share, std::vector<int> alike)
      : t_(torus),
        alike_(std::move(alike)),
        flow_(torus.next_.size(), 0),
        one_(torus.next_.size(), 0),
        extra_(torus.routers_.size(), 0),
        waits_(torus.routers_.size(), 0),
        by_distance_(static_cast<size_t>(torus.distance_[at(torus.order_.back())]) + 1),
        share_(share) {
    for (const int sw : torus.routers_) weight_.push_back(weight[at(sw)]);
  }

  TorusShifts::Exchange run() {
    TorusShifts::Exchange all;
    std::vector<std::vector<int>> members(weight_.size());
    for (size_t n = 0; n < weight_.size(); ++n)
      if (weight_[n] > 0) members[at(alike_[n])].push_back(static_cast<int>(n));
    std::vector<double> total(flow_.size(), 0);
    for (const std::vector<int>& same : members) {
      if (same.empty()) continue;
      const auto [pairs, distance] = to_one(same.front());
      for (size_t n = 0; n < weight_.size(); ++n) {
        const size_t w = at(t_.between(static_cast<int>(n), same.front()));
        for (size_t way = 0; way < t_.ways(); ++way)
          total[at(alike_[n]) * t_.ways() + way] += one_[w * t_.ways() + way];
      }
      for (const int to : same) {
        if (t_.reached(t_.routers_[at(to)])) {
          all.pairs += pairs;
          all.distance += distance;
          differ(to);
        } else {
          all.left.push_back(t_.routers_[at(to)]);
          for (size_t n = 0; n < weight_.size(); ++n)
            for (size_t way = 0, w = at(t_.between(static_cast<int>(n), to)); way < t_.ways(); ++way)
              flow_[n * t_.ways() + way] -= one_[w * t_.ways() + way];
        }
      }
    }
    // Of those that are alike each gets, in turn, what any of them carries.
    for (size_t n = 0; n < weight_.size(); ++n)
      for (size_t way = 0; way < t_.ways(); ++way) {
        const double usual = total[at(alike_[n]) * t_.ways() + way];
        double& flow = flow_[n * t_.ways() + way];
        flow += usual;
        if (flow < 1e-12 * usual) flow = 0;
      }
    return all;
  }

  void put(const SwitchArcs& arcs, std::vector<double>& loads) const {
    for (size_t n = 0; n < weight_.size(); ++n) {
      const size_t v = at(t_.routers_[n]);
      for (int a = arcs.first[v]; a < arcs.first[v + 1]; ++a) {
        const size_t i = n * t_.ways() + at(t_.way_[at(a)]);
        loads[at(arcs.arcs[at(a)].link)] += flow_[i] * arcs.arcs[at(a)].capacity / t_.own_[i];
      }
    }
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }

  // What goes to `to` in the whole torus, seen from there: what arrives at each router, and what it sends each way.
  std::pair<double, double> to_one(int to) {
    double pairs = 0, distance = 0;
    arriving_.assign(weight_.size(), 0);
    std::fill(one_.begin(), one_.end(), 0);
    for (size_t n = 0; n < weight_.size(); ++n) {
      const size_t w = at(t_.between(static_cast<int>(n), to));
      if (w == 0) continue;
      const double both = weight_[n] * weight_[at(to)];
      pairs += both;
      distance += both * t_.distance_[w];
      arriving_[w] = both * share_;
    }
    for (size_t i = t_.order_.size(); i-- > 1;) {
      const size_t w = at(t_.order_[i]);
      const double each = arriving_[w] / usual_of(t_.nearer_[w]);
      each_way(t_.nearer_[w], [&](size_t way) {
        const double part = each * t_.usual_[way];
        one_[w * t_.ways() + way] = part;
        arriving_[at(t_.next_[w * t_.ways() + way])] += part;
      });
    }
    return {pairs, distance};
  }

  template <class F>
  void each_way(uint32_t mask, const F& take) const {
    for (size_t way = 0; mask != 0; ++way, mask >>= 1U)
      if ((mask & 1U) != 0) take(way);
  }
  double usual_of(uint32_t mask) const {
    double sum = 0;
    each_way(mask, [&](size_t way) { sum += t_.usual_[way]; });
    return sum;
  }

  // What routers with cables that are not the usual ones send otherwise on the way to `to`, and what those behind them
  // then do: from the farthest to the nearest.
  void differ(int to) {
    const auto wait = [&](int n, int w) {
      if (waits_[at(n)] != 0) return;
      waits_[at(n)] = 1;
      by_distance_[at(t_.distance_[at(w)])].emplace_back(n, w);
    };
    for (const int n : t_.odd_) {
      const int w = t_.between(n, to);
      if (w != 0 && (t_.nearer_[at(w)] & t_.differs_[at(n)]) != 0) wait(n, w);
    }
    for (size_t d = by_distance_.size(); d-- > 1;) {
      for (size_t i = 0; i < by_distance_[d].size(); ++i) {
        const auto [n, w] = by_distance_[d][i];
        waits_[at(n)] = 0;
        const uint32_t mask = t_.nearer_[at(w)];
        const double extra = std::exchange(extra_[at(n)], 0), usual = usual_of(mask);
        const bool odd = (mask & t_.differs_[at(n)]) != 0;
        double own = 0;
        if (odd) each_way(mask, [&](size_t way) { own += t_.own_[at(n) * t_.ways() + way]; });
        each_way(mask, [&, n = n, w = w](size_t way) {
          const size_t i = at(n) * t_.ways() + way;
          const double changed =
              odd ? (arriving_[at(w)] + extra) * t_.own_[i] / own - arriving_[at(w)] * t_.usual_[way] / usual
                  : extra * t_.usual_[way] / usual;
          flow_[i] += changed;
          if (d == 1) return;
          extra_[at(t_.next_[i])] += changed;
          wait(t_.next_[i], t_.next_[at(w) * t_.ways() + way]);
        });
      }
      by_distance_[d].clear();
    }
  }

  const TorusShifts& t_;
  std::vector<int> alike_;
  std::vector<double> weight_, arriving_;  // by index; seen from the destination
  std::vector<double> flow_, one_;         // [index * ways + way]: all together; to the destination in hand, from there
  std::vector<double> extra_;              // by index, all 0 between destinations
  std::vector<char> waits_;
  std::vector<std::vector<std::pair<int, int>>> by_distance_;  // (router, the same seen from the destination)
  double share_;
};

std::optional<TorusShifts::Exchange> TorusShifts::exchange(const SwitchArcs& arcs, const std::vector<double>& weight,
                                                           double share, size_t links) const {
  constexpr size_t kMostOdd = 64;
  if (odd_.size() > kMostOdd) return std::nullopt;
  std::vector<int> first = alike(weight);
  size_t kinds = 0, sources = 0;
  for (size_t n = 0; n < first.size(); ++n) {
    if (weight[at(routers_[n])] <= 0) continue;
    ++sources;
    kinds += at(first[n]) == n ? 1 : 0;
  }
  if (4 * kinds > sources) return std::nullopt;
  TorusExchange e(*this, weight, share, std::move(first));
  Exchange all = e.run();
  all.all_alike = kinds == 1 && whole();
  all.loads.assign(links, 0);
  e.put(arcs, all.loads);
  return all;
}

}  // namespace tw
