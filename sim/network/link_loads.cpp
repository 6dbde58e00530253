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

// Beyond this number of ranks hashed messages of an all-to-all are not routed one by one: how many take each link is
// drawn.
constexpr int kMostHashed = 512;
// Beyond this number of pairs of switches adaptive routing is left at what each switch sees.
constexpr size_t kMostDemands = 1'000'000;

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
    if (router_.policy == RoutingPolicy::adaptive) {
      add(fabric_.nic_link_out(from, out), part);
      add(fabric_.nic_link_in(to, in), part);
      sprayed_[key_of(fabric_.nic_switch(from, out), fabric_.nic_switch(to, in))] += part;
    } else {
      for (const LinkShare& l : router_.route(from, out, to, in)) add(l.link, part * l.share);
    }
    const int cables = router_.hops(from, out, to, in);
    longest_ = std::max(longest_, cables);
    hops_ += cables;
    ++messages_;
  }
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

void LinkLoads::exchange_at_leaves(std::vector<Attached>& attached, double share, Hashing* hashing) {
  std::sort(attached.begin(), attached.end(), [](const Attached& a, const Attached& b) {
    return a.leaf != b.leaf ? a.leaf < b.leaf : a.domain < b.domain;
  });
  size_t kept = 0;
  for (const Attached& a : attached) {
    if (kept > 0 && attached[kept - 1].leaf == a.leaf && attached[kept - 1].domain == a.domain)
      attached[kept - 1].ranks += a.ranks;
    else
      attached[kept++] = a;
  }
  attached.resize(kept);
  const auto first_odd =
      std::stable_partition(attached.begin(), attached.end(), [&](const Attached& a) { return !odd(a.leaf); });
  if (first_odd != attached.begin()) push_exchange({attached.begin(), first_odd}, share, hashing);
  if (first_odd != attached.end()) spread_exchange(attached, share, hashing);
}

// Through a tree. What leaves a component: its ranks to all ranks outside, less the pairs that share a domain.
void LinkLoads::push_exchange(const std::vector<Attached>& attached, double share, Hashing* hashing) {
  const TreeLevels& tree = *router_.levels();
  TreeLevels::Traffic hashed;
  TreeLevels::Traffic& traffic = hashing != nullptr ? hashed : traffic_;
  if (traffic.leaving.empty()) traffic = tree.no_traffic();
  double ranks = 0;
  std::vector<double> in_domain;
  for (const Attached& a : attached) {
    ranks += a.ranks;
    if (in_domain.size() <= static_cast<size_t>(a.domain)) in_domain.resize(static_cast<size_t>(a.domain) + 1, 0);
    in_domain[static_cast<size_t>(a.domain)] += a.ranks;
  }
  std::vector<std::pair<std::pair<int, int>, double>> inside;  // ((component, domain), ranks)
  double total = 0, climbing = 0;  // bytes between domains; those that climb, once for each level
  for (const double there : in_domain) total += share * there * (ranks - there);
  for (int level = 1; level <= tree.levels(); ++level) {
    inside.clear();
    for (const Attached& a : attached) inside.push_back({{tree.component(level, a.leaf), a.domain}, a.ranks});
    std::sort(inside.begin(), inside.end());
    for (size_t i = 0; i < inside.size();) {
      const int c = inside[i].first.first;
      double own = 0, same_domain = 0;
      while (i < inside.size() && inside[i].first.first == c) {
        const int domain = inside[i].first.second;
        double here = 0;
        for (; i < inside.size() && inside[i].first == std::pair{c, domain}; ++i) here += inside[i].second;
        own += here;
        same_domain += here * (in_domain[static_cast<size_t>(domain)] - here);
      }
      const double bytes = std::max(0.0, share * (own * (ranks - own) - same_domain));
      climbing += bytes;
      traffic.leaving[static_cast<size_t>(c)] += bytes;
      traffic.entering[static_cast<size_t>(c)] += bytes;
    }
  }
  for (const Attached& a : attached)
    if (tree.meeting_level(attached.front().leaf, a.leaf) == 0) no_path(attached.front().leaf, a.leaf);
  hops_ += 2 * (total + climbing) / share;
  messages_ += total / share;
  if (hashing == nullptr) return;
  for (std::vector<double>* bytes : {&hashed.leaving, &hashed.entering})
    for (double& b : *bytes) b = std::round(b / hashing->bytes);
  std::vector<LinkShare> carried;
  hash_through_tree(fabric_, tree, hashed, hashing->stream, carried);
  for (const LinkShare& l : carried) add(l.link, l.share * hashing->bytes);
}

