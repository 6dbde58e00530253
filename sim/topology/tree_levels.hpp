// A healthy tree of switches seen level by level: switches that reach each other without climbing above a level form a
// component, and traffic that climbs out of one, or comes into one, is split in the same way wherever in the component
// it began. So loads of any pattern cost one pass over the links, not one over each pair of leaves.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "topology/fabric.hpp"

namespace tw {

// Live links from switch to switch: arcs of switch v are arcs[first[v]] to arcs[first[v + 1] - 1].
struct SwitchArcs {
  struct Arc {
    int to = 0, link = 0;
    double capacity = 0;
  };
  std::vector<int> first;
  std::vector<Arc> arcs;
};

class TreeLevels {
 public:
  // Nothing when the fabric is no tree of levels. Components that spray otherwise than most of their neighbours (below
  // a failed cable, a slow one) are odd: what climbs out of them or comes into them is not told here.
  static std::optional<TreeLevels> of(const Fabric& fabric, const SwitchArcs& arcs);

  // Is no component odd, and are all links out of one as full, and all into one?
  bool even() const { return even_; }
  // Highest level at which what leaves a leaf, or comes to it, is split as from its neighbours.
  int even_up_to(int leaf) const;
  bool is_odd(int leaf) const { return !even_ && even_up_to(leaf) < levels(); }
  // Is what goes between two leaves told by add() and push()?
  bool even(int a, int b) const {
    const int level = meeting_level(a, b);
    return level > 0 && (even_ || (level <= even_up_to(a) && level <= even_up_to(b)));
  }

  int levels() const { return static_cast<int>(component_.size()); }
  int tier(int sw) const { return tier_[static_cast<size_t>(sw)]; }
  // The component of a switch among those of `level` (1 = leaves) and below; ids run over all levels. -1 for switches
  // above the level.
  int component(int level, int sw) const { return component_[static_cast<size_t>(level) - 1][static_cast<size_t>(sw)]; }
  int components() const { return components_; }
  // Level at which two leaves meet, 1 when they are one; 0 when there is no path.
  int meeting_level(int a, int b) const;

  // Bytes that leave each component upwards and enter it from above, by component id.
  struct Traffic {
    std::vector<double> leaving, entering;
  };
  Traffic no_traffic() const;
  void add(Traffic& traffic, int from_leaf, int to_leaf, double bytes) const;
  void push(const Traffic& traffic, std::vector<double>& loads) const;
  size_t size() const { return up_.size() + down_.size(); }  // links that push() looks at

  // Links that lead out of a component (or into it) always carry in the same proportion, so the narrowest says when
  // they are full: its load alone, for each component that `traffic` passes, is appended to `loads`.
  void push_narrowest(const Traffic& traffic, std::vector<std::pair<int, double>>& loads) const;
  // From the loads of the narrowest links those of all.
  void widen(std::vector<double>& loads) const;

 private:
  struct Split {
    int link = 0, component = 0;
    double share = 0;
  };
  void find_narrowest(const Fabric& fabric);
  void mark_uneven(const Fabric& fabric, const std::vector<Split>& splits);
  bool build(const Fabric& fabric, const SwitchArcs& arcs);
  void connect(const SwitchArcs& arcs, int level);
  struct Arrived {
    int at = 0, from = 0;  // switch, component below it
    double share = 0;
  };
  using Inside = std::vector<std::vector<int>>;  // [component] -> those of the level below that it is made of
  void share_out(const SwitchArcs& arcs, int level);
  std::vector<Arrived> climb(const SwitchArcs& arcs, int level, const Inside& inside);
  void agree(std::vector<Arrived> arrived, const Inside& inside);
  void descend(const SwitchArcs& arcs, int level);
  void mark(int component) { odd_[static_cast<size_t>(component)] = 1, even_ = false; }
  std::vector<int> tier_;                    // 0: not a live switch
  std::vector<std::vector<int>> component_;  // [level - 1][vertex]
  std::vector<double> share_;  // [vertex]: of what climbs to the top of its component, at the level of its tier
  std::vector<Split> up_, down_;
  std::vector<Split> narrow_up_, narrow_down_;  // [component], link -1 where nothing leads
  std::vector<char> odd_;                       // [component]
  bool even_ = true;
  int components_ = 0;
};

}  // namespace tw
