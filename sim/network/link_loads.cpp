#include "network/link_loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "network/hashed_exchange.hpp"

namespace tw::network {
namespace {

uint64_t key_of(int a, int b) {
  return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32U | static_cast<uint32_t>(b);
}

std::string remark_of(const std::string& ended, double over) {
  if (ended.empty() || over <= 1 + 1e-6) return "";
  return fmt::format("{}: the fullest cable is at most {:.4g} times as full as it need be", ended, over);
}

// Beyond this number of ranks hashed messages of an all-to-all are not routed one by one: how many take each link is
// drawn.
constexpr int kMostHashed = 512;

}  // namespace

void LinkLoads::no_path(int from, int to) const {
  throw InputError(
      {{fabric_.cluster_name, "/fabric",
        fmt::format("there is no live path from {} to {}", fabric_.vertices[static_cast<size_t>(from)].name,
                    fabric_.vertices[static_cast<size_t>(to)].name),
        ""}});
}

void LinkLoads::add(const Group& group, const FlowPlan& plan, const NvlinkCost& nvlink) {
  for (const Stage& stage : plan.stages) {
    for (const Flow& flow : stage.flows) add_flow(group, flow, nvlink);
    for (const Clique& clique : stage.cliques) add_clique(group, clique, nvlink.flow);
    add_reductions();
  }
}

void LinkLoads::add_flow(const Group& group, const Flow& flow, const NvlinkCost& nvlink) {
  const auto adapters_of = [&](int rank) {
    const Group::Adapters a = group.adapters(rank);
    if (!a.empty()) return a;
    const Rank& r = group.ranks[static_cast<size_t>(rank)];
    throw SimulationError(fmt::format("node-{} GPU {} has no live adapter", r.node, r.gpu));
  };
  if (flow.from == kReduction || flow.to == kReduction) {
    down_ = flow.from == kReduction;
    const int rank = down_ ? flow.to : flow.from;
    const Group::Adapters own = adapters_of(rank);
    for (const int k : own) {
      const int node = group.ranks[static_cast<size_t>(rank)].node;
      const double part = flow.share / static_cast<double>(own.size());
      add(down_ ? fabric_.nic_link_in(node, k) : fabric_.nic_link_out(node, k), part);
      add_host(group.ranks[static_cast<size_t>(rank)], !down_, part);
      add_to_nic(group.ranks[static_cast<size_t>(rank)], k, !down_, part);
      double& stream = reductions_[key_of(fabric_.nic_switch(node, k), flow.channel)];
      stream = std::max(stream, part);
    }
    return;
  }
  if (flow.from < 0 || flow.to < 0) {
    const Rank& r = group.ranks[static_cast<size_t>(std::max(flow.from, flow.to))];
    const int link = flow.to < 0 ? fabric_.nvlink_out(r.node, r.gpu) : fabric_.nvlink_in(r.node, r.gpu);
    add(link, flow.share * nvlink.in_switch);
    return;
  }
  if (group.domain_of(flow.from) == group.domain_of(flow.to))
    return add_over_nvlink(group, flow.from, flow.to, flow.share, nvlink.flow);
  const int via = flow.via < 0 ? flow.from : flow.via;
  const auto [out, in] = apart_ ? ends_on_a_rail(group, via, flow.to) : std::pair{via, flow.to};
  if (out != flow.from) add_over_nvlink(group, flow.from, out, flow.share, nvlink.flow);
  if (in != flow.to) add_over_nvlink(group, in, flow.to, flow.share, nvlink.flow);
  adapters_of(out);
  adapters_of(in);
  add_between(group, out, in, flow.share);
}

void LinkLoads::add_over_nvlink(const Group& group, int a, int b, double share, double nvlink) {
  const Rank &from = group.ranks[static_cast<size_t>(a)], &to = group.ranks[static_cast<size_t>(b)];
  if (fabric_.over_host(from.node, from.gpu, to.node, to.gpu)) {
    add_host(from, true, share);
    add_host(to, false, share);
    if (!fabric_.gpu_place.empty())
      add_shared(from.node, fabric_.gpu_place[static_cast<size_t>(from.gpu)],
                 fabric_.gpu_place[static_cast<size_t>(to.gpu)], share);
    return;
  }
  add(fabric_.nvlink_out(from.node, from.gpu), share * nvlink);
  add(fabric_.nvlink_in(to.node, to.gpu), share * nvlink);
}

void LinkLoads::add_between(const Group& group, int a, int b, double share) {
  const int from = group.ranks[static_cast<size_t>(a)].node, to = group.ranks[static_cast<size_t>(b)].node;
  const Group::Adapters mine = group.adapters(a), theirs = group.adapters(b);
  const std::vector<std::pair<int, int>> lanes = lanes_between(mine, from, theirs, to);
  const double part = share / static_cast<double>(lanes.size());
  add_host(group.ranks[static_cast<size_t>(a)], true, share);
  add_host(group.ranks[static_cast<size_t>(b)], false, share);
  for (const auto& [out, in] : lanes) {
    add_to_nic(group.ranks[static_cast<size_t>(a)], out, true, part);
    add_to_nic(group.ranks[static_cast<size_t>(b)], in, false, part);
    add_lane(from, out, to, in, part);
  }
}

void LinkLoads::add_lane(int from, int out, int to, int in, double bytes) {
  if (router_.policy == RoutingPolicy::adaptive) {
    add(fabric_.nic_link_out(from, out), bytes);
    add(fabric_.nic_link_in(to, in), bytes);
    sprayed_[key_of(fabric_.nic_switch(from, out), fabric_.nic_switch(to, in))] += bytes;
  } else {
    for (const LinkShare& l : router_.route(from, out, to, in)) add(l.link, bytes * l.share);
  }
  const int cables = router_.hops(from, out, to, in);
  longest_ = std::max(longest_, cables);
  hops_ += cables;
  ++messages_;
}

void LinkLoads::add_clique(const Group& group, const Clique& clique, double nvlink) {
  const auto& members = clique.members;
  const auto n = static_cast<double>(members.size());
  if (apart_ && !on_one_rail(group, members)) return add_clique_apart(group, clique, nvlink);
  if (router_.policy == RoutingPolicy::ecmp && members.size() <= kMostHashed) {
    for (const int a : members)
      for (const int b : members)
        if (a != b) add_flow(group, {a, b, clique.share}, {nvlink, 1});
    return;
  }
  const bool one = std::all_of(members.begin(), members.end(),
                               [&](int r) { return group.domain_of(r) == group.domain_of(members.front()); });
  if (one && fabric_.nvlink.island > 0) {
    for (const int a : members)
      for (const int b : members)
        if (a != b) add_over_nvlink(group, a, b, clique.share, nvlink);
    return;
  }
  // The same flows summed by switch, since n^2 of them would be too many.
  std::vector<double> in_domain(one ? 0 : static_cast<size_t>(group.count()), 0);
  if (!one)
    for (const int r : members) ++in_domain[static_cast<size_t>(group.domain_of(r))];
  // Where adapters of an accelerator lead to planes of their own, each sends to its like.
  const size_t lanes = apart_ && !one ? group.adapters(members.front()).size() : 1;
  std::vector<std::vector<Attached>> attached(std::max<size_t>(1, lanes));
  for (const int r : members) {
    const Rank& rank = group.ranks[static_cast<size_t>(r)];
    const int domain = group.domain_of(r);
    const double near = (one ? n : in_domain[static_cast<size_t>(domain)]) - 1, far = n - 1 - near;
    if (near > 0 && fabric_.nvlink.island > 0) {
      for (const int other : members)
        if (other != r && group.domain_of(other) == domain) add_over_nvlink(group, r, other, clique.share, nvlink);
    } else if (near > 0) {
      add(fabric_.nvlink_out(rank.node, rank.gpu), near * clique.share * nvlink);
      add(fabric_.nvlink_in(rank.node, rank.gpu), near * clique.share * nvlink);
    }
    if (far > 0) {
      add_host(rank, true, far * clique.share);
      add_host(rank, false, far * clique.share);
    }
    if (one) continue;
    const Group::Adapters own = group.adapters(r);
    if (own.empty()) throw SimulationError(fmt::format("node-{} GPU {} has no live adapter", rank.node, rank.gpu));
    const double part = 1 / static_cast<double>(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const int k = own[i];
      add(fabric_.nic_link_out(rank.node, k), far * clique.share * part);
      add(fabric_.nic_link_in(rank.node, k), far * clique.share * part);
      for (const bool out : {true, false}) add_to_nic(rank, k, out, far * clique.share * part);
      attached[i % attached.size()].push_back(
          {fabric_.nic_switch(rank.node, k), domain, attached.size() > 1 ? 1 : part});
    }
  }
  if (one) return;
  std::optional<Hashing> hashing;
  if (router_.policy == RoutingPolicy::ecmp) {
    const Rank& first = group.ranks[static_cast<size_t>(members.front())];
    const auto flows = static_cast<double>(group.adapters(members.front()).size()) * router_.queue_pairs;
    hashing = {clique.share / flows,
               random_stream(seed_, "ecmp exchange", key_of(first.node * fabric_.gpus + first.gpu, group.n()))};
  }
  for (std::vector<Attached>& lane : attached)
    exchange_at_leaves(lane, clique.share / static_cast<double>(attached.size()), hashing ? &*hashing : nullptr);
}

// Each leaf sums what its adapters send and passes one stream for each channel up to a root, spread over its links.
void LinkLoads::add_reductions() {
  if (reductions_.empty()) return;
  const auto leaf_of = [](uint64_t key) { return static_cast<int>(key >> 32U); };
  std::vector<std::pair<uint64_t, double>> streams(reductions_.begin(), reductions_.end());
  std::sort(streams.begin(), streams.end());
  const bool one_leaf = leaf_of(streams.front().first) == leaf_of(streams.back().first);
  for (const auto& [key, share] : streams) {
    if (one_leaf) break;
    std::vector<int> up;
    double capacity = 0;
    const int leaf = leaf_of(key);
    for (const int id : fabric_.cables_at[static_cast<size_t>(leaf)]) {
      if (!fabric_.goes_up(id, leaf)) continue;
      up.push_back(id);
      capacity += fabric_.cables[static_cast<size_t>(id)].capacity_Bps;
    }
    for (const int id : up)
      add(2 * id + (down_ ? 1 : 0), share * fabric_.cables[static_cast<size_t>(id)].capacity_Bps / capacity);
  }
  hops_ += one_leaf ? 2 : 4;
  ++messages_;
  reductions_.clear();
}

void LinkLoads::demand(int from, int to, double bytes) {
  if (from == to || bytes <= 0) return;
  if (++demand_count_ <= most_balanced_) demands_[to].emplace_back(from, bytes);
}

// Flows from leaf to leaf: many at once through the levels of a tree, else one by one.
void LinkLoads::add_sprayed() {
  const TreeLevels* tree = router_.levels();
  std::vector<std::pair<uint64_t, double>> pairs(sprayed_.begin(), sprayed_.end());
  std::sort(pairs.begin(), pairs.end());  // sums must not depend on the order of a hash table
  // A pair of leaves has a few thousand links between it at most.
  const bool balanced = balances(pairs.size());
  leave(pairs.size());
  const bool at_once =
      tree != nullptr && !balanced && given_ == nullptr && (narrowest_ || pairs.size() > tree->size() / 4096);
  if (at_once && traffic_.leaving.empty()) traffic_ = tree->no_traffic();
  std::vector<LinkShare> carried;
  for (const auto& [key, bytes] : pairs) {
    const int from = static_cast<int>(key >> 32U), to = static_cast<int>(key & 0xffffffffU);
    if (from != to && router_.distance(from, to) < 0) no_path(from, to);
    if (balanced) demand(from, to, bytes);
    if (at_once && tree->even(from, to))
      tree->add(traffic_, from, to, bytes);
    else if (given_ != nullptr && from != to)
      given_->spray(fabric_, router_, from, to, bytes, carried);
    else
      router_.spray(from, to, bytes, carried);
    for (const LinkShare& l : carried) add(l.link, l.share);
    carried.clear();
  }
  sprayed_.clear();
}

// Every switch has split by its next cables: where those beyond are not alike, less may go towards the narrow ones.
void LinkLoads::balance(SplitTable* table, std::string& remark) {
  if (demand_count_ <= most_balanced_) {
    const BalancedSplit split = balanced_split(fabric_, router_, demands_, load_, table);
    for (const LinkShare& change : split.changes) {
      double& now = load_[static_cast<size_t>(change.link)];
      const double before = now;
      add(change.link, change.share);
      if (now < 1e-12 * before) now = 0;
    }
    remark = remark_of(split.ended, split.over);
  } else {
    leave(demand_count_);
  }
  demands_.clear();
  demand_count_ = 0;
}

// Of too many pairs: what no split could be under says how much is left.
std::string LinkLoads::unbalanced() const {
  double fullest = 0, least = mean_cable_s(fabric_, load_);
  for (size_t l = 0; l < load_.size(); ++l) {
    if (load_[l] <= 0) continue;
    double& most = between_switches(fabric_, l) ? fullest : least;
    most = std::max(most, load_[l] / fabric_.link_capacity_Bps(static_cast<int>(l)));
  }
  return remark_of(fmt::format("adaptive routing is left at what each switch sees of its next cables, as {} pairs of "
                               "switches are more than the {} that are balanced",
                               left_pairs_, most_balanced_),
                   least > 0 ? fullest / least : 1);
}

LinkLoads::Taken LinkLoads::take(SplitTable* table) {
  Taken taken;
  if (!sprayed_.empty()) add_sprayed();
  if (!demands_.empty()) balance(table, taken.remark);
  if (!traffic_.leaving.empty() && narrowest_) {
    std::vector<std::pair<int, double>> loads;
    router_.tree()->push_narrowest(traffic_, loads);
    for (const auto& [link, bytes] : loads) add(link, bytes);
  } else if (!traffic_.leaving.empty()) {
    router_.levels()->push(traffic_, load_);
    dense_ = true;
  }
  if (left_pairs_ > 0) taken.remark = unbalanced();
  taken.hops = messages_ > 0 ? hops_ / messages_ : 0;
  taken.longest = longest_;
  const auto give = [&](size_t link) {
    if (load_[link] > 0) taken.uses.push_back({static_cast<int>(link), load_[link]});
    load_[link] = 0;
  };
  if (dense_ || touched_.size() > load_.size() / 8) {
    for (size_t l = 0; l < load_.size(); ++l) give(l);
  } else {
    std::sort(touched_.begin(), touched_.end());
    for (const int link : touched_) give(static_cast<size_t>(link));
  }
  touched_.clear();
  dense_ = false;
  traffic_ = {};
  hops_ = messages_ = 0;
  longest_ = 0;
  left_pairs_ = 0;
  return taken;
}

}  // namespace tw::network
