#include "network/algorithm.hpp"

#include <algorithm>
#include <unordered_map>

namespace tw::network {

Group::Group(const Fabric& f, const std::vector<Rank>& r) : fabric(f), ranks(r) {
  constexpr size_t kFew = 8;  // are looked through
  std::unordered_map<int, int> of_many;
  const auto place_of = [&](int domain) {
    if (ranks.size() > kFew) return of_many.try_emplace(domain, count()).first->second;
    const auto at = std::find_if(domains.begin(), domains.end(), [&](const auto& d) {
      return ranks[static_cast<size_t>(d.front())].node / fabric.nodes_per_domain == domain;
    });
    return static_cast<int>(at - domains.begin());
  };
  domain_of_.reserve(ranks.size());
  adapter_begin_.reserve(ranks.size() + 1);
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Rank& rank = ranks[i];
    const int at = place_of(rank.node / fabric.nodes_per_domain);
    if (at == count()) domains.emplace_back();
    domains[static_cast<size_t>(at)].push_back(static_cast<int>(i));
    domain_of_.push_back(at);
    adapter_begin_.push_back(static_cast<int>(adapter_.size()));
    if (fabric.nics == 0) continue;
    const std::vector<int>& beside = fabric.nics_beside[static_cast<size_t>(rank.gpu)];
    for (const int k : beside)
      if (fabric.nic_alive(rank.node, k)) adapter_.push_back(k);
    if (adapter_begin_.back() != static_cast<int>(adapter_.size())) continue;
    std::vector<int> alive;
    for (int k = 0; k < fabric.nics; ++k)
      if (fabric.nic_alive(rank.node, k)) alive.push_back(k);
    if (!alive.empty()) adapter_.push_back(alive[static_cast<size_t>(beside.front()) % alive.size()]);
  }
  adapter_begin_.push_back(static_cast<int>(adapter_.size()));
  std::vector<std::pair<int, int>> seen;
  for (const auto& domain : domains) {
    std::vector<int> own;
    seen.clear();
    for (const int rank : domain) {
      const Adapters a = adapters(rank);
      if (!a.empty()) {
        const std::pair<int, int> beside{ranks[static_cast<size_t>(rank)].node, a[0]};
        if (std::find(seen.begin(), seen.end(), beside) != seen.end()) continue;
        seen.push_back(beside);
      }
      own.push_back(rank);
    }
    gates.push_back(std::move(own));
  }
}

Group::Adapters Group::adapters(int rank) const {
  const auto r = static_cast<size_t>(rank);
  return {adapter_.data() + adapter_begin_[r], adapter_.data() + adapter_begin_[r + 1]};
}

int Group::channels() const {
  size_t k = 1;
  if (count() > 1)
    for (const auto& g : gates) k = std::max(k, g.size());
  return static_cast<int>(k);
}

int Group::gate(int domain, int channel) const {
  const auto& g = gates[static_cast<size_t>(domain)];
  return g[static_cast<size_t>(channel) % g.size()];
}

std::vector<int> Group::chain(int domain, int first) const {
  std::vector<int> order = domains[static_cast<size_t>(domain)];
  std::rotate(order.begin(), std::find(order.begin(), order.end(), first), order.end());
  return order;
}

int Group::even_size() const {
  for (const auto& d : domains)
    if (d.size() != domains.front().size()) return 0;
  return static_cast<int>(domains.front().size());
}

size_t Group::largest() const {
  size_t most = 0;
  for (const auto& d : domains) most = std::max(most, d.size());
  return most;
}

double Group::domain_Bps() const {
  double sum = 0;
  for (const int r : gates.front()) {
    double own = 0;
    for (const int k : adapters(r))
      own += fabric.link_capacity_Bps(fabric.nic_link_out(ranks[static_cast<size_t>(r)].node, k));
    sum += fabric.host_Bps > 0 ? std::min(own, fabric.host_Bps) : own;
  }
  return sum;
}

// Each in a file of its own.
extern const CollectiveAlgorithm kRing, kTree, kHierarchical, kNvls, kSharp, kDirect, kRecursiveDoubling, kPieces;

const std::vector<CollectiveAlgorithm>& algorithms() {
  static const std::vector<CollectiveAlgorithm> all{kRing,   kHierarchical,      kTree,  kNvls, kSharp,
                                                    kDirect, kRecursiveDoubling, kPieces};
  return all;
}

std::vector<std::string> algorithm_names(const std::vector<CollectiveAlgorithm>& known) {
  std::vector<std::string> names{"auto"};
  for (const CollectiveAlgorithm& a : known) names.emplace_back(a.name);
  return names;
}

bool reduces_or_gathers(Operation op) {
  return op == Operation::all_reduce || op == Operation::reduce_scatter || op == Operation::all_gather;
}

}  // namespace tw::network
