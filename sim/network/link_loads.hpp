// From the flows of an algorithm to what each link carries.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "network/adaptive_split.hpp"
#include "network/algorithm.hpp"
#include "network/engine.hpp"
#include "topology/routing.hpp"

namespace tw::network {

// Bytes on a link for each byte that an algorithm sends over it.
struct NvlinkCost {
  double flow = 1;       // between two ranks: line rate over what is reached
  double in_switch = 1;  // to and from an NVLink switch that reduces or multicasts
};

// Do adapters of a node lead into networks that do not meet (rails without spines, planes)? What goes between two of
// them changes its rail over NVLink first.
bool rails_apart(const Fabric& fabric, int node);

class LinkLoads {
 public:
  // `narrowest`: of links that always carry in the same proportion (TreeLevels) take() names one. `seed`: of ECMP, as
  // the router's. `most_balanced`: pairs of switches, beyond which each switch splits by its next cables alone.
  LinkLoads(const Fabric& fabric, Router& router, bool narrowest = false, uint64_t seed = 1,
            size_t most_balanced = kMostBalanced)
      : fabric_(fabric),
        router_(router),
        seed_(seed),
        most_balanced_(most_balanced),
        narrowest_(narrowest && router.tree() != nullptr && router.policy == RoutingPolicy::adaptive) {
    load_.assign(static_cast<size_t>(fabric.link_count()), 0);
    apart_ = planes_apart();
  }

  void add(const Group& group, const FlowPlan& plan, const NvlinkCost& nvlink);

  // Bytes from adapter to adapter.
  void add_lane(int from_node, int out, int to_node, int in, double bytes);

  // What was added, by link, and the cables that a message between domains crosses in the mean; begins anew. `table`,
  // when given, gets the splits of adaptive routing.
  struct Taken {
    std::vector<LinkUse> uses;
    double hops = 0;
    int longest = 0;
    std::string remark;  // where adaptive routing is not taken to its end
  };
  Taken take(SplitTable* table = nullptr);
  // From now on single flows are split as all of them were together.
  void split_by(const SplitTable& table) { given_ = &table; }

 private:
  void add(int link, double bytes) {
    double& x = load_[static_cast<size_t>(link)];
    if (x == 0) touched_.push_back(link);
    x += bytes;
  }
  void add_flow(const Group& group, const Flow& flow, const NvlinkCost& nvlink);
  // Rails and planes that do not meet (rails.cpp).
  bool planes_apart();
  int plane(int node, int nic) { return router_.plane(fabric_.nic_switch(node, nic)); }
  bool meet(const Group& group, int a, int b);
  std::pair<int, int> ends_on_a_rail(const Group& group, int from, int to);
  std::vector<std::pair<int, int>> lanes_between(const Group::Adapters& mine, int from, const Group::Adapters& theirs,
                                                 int to);
  std::vector<int> planes_of(const Group& group, int rank);
  bool on_one_rail(const Group& group, const std::vector<int>& members);
  void add_clique_apart(const Group& group, const Clique& clique, double nvlink);
  void add_over_nvlink(const Group& group, int from, int to, double share, double nvlink);
  void add_host(const Rank& rank, bool out, double share) {
    if (fabric_.host_Bps > 0)
      add(out ? fabric_.host_out(rank.node, rank.gpu) : fabric_.host_in(rank.node, rank.gpu), share);
  }
  // Over PCIe switches that devices of a node share.
  void add_to_nic(const Rank& rank, int nic, bool out, double share) {
    if (fabric_.gpu_place.empty()) return;
    const int gpu = fabric_.gpu_place[static_cast<size_t>(rank.gpu)], at = fabric_.nic_place[static_cast<size_t>(nic)];
    add_shared(rank.node, out ? gpu : at, out ? at : gpu, share);
  }
  void add_shared(int node, int from, int to, double share) {
    for (const int link : fabric_.pcie_path(node, from, to)) add(link, share);
  }
  void add_between(const Group& group, int from, int to, double share);
  void add_clique(const Group& group, const Clique& clique, double nvlink);
  struct Attached {
    int leaf, domain;
    double ranks;
  };
  // Flows of `bytes` that ECMP hashes; null: all is sprayed.
  struct Hashing {
    double bytes;
    SplitMix64 stream;
  };
  void exchange_at_leaves(std::vector<Attached>& attached, double share, Hashing* hashing);
  void push_exchange(const std::vector<Attached>& attached, double share, Hashing* hashing);
  // Are all destinations alike?
  bool spread_exchange(const std::vector<Attached>& attached, double share, Hashing* hashing);
  struct Spread;
  void spread_to(Spread& s, int to, const std::vector<int>& sources);
  bool spread_to_twins(Spread& s, const std::vector<int>& same, const std::vector<int>& outside);
  // Does adaptive routing balance what goes between so many pairs of switches? All of them are then routed by pair.
  bool balances(size_t pairs) const { return uneven() && pairs <= most_balanced_; }
  bool uneven() const {
    return router_.policy == RoutingPolicy::adaptive && router_.tree() == nullptr && given_ == nullptr;
  }
  void leave(size_t pairs) {
    if (uneven() && pairs > most_balanced_) left_pairs_ = std::max(left_pairs_, pairs);
  }
  bool odd(int leaf) const { return balanced_ || router_.levels() == nullptr || router_.levels()->is_odd(leaf); }
  void add_reductions();
  void add_sprayed();
  void demand(int from, int to, double bytes);
  void balance(SplitTable* table, std::string& remark);
  std::string unbalanced() const;
  [[noreturn]] void no_path(int from, int to) const;

  const Fabric& fabric_;
  Router& router_;
  uint64_t seed_;
  size_t most_balanced_;
  bool narrowest_, apart_ = false, balanced_ = false;
  std::vector<double> load_;
  std::vector<int> touched_;
  bool dense_ = false;                            // links were loaded that are not in touched_
  std::unordered_map<uint64_t, double> sprayed_;  // (leaf, leaf) -> bytes
  SwitchDemands demands_;                         // of what was sprayed, where paths are uneven
  size_t demand_count_ = 0;
  size_t left_pairs_ = 0;  // of a pattern of too many to be balanced
  const SplitTable* given_ = nullptr;
  std::unordered_map<uint64_t, double> reductions_;  // (leaf, channel) -> share, of one stage up or down
  TreeLevels::Traffic traffic_;
  double hops_ = 0, messages_ = 0;
  int longest_ = 0;
  bool down_ = false;  // direction of the reductions
};

}  // namespace tw::network