// Any other fabric, and what odd leaves of a tree send or get: destination by destination.
void LinkLoads::spread_exchange(const std::vector<Attached>& attached, double share, Hashing* hashing) {
  std::vector<double> ranks(fabric_.vertices.size(), 0), stays = ranks, loads(load_.size(), 0);
  std::map<int, std::vector<Attached>> of_domain, of_leaf;
  for (const Attached& a : attached) {
    ranks[static_cast<size_t>(a.leaf)] += a.ranks;
    of_domain[a.domain].push_back(a);
    of_leaf[a.leaf].push_back(a);
  }
  std::vector<int> leaves, odd_leaves;
  for (const auto& [leaf, here] : of_leaf) {
    leaves.push_back(leaf);
    if (odd(leaf)) odd_leaves.push_back(leaf);
  }
  // Of destinations that are alike the first stands for all.
  // Where hashes or a balance of all pairs tell them apart, each stands for itself.
  const bool each = hashing != nullptr || (router_.policy == RoutingPolicy::adaptive &&
                                           static_cast<double>(leaves.size() * leaves.size()) <= kMostDemands);
  const bool apart =
      !each && std::all_of(of_domain.begin(), of_domain.end(), [](const auto& d) { return d.second.size() == 1; });
  const std::vector<int> alike = apart ? router_.alike(ranks) : std::vector<int>{};
  std::unordered_map<int, double> times;
  for (const int to : leaves) ++times[apart ? alike[static_cast<size_t>(to)] : to];
  std::vector<std::pair<int, double>> entering;
  for (const int to : leaves) {
    const auto stands_for = times.find(to);
    const std::vector<int>& sources = odd(to) ? leaves : odd_leaves;
    if (stands_for == times.end() || sources.empty()) continue;
    const auto in_domains = [&](const auto& take) {
      for (const Attached& a : of_leaf[to])
        for (const Attached& other : of_domain[a.domain])
          take(stays[static_cast<size_t>(other.leaf)], a.ranks * other.ranks);
    };
    in_domains([](double& bytes, double pairs) { bytes += pairs; });
    router_.search_many(sources, to);
    entering.clear();
    for (const int from : sources) {
      const double pairs =
          ranks[static_cast<size_t>(from)] * ranks[static_cast<size_t>(to)] - stays[static_cast<size_t>(from)];
      const int distance = router_.distance(from, to);
      if (distance < 0) no_path(from, to);
      if (!(pairs > 0)) continue;
      if (distance > 0) entering.emplace_back(from, pairs * share);
      hops_ += stands_for->second * pairs * (distance + 2);
      messages_ += stands_for->second * pairs;
    }
    in_domains([](double& bytes, double) { bytes = 0; });
    if (hashing == nullptr) {
      router_.spread(to, entering, loads);
    } else {
      std::map<int, double> flows;
      for (const auto& [from, bytes] : entering) flows[from] = std::round(bytes / hashing->bytes);
      std::vector<LinkShare> carried;
      hash_towards(fabric_, router_, to, flows, hashing->stream, carried);
      for (const LinkShare& l : carried) loads[static_cast<size_t>(l.link)] += l.share * hashing->bytes;
    }
    for (const auto& [from, bytes] : entering) demand(from, to, bytes);
    router_.forget();
  }
  if (apart) router_.sum_alike(alike, loads);
  for (size_t l = 0; l < loads.size(); ++l) load_[l] += loads[l];
  dense_ = true;
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
      const Cable& c = fabric_.cables[static_cast<size_t>(id)];
      const bool up_cable = c.kind == CableKind::uplink || c.kind == CableKind::core;
      if (!up_cable || c.a != leaf || c.failed || fabric_.vertices[static_cast<size_t>(c.b)].failed) continue;
      up.push_back(id);
      capacity += c.capacity_Bps;
    }
    if (up.empty())
      throw InputError(
          {{fabric_.cluster_name, "/fabric/kind",
            fmt::format("{} has no switch above it to reduce in", fabric_.vertices[static_cast<size_t>(leaf)].name),
            "SHARP needs levels of switches"}});
    for (const int id : up)
      add(2 * id + (down_ ? 1 : 0), share * fabric_.cables[static_cast<size_t>(id)].capacity_Bps / capacity);
  }
  hops_ += one_leaf ? 2 : 4;
  ++messages_;
  reductions_.clear();
}

void LinkLoads::demand(int from, int to, double bytes) {
  if (from == to || bytes <= 0 || router_.tree() != nullptr || router_.policy != RoutingPolicy::adaptive) return;
  if (++demand_count_ <= kMostDemands) demands_[to].emplace_back(from, bytes);
}

// Flows from leaf to leaf: many at once through the levels of a tree, else one by one.
void LinkLoads::add_sprayed() {
  const TreeLevels* tree = router_.levels();
  std::vector<std::pair<uint64_t, double>> pairs(sprayed_.begin(), sprayed_.end());
  std::sort(pairs.begin(), pairs.end());  // sums must not depend on the order of a hash table
  // A pair of leaves has a few thousand links between it at most.
  const bool at_once = tree != nullptr && (narrowest_ || pairs.size() > tree->size() / 4096);
  if (at_once && traffic_.leaving.empty()) traffic_ = tree->no_traffic();
  std::vector<LinkShare> carried;
  for (const auto& [key, bytes] : pairs) {
    const int from = static_cast<int>(key >> 32U), to = static_cast<int>(key & 0xffffffffU);
    if (from != to && router_.distance(from, to) < 0) no_path(from, to);
    const bool even = tree != nullptr && tree->even(from, to);
    if (!even) demand(from, to, bytes);
    if (at_once && even)
      tree->add(traffic_, from, to, bytes);
    else
      router_.spray(from, to, bytes, carried);
    for (const LinkShare& l : carried) add(l.link, l.share);
    carried.clear();
  }
  sprayed_.clear();
}

// Every switch has split by its next cables: where those beyond are not alike, less may go towards the narrow ones.
void LinkLoads::balance() {
  if (demand_count_ <= kMostDemands)
    for (const LinkShare& change : balanced_split(fabric_, router_, demands_, load_)) {
      double& now = load_[static_cast<size_t>(change.link)];
      const double before = now;
      add(change.link, change.share);
      if (now < 1e-12 * before) now = 0;
    }
  demands_.clear();
  demand_count_ = 0;
}

LinkLoads::Taken LinkLoads::take() {
  if (!sprayed_.empty()) add_sprayed();
  if (!demands_.empty()) balance();
  if (!traffic_.leaving.empty() && narrowest_) {
    std::vector<std::pair<int, double>> loads;
    router_.tree()->push_narrowest(traffic_, loads);
    for (const auto& [link, bytes] : loads) add(link, bytes);
  } else if (!traffic_.leaving.empty()) {
    router_.levels()->push(traffic_, load_);
    dense_ = true;
  }
  Taken taken;
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
  return taken;
}

}  // namespace tw::network
