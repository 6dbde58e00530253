// All-to-alls where adapters meet switches: through the levels of a tree at once, else destination by destination.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "network/hashed_exchange.hpp"
#include "network/link_loads.hpp"

namespace tw::network {

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
  size_t leaves = 0;
  for (size_t i = 0; i < attached.size(); ++i) leaves += i == 0 || attached[i].leaf != attached[i - 1].leaf ? 1 : 0;
  balanced_ = hashing == nullptr && balances(leaves * leaves);
  const auto first_odd =
      std::stable_partition(attached.begin(), attached.end(), [&](const Attached& a) { return !odd(a.leaf); });
  if (first_odd != attached.begin()) push_exchange({attached.begin(), first_odd}, share, hashing);
  const bool alike = first_odd != attached.end() && spread_exchange(attached, share, hashing);
  if (hashing == nullptr && !alike) leave(leaves * leaves);  // else no cable of one direction is fuller than another
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

struct LinkLoads::Spread {
  std::vector<double> ranks, stays, loads;  // by switch, by switch (0 between destinations), by link
  std::map<int, std::vector<Attached>> of_domain, of_leaf;
  std::vector<int> leaves, odd_leaves;
  double share = 1;
  Hashing* hashing = nullptr;
  // Ranks of a leaf's domains send to their mates there by other ways.
  template <class F>
  void mates(int leaf, const F& take) {
    for (const Attached& a : of_leaf[leaf])
      for (const Attached& other : of_domain[a.domain]) take(static_cast<size_t>(other.leaf), a.ranks * other.ranks);
  }
};

// Any other fabric, and what odd leaves of a tree send or get: destination by destination, or those together that hang
// on the same switches.
bool LinkLoads::spread_exchange(const std::vector<Attached>& attached, double share, Hashing* hashing) {
  Spread s;
  s.share = share, s.hashing = hashing;
  s.ranks.assign(fabric_.vertices.size(), 0);
  s.stays = s.ranks;
  s.loads.assign(load_.size(), 0);
  for (const Attached& a : attached) {
    s.ranks[static_cast<size_t>(a.leaf)] += a.ranks;
    s.of_domain[a.domain].push_back(a);
    s.of_leaf[a.leaf].push_back(a);
  }
  for (const auto& [leaf, here] : s.of_leaf) {
    s.leaves.push_back(leaf);
    if (odd(leaf)) s.odd_leaves.push_back(leaf);
  }
  std::vector<int> destinations = s.leaves;
  bool all_alike = false;
  // Where hashes or a balance of all pairs tell destinations apart each is looked at by itself; so it is where domains
  // do.
  const bool apart = hashing != nullptr || balanced_;
  const auto alone = [](const auto& of) { return of.second.size() == 1; };
  if (!apart && std::all_of(s.of_domain.begin(), s.of_domain.end(), alone) &&
      std::all_of(s.of_leaf.begin(), s.of_leaf.end(), alone))
    if (auto torus = router_.exchange(s.ranks, share)) {
      s.loads = std::move(torus->loads);
      destinations = std::move(torus->left);
      all_alike = torus->all_alike;
      hops_ += torus->distance + 2 * torus->pairs;
      messages_ += torus->pairs;
    }
  std::map<std::pair<bool, std::vector<int>>, std::vector<int>> twins;  // by oddness and the switches next to them
  for (const int to : destinations)
    twins[{!apart && odd(to), apart ? std::vector<int>{to} : router_.neighbours(to)}].push_back(to);
  for (const auto& [key, same] : twins) {
    const std::vector<int>& sources = odd(same.front()) ? s.leaves : s.odd_leaves;
    std::vector<int> outside;  // `same` is in order
    std::set_difference(sources.begin(), sources.end(), same.begin(), same.end(), std::back_inserter(outside));
    const bool together = same.size() > 1 && !outside.empty() && spread_to_twins(s, same, outside);
    if (together && outside.size() == sources.size()) continue;
    for (const int to : same) spread_to(s, to, together ? same : sources);
  }
  for (size_t l = 0; l < s.loads.size(); ++l) load_[l] += s.loads[l];
  dense_ = true;
  return all_alike;
}

void LinkLoads::spread_to(Spread& s, int to, const std::vector<int>& sources) {
  if (sources.empty()) return;
  s.mates(to, [&](size_t leaf, double pairs) { s.stays[leaf] += pairs; });
  router_.search_many(sources, to);
  std::vector<std::pair<int, double>> entering;
  for (const int from : sources) {
    const double pairs =
        s.ranks[static_cast<size_t>(from)] * s.ranks[static_cast<size_t>(to)] - s.stays[static_cast<size_t>(from)];
    const int distance = router_.distance(from, to);
    if (distance < 0) no_path(from, to);
    if (!(pairs > 0)) continue;
    if (distance > 0) entering.emplace_back(from, pairs * s.share);
    hops_ += pairs * (distance + 2);
    messages_ += pairs;
  }
  s.mates(to, [&](size_t leaf, double) { s.stays[leaf] = 0; });
  if (s.hashing == nullptr) {
    router_.spread(to, entering, s.loads);
  } else {
    std::map<int, double> flows;
    for (const auto& [from, bytes] : entering) flows[from] = std::round(bytes / s.hashing->bytes);
    std::vector<LinkShare> carried;
    hash_towards(fabric_, router_, to, flows, s.hashing->stream, carried);
    for (const LinkShare& l : carried) s.loads[static_cast<size_t>(l.link)] += l.share * s.hashing->bytes;
  }
  if (balanced_)
    for (const auto& [from, bytes] : entering) demand(from, to, bytes);
  router_.forget();
}

// From elsewhere all ways to switches that hang on the same others are the same but for the last cable. Not where some
// send less to one of them: mates of a domain.
bool LinkLoads::spread_to_twins(Spread& s, const std::vector<int>& same, const std::vector<int>& outside) {
  bool mates_outside = false;
  double ranks = 0;
  for (const int to : same) {
    s.mates(to, [&](size_t leaf, double) {
      mates_outside = mates_outside || std::binary_search(outside.begin(), outside.end(), static_cast<int>(leaf));
    });
    ranks += s.ranks[static_cast<size_t>(to)];
  }
  if (mates_outside) return false;
  const int first = same.front();
  router_.search_many(outside, first);
  std::vector<std::pair<int, double>> entering;
  for (const int from : outside) {
    const double pairs = s.ranks[static_cast<size_t>(from)] * ranks;
    const int distance = router_.distance(from, first);
    if (distance < 0) no_path(from, first);
    entering.emplace_back(from, pairs * s.share);
    hops_ += pairs * (distance + 2);
    messages_ += pairs;
  }
  std::map<int, double> kept, arriving;  // link -> bytes of others; switch -> bytes
  for (const SwitchArcs::Arc& arc : router_.arcs(first))
    std::swap(kept[arc.link ^ 1], s.loads[static_cast<size_t>(arc.link ^ 1)]);
  router_.spread(first, entering, s.loads);
  for (const SwitchArcs::Arc& arc : router_.arcs(first)) {
    double& load = s.loads[static_cast<size_t>(arc.link ^ 1)];
    arriving[arc.to] += load;
    load = kept[arc.link ^ 1];
  }
  for (const int to : same) {
    std::map<int, double> capacity;
    for (const SwitchArcs::Arc& arc : router_.arcs(to)) capacity[arc.to] += arc.capacity;
    for (const SwitchArcs::Arc& arc : router_.arcs(to))
      s.loads[static_cast<size_t>(arc.link ^ 1)] +=
          arriving[arc.to] * s.ranks[static_cast<size_t>(to)] / ranks * arc.capacity / capacity[arc.to];
  }
  router_.forget();
  return true;
}

}  // namespace tw::network
