// All-to-alls where adapters meet switches: through the levels of a tree at once, else destination by destination.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

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
  // Of destinations that are alike the first stands for all, but where hashes or a balance of all pairs tell them
  // apart.
  const bool apart =
      hashing == nullptr && !balanced_ &&
      std::all_of(of_domain.begin(), of_domain.end(), [](const auto& d) { return d.second.size() == 1; });
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
    if (balanced_)
      for (const auto& [from, bytes] : entering) demand(from, to, bytes);
    router_.forget();
  }
  if (apart) router_.sum_alike(alike, loads);
  for (size_t l = 0; l < loads.size(); ++l) load_[l] += loads[l];
  dense_ = true;
}

}  // namespace tw::network
