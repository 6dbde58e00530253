#include "network/flows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"

namespace tw::network {
namespace {

int largest_power_of_two(int n) {
  int p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

// In-order tree: the members at even places are leaves.
void link_subtree(int low, int high, int parent, std::vector<int>& parents) {
  if (low >= high) return;
  const int root = low + largest_power_of_two(high - low) - 1;
  parents[static_cast<size_t>(root)] = parent;
  link_subtree(low, root, root, parents);
  link_subtree(root + 1, high, root, parents);
}

int depth_of(const std::vector<int>& parents) {
  int deepest = 0;
  for (size_t i = 0; i < parents.size(); ++i) {
    int d = 0;
    for (int at = static_cast<int>(i); parents[static_cast<size_t>(at)] >= 0; at = parents[static_cast<size_t>(at)])
      ++d;
    deepest = std::max(deepest, d);
  }
  return deepest;
}

struct Group {
  const Fabric& fabric;
  const std::vector<Rank>& ranks;
  std::vector<std::vector<int>> domains;
  std::vector<std::vector<int>> gates;  // per domain: ranks beside different adapters, one for each
  int n() const { return static_cast<int>(ranks.size()); }
  int count() const { return static_cast<int>(domains.size()); }
  int channels() const {
    size_t k = 1;
    if (count() > 1)
      for (const auto& g : gates) k = std::max(k, g.size());
    return static_cast<int>(k);
  }
  int gate(int domain, int channel) const {
    const auto& g = gates[static_cast<size_t>(domain)];
    return g[static_cast<size_t>(channel) % g.size()];
  }
  // Members of a domain in a chain that begins at `first`.
  std::vector<int> chain(int domain, int first) const {
    std::vector<int> order = domains[static_cast<size_t>(domain)];
    std::rotate(order.begin(), std::find(order.begin(), order.end(), first), order.end());
    return order;
  }
  // Members of every domain, when all have the same number; else 0.
  int even_size() const {
    for (const auto& d : domains)
      if (d.size() != domains.front().size()) return 0;
    return static_cast<int>(domains.front().size());
  }
  size_t largest() const {
    size_t most = 0;
    for (const auto& d : domains) most = std::max(most, d.size());
    return most;
  }
};

Group group_of(const Fabric& fabric, const std::vector<Rank>& ranks) {
  Group g{fabric, ranks, by_domain(fabric, ranks), {}};
  for (const auto& domain : g.domains) {
    std::vector<int> gates;
    std::set<std::pair<int, int>> seen;
    for (const int r : domain) {
      const Rank& rank = ranks[static_cast<size_t>(r)];
      const std::vector<int> adapters = adapters_of(fabric, rank);
      if (adapters.empty() || seen.insert({rank.node, adapters.front()}).second) gates.push_back(r);
    }
    g.gates.push_back(std::move(gates));
  }
  return g;
}

// One ring for each adapter; each keeps to its adapter on the way in and out of a domain, and crosses every member.
FlowPlan ring(const Group& g, Operation op) {
  FlowPlan plan;
  const int k = g.channels(), domains = g.count();
  const double turns = op == Operation::all_reduce ? 2 : 1;
  const bool chain_only = op == Operation::broadcast;  // nothing comes back to the root
  const double share = (chain_only ? 1 : bus_factor(op, g.n())) / k;
  for (int c = 0; c < k; ++c)
    for (int d = 0; d < domains; ++d) {
      const std::vector<int> order = g.chain(d, chain_only && d == 0 ? 0 : g.gate(d, c));
      for (size_t i = 0; i + 1 < order.size(); ++i) plan.flows.push_back({order[i], order[i + 1], share});
      if (domains == 1) {
        if (!chain_only) plan.flows.push_back({order.back(), order.front(), share});
        continue;
      }
      const int next = (d + 1) % domains;
      if (chain_only && next == 0) continue;
      const int out = g.gate(d, c);
      if (order.back() != out) plan.flows.push_back({order.back(), out, share});  // over NVLink to the adapter's side
      plan.flows.push_back({out, g.gate(next, c), share});
    }
  const double hops = g.n() - 1;
  plan.rounds.network = domains == 1 ? 0 : turns * std::min<double>(domains, hops);
  plan.rounds.nvlink = turns * hops - plan.rounds.network;
  return plan;
}

void tree_between(const Group& g, int channel, double share, const std::vector<int>& parents, FlowPlan& plan) {
  for (int d = 0; d < g.count(); ++d) {
    const int parent = parents[static_cast<size_t>(d)];
    if (parent < 0) continue;
    plan.flows.push_back({g.gate(d, channel), g.gate(parent, channel), share});
    plan.flows.push_back({g.gate(parent, channel), g.gate(d, channel), share});
  }
}

// Two trees between the domains, each with half of the data; inside a domain a chain.
FlowPlan tree(const Group& g) {
  FlowPlan plan;
  plan.rounds.tree = true;
  const int k = g.channels();
  const std::vector<int> first = tree_parents(g.count(), false), second = tree_parents(g.count(), true);
  for (int c = 0; c < k; ++c) {
    for (int d = 0; d < g.count(); ++d) {
      const std::vector<int> order = g.chain(d, g.gate(d, c));
      for (size_t i = 0; i + 1 < order.size(); ++i) {
        plan.flows.push_back({order[i + 1], order[i], 1.0 / k});
        plan.flows.push_back({order[i], order[i + 1], 1.0 / k});
      }
    }
    tree_between(g, c, 0.5 / k, first, plan);
    tree_between(g, c, 0.5 / k, second, plan);
  }
  plan.rounds.network = 2.0 * std::max(depth_of(first), depth_of(second));
  plan.rounds.nvlink = 2.0 * static_cast<double>(g.largest() - 1);
  return plan;
}

void exchange_inside(const Group& g, double share, FlowPlan& plan) {
  for (const auto& domain : g.domains)
    for (const int a : domain)
      for (const int b : domain)
        if (a != b) plan.flows.push_back({a, b, share});
}

// Reduce-scatter inside the domains, a ring for each member over its like in the other domains, all-gather inside.
// Chunk by chunk, so that the phases overlap.
FlowPlan hierarchical(const Group& g, Operation op) {
  FlowPlan plan;
  const int m = g.count(), size = g.even_size();
  const double turns = op == Operation::all_reduce ? 2 : 1;
  if (op == Operation::all_to_all) {
    exchange_inside(g, static_cast<double>(m) / g.n(), plan);
    for (int a = 0; a < m; ++a)
      for (int b = 0; b < m; ++b)
        for (size_t l = 0; a != b && l < static_cast<size_t>(size); ++l)
          plan.flows.push_back({g.domains[static_cast<size_t>(a)][l], g.domains[static_cast<size_t>(b)][l],
                                static_cast<double>(size) / g.n()});
    plan.rounds.nvlink = size > 1 ? 1 : 0;
    plan.rounds.network = 1;
    return plan;
  }
  exchange_inside(g, turns / size, plan);
  for (int d = 0; d < m; ++d)
    for (size_t l = 0; l < static_cast<size_t>(size); ++l)
      plan.flows.push_back({g.domains[static_cast<size_t>(d)][l], g.domains[static_cast<size_t>((d + 1) % m)][l],
                            turns * (m - 1) / m / size});
  plan.rounds.nvlink = size > 1 ? turns : 0;
  plan.rounds.network = turns * (m - 1);
  return plan;
}

// Rings along the dimensions of a torus: the buffer in as many parts as there are directions, each part reduced along
// all dimensions in turn, beginning with its own, and gathered on the way back; so all cables of a node are busy.
FlowPlan torus_rings(const Fabric& fabric, Operation op) {
  FlowPlan plan;
  const std::vector<int>& sizes = fabric.type.dimensions;
  const size_t dimensions = sizes.size();
  const double turns = op == Operation::all_reduce ? 2 : 1;
  std::vector<double> along(dimensions, 0);  // sent each way along a dimension
  for (size_t first = 0; first < dimensions; ++first) {
    double part = 0.5 / static_cast<double>(dimensions);
    for (size_t j = 0; j < dimensions; ++j) {
      const size_t d = (first + j) % dimensions;
      along[d] += turns * part * (sizes[d] - 1) / sizes[d];
      part /= sizes[d];
    }
  }
  int stride = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    for (int n = 0; n < fabric.node_count && sizes[d] > 1; ++n) {
      const int x = n / stride % sizes[d];
      plan.flows.push_back({n, n + ((x + 1) % sizes[d] - x) * stride, along[d]});
      plan.flows.push_back({n, n + ((x + sizes[d] - 1) % sizes[d] - x) * stride, along[d]});
    }
    stride *= sizes[d];
    plan.rounds.network += turns * (sizes[d] - 1);
  }
  return plan;
}

// Reduction and multicast in the NVLink switches; between domains two trees for each member (NCCL's NVLSTree).
FlowPlan nvls(const Group& g, Operation op) {
  FlowPlan plan;
  const int size = g.even_size();
  const double part = 1.0 / size;
  // Reduction: the switch reads all members, one gets the sum. Multicast: one sends, all get it.
  const bool reduces = op != Operation::all_gather, spreads = op != Operation::reduce_scatter;
  plan.nvls_out = (reduces ? 1 : 0) + (spreads ? part : 0);
  plan.nvls_in = (reduces ? part : 0) + (spreads ? 1 : 0);
  plan.rounds.nvls = 1;
  if (g.count() == 1) return plan;
  plan.rounds.tree = true;
  const std::vector<int> first = tree_parents(g.count(), false), second = tree_parents(g.count(), true);
  for (const auto* parents : {&first, &second})
    for (int d = 0; d < g.count(); ++d) {
      const int parent = (*parents)[static_cast<size_t>(d)];
      for (size_t l = 0; parent >= 0 && l < static_cast<size_t>(size); ++l) {
        const int a = g.domains[static_cast<size_t>(d)][l], b = g.domains[static_cast<size_t>(parent)][l];
        plan.flows.push_back({a, b, part / 2});
        plan.flows.push_back({b, a, part / 2});
      }
    }
  plan.rounds.network = 2.0 * std::max(depth_of(first), depth_of(second));
  return plan;
}

FlowPlan sharp(const Group& g) {
  FlowPlan plan;
  const int size = g.even_size();
  if (size > 1) exchange_inside(g, 2.0 / size, plan);
  plan.sharp_share = 1.0 / size;
  plan.rounds.nvlink = size > 1 ? 2 : 0;
  plan.rounds.sharp = 1;
  return plan;
}

FlowPlan direct(const Group& g, Operation op) {
  FlowPlan plan;
  plan.rounds.network = g.count() > 1 ? 1 : 0;
  plan.rounds.nvlink = g.count() > 1 ? 0 : 1;
  if (op == Operation::all_to_all) {
    plan.all_pairs = true;
  } else if (g.n() == 2) {
    plan.flows.push_back({0, 1, 1});
  } else {
    for (int r = 0; r < g.n(); ++r) plan.flows.push_back({r, (r + 1) % g.n(), 1});
  }
  return plan;
}

[[noreturn]] void refuse(Operation op, Algorithm a, const std::string& why) {
  throw InputError({{"", "", fmt::format("{} cannot run as {}: {}", choice_name(op), choice_name(a), why), ""}});
}

}  // namespace

std::vector<int> tree_parents(int count, bool second) {
  std::vector<int> parents(static_cast<size_t>(count), -1);
  link_subtree(0, count, -1, parents);
  if (!second) return parents;
  // Mirrored for an even number of members, shifted by one for an odd one: both turn leaves into inner members.
  const auto other = [count](int i) { return count % 2 == 0 ? count - 1 - i : (i + 1) % count; };
  std::vector<int> moved(parents.size(), -1);
  for (int i = 0; i < count; ++i) {
    const int p = parents[static_cast<size_t>(i)];
    moved[static_cast<size_t>(other(i))] = p < 0 ? -1 : other(p);
  }
  return moved;
}

std::vector<std::vector<int>> by_domain(const Fabric& fabric, const std::vector<Rank>& ranks) {
  std::map<int, size_t> place;
  std::vector<std::vector<int>> domains;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto [it, fresh] = place.try_emplace(ranks[r].node / fabric.nodes_per_domain, domains.size());
    if (fresh) domains.emplace_back();
    domains[it->second].push_back(static_cast<int>(r));
  }
  return domains;
}

