// A torus, twisted or not, looks the same from each of its routers: shifts along its dimensions move it onto itself. So
// distances need be known to one router, and what loads an exchange makes for one of the destinations that shifts move
// to each other. Where cables failed or are slow the rest still looks so, and what differs is found by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/tree_levels.hpp"

namespace tw {

class TorusShifts {
 public:
  // Nothing when the fabric is no torus.
  static std::optional<TorusShifts> of(const Fabric& fabric, const SwitchArcs& arcs);

  // Is no cable failed or slower than its like?
  bool whole() const { return odd_.empty(); }

  // Has every live router a live cable on a shortest way of the whole torus to switch `to`? Then distances to it are
  // those of the whole torus.
  bool reached(int to) const;
  // Cables between two live routers of the whole torus.
  int distance(int from, int to) const { return distance_[at(between(index(from), index(to)))]; }
  // Does arc number `arc`, of live router `from`, go nearer to `to` there?
  bool nearer(size_t arc, int from, int to) const {
    return (nearer_[at(between(index(from), index(to)))] >> way_[arc] & 1) != 0;
  }

  // Every router sends share * weight * weight, of its own and the other's (by switch), to every other, split by the
  // next cable's capacity. Destinations that cut-off routers do not reach on a shortest way of the whole torus are left
  // to the caller. Nothing where too few are alike.
  struct Exchange {
    std::vector<double> loads;       // by link
    std::vector<int> left;           // switches
    double pairs = 0, distance = 0;  // sums of weight * weight, without and with the cables between the two
    bool all_alike = false;          // no way leads along fuller cables than another of its direction
  };
  std::optional<Exchange> exchange(const SwitchArcs& arcs, const std::vector<double>& weight, double share,
                                   size_t links) const;

 private:
  friend class TorusExchange;
  static size_t at(int i) { return static_cast<size_t>(i); }
  size_t ways() const { return usual_.size(); }
  int count() const { return static_cast<int>(routers_.size()); }
  int index(int sw) const { return index_[at(sw)]; }
  // Router at 0 that one sees from router `to` where `from` is.
  int between(int from, int to) const;
  void look(const SwitchArcs& arcs);
  void search();
  std::vector<int> alike(const std::vector<double>& weight) const;

  std::vector<int> sizes_, twists_, routers_;  // [dimension], [dimension], [index] -> switch
  std::vector<int> index_, place_;             // [switch] -> index or -1; [index * dimensions + dimension]
  std::vector<int> next_;                      // [index * ways + way]: ways go up and down each dimension in turn
  std::vector<int> way_;                       // [arc]
  std::vector<double> usual_, own_;            // [way], [index * ways + way]: capacity of all cables together
  std::vector<uint32_t> differs_;              // [index]: ways on which it is not the usual one
  std::vector<int> odd_;                       // those with any
  std::vector<char> live_;                     // [index]
  std::vector<int> distance_, order_;          // to router 0, by index; from the nearest to the farthest
  std::vector<uint32_t> nearer_;               // [index]: ways that go nearer to router 0
  mutable std::vector<signed char> reached_;   // [index]: -1 = not known yet
};

}  // namespace tw
