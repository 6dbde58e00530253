// Two trees between the domains, each with half of the data; inside a domain a chain.
#include <algorithm>

#include "network/algorithm.hpp"

namespace tw::network {
namespace {

std::string refusal(const Group&, Operation op) {
  return op == Operation::all_reduce ? "" : "trees are for all-reduce";
}

FlowPlan plan(const Group& g, Operation) {
  Stage up, down;
  up.relays = down.relays = true;
  const int k = g.channels();
  const double share = 0.5 / k;
  const auto both = [&](int below, int above, int channel) {
    up.flows.push_back({below, above, share, channel});
    down.flows.push_back({above, below, share, channel});
  };
  for (Stage* s : {&up, &down}) s->flows.reserve(2 * static_cast<size_t>(k) * static_cast<size_t>(g.n()));
  int depth = 0;
  for (const bool second : {false, true}) {
    const std::vector<int> parents = tree_parents(g.count(), second);
    depth = std::max(depth, depth_of(parents));
    for (int c = 0; c < k; ++c)
      for (int d = 0; d < g.count(); ++d) {
        const int channel = 2 * c + (second ? 1 : 0), parent = parents[static_cast<size_t>(d)];
        const std::vector<int> order = g.chain(d, g.gate(d, c));
        for (size_t i = 0; i + 1 < order.size(); ++i) both(order[i + 1], order[i], channel);
        if (parent >= 0) both(order.front(), g.gate(parent, c), channel);
      }
  }
  up.network = down.network = depth;
  up.nvlink = down.nvlink = static_cast<double>(g.largest() - 1);
  FlowPlan plan;
  plan.tuning = "tree";
  plan.stages.push_back(std::move(up));  // millions of flows: not copied
  plan.stages.push_back(std::move(down));
  return plan;
}

bool offered(const Group& g, Operation op, const CollectiveOptions&) {
  return refusal(g, op).empty();
}

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

}  // namespace

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

extern const CollectiveAlgorithm kTree{"tree", refusal, plan, offered};

}  // namespace tw::network