bool covers_torus(const Fabric& fabric, const std::vector<Rank>& ranks) {
  if (fabric.type.dimensions.empty() || fabric.nodes_per_domain > 1 ||
      ranks.size() != static_cast<size_t>(fabric.node_count))
    return false;
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].node != static_cast<int>(r)) return false;
  return true;
}

std::vector<int> adapters_of(const Fabric& fabric, const Rank& rank) {
  std::vector<int> own;
  if (fabric.nics == 0) return own;
  const int first = fabric.nic_of(rank.gpu), count = fabric.nics_of(rank.gpu);
  for (int k = first; k < first + count; ++k)
    if (fabric.nic_alive(rank.node, k)) own.push_back(k);
  if (!own.empty()) return own;
  std::vector<int> alive;
  for (int k = 0; k < fabric.nics; ++k)
    if (fabric.nic_alive(rank.node, k)) alive.push_back(k);
  if (alive.empty()) return own;
  return {alive[static_cast<size_t>(first) % alive.size()]};
}

FlowPlan plan_flows(const Fabric& fabric, Operation op, Algorithm algorithm, const std::vector<Rank>& ranks) {
  const Group g = group_of(fabric, ranks);
  const bool reduces = op == Operation::all_reduce || op == Operation::reduce_scatter || op == Operation::all_gather;
  switch (algorithm) {
    case Algorithm::ring:
      if (!reduces && op != Operation::broadcast) refuse(op, algorithm, "it is sent directly");
      return ring(g, op);
    case Algorithm::tree:
      if (op != Operation::all_reduce) refuse(op, algorithm, "trees are for all-reduce");
      return tree(g);
    case Algorithm::hierarchical:
      if (!reduces && op != Operation::all_to_all) refuse(op, algorithm, "there is no such algorithm");
      if (g.even_size() == 0) refuse(op, algorithm, "the ranks are not spread evenly over the nodes");
      if (reduces && covers_torus(fabric, ranks)) return torus_rings(fabric, op);
      return g.count() == 1 ? (op == Operation::all_to_all ? direct(g, op) : ring(g, op)) : hierarchical(g, op);
    case Algorithm::nvls:
      if (!reduces || (g.count() > 1 && op != Operation::all_reduce))
        refuse(op, algorithm, "there is no such algorithm");
      if (g.even_size() == 0) refuse(op, algorithm, "the ranks are not spread evenly over the nodes");
      return nvls(g, op);
    case Algorithm::sharp:
      if (op != Operation::all_reduce || g.count() == 1) refuse(op, algorithm, "it reduces between nodes");
      if (g.even_size() == 0) refuse(op, algorithm, "the ranks are not spread evenly over the nodes");
      return sharp(g);
    case Algorithm::direct:
      if (op != Operation::all_to_all && op != Operation::send_recv) refuse(op, algorithm, "it goes over all ranks");
      return direct(g, op);
    case Algorithm::automatic:
      break;
  }
  refuse(op, algorithm, "an algorithm must be named");
}

}  // namespace tw::network
