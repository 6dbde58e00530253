// Reduce-scatter inside the domains, a ring for each member over its like in the other domains, all-gather inside; an
// all-to-all first inside, then along the rails. On a torus rings along its dimensions.
#include "network/algorithm.hpp"

namespace tw::network {

// What is left of it inside one domain.
extern const CollectiveAlgorithm kRing, kDirect;

namespace {

// Is the group one rank for every node of a torus, in order?
bool covers_torus(const Group& g) {
  const Fabric& f = g.fabric;
  if (f.type.dimensions.empty() || f.nodes_per_domain > 1 || g.n() != f.node_count) return false;
  for (int r = 0; r < g.n(); ++r)
    if (g.ranks[static_cast<size_t>(r)].node != r) return false;
  return true;
}

std::string refusal(const Group& g, Operation op) {
  if (!reduces_or_gathers(op) && op != Operation::all_to_all) return "there is no such algorithm";
  return g.even_size() == 0 ? kUneven : "";
}

Stage exchange_inside(const Group& g, double share) {
  Stage inside;
  for (const auto& domain : g.domains) inside.cliques.push_back({domain, share});
  inside.nvlink = 1;
  return inside;
}

// The buffer in as many parts as there are directions, each part reduced along all dimensions in turn, beginning with
// its own, and gathered on the way back; so all cables of a node are busy.
FlowPlan torus_rings(const Fabric& fabric, Operation op) {
  Stage rings;
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
    const int channel = 2 * static_cast<int>(d);
    for (int n = 0; n < fabric.node_count && sizes[d] > 1; ++n) {
      const int x = n / stride % sizes[d];
      rings.flows.push_back({n, n + ((x + 1) % sizes[d] - x) * stride, along[d], channel});
      rings.flows.push_back({n, n + ((x + sizes[d] - 1) % sizes[d] - x) * stride, along[d], channel + 1});
    }
    stride *= sizes[d];
    rings.network += turns * (sizes[d] - 1);
  }
  return {{std::move(rings)}, "ring"};
}

FlowPlan plan(const Group& g, Operation op) {
  if (reduces_or_gathers(op) && covers_torus(g)) return torus_rings(g.fabric, op);
  if (g.count() == 1) return op == Operation::all_to_all ? kDirect.plan(g, op) : kRing.plan(g, op);
  if (op == Operation::all_to_all) return along_rails(g);
  const int m = g.count(), size = g.even_size();
  const double turns = op == Operation::all_reduce ? 2 : 1;
  FlowPlan plan;
  if (size > 1 && op != Operation::all_gather) plan.stages.push_back(exchange_inside(g, 1.0 / size));
  Stage rails;
  for (int d = 0; d < m; ++d)
    for (int l = 0; l < size; ++l)
      rails.flows.push_back({g.domains[static_cast<size_t>(d)][static_cast<size_t>(l)],
                             g.domains[static_cast<size_t>((d + 1) % m)][static_cast<size_t>(l)],
                             turns * (m - 1) / m / size, l});
  rails.network = turns * (m - 1);
  plan.stages.push_back(std::move(rails));
  if (size > 1 && op != Operation::reduce_scatter) plan.stages.push_back(exchange_inside(g, 1.0 / size));
  return plan;
}

// There is no such choice in NCCL, which knows no torus.
bool offered(const Group& g, Operation op, const CollectiveOptions&) {
  return reduces_or_gathers(op) && covers_torus(g);
}

}  // namespace

FlowPlan along_rails(const Group& g) {
  const auto size = static_cast<size_t>(g.even_size());
  FlowPlan plan;
  plan.tuning = "p2p";
  if (size > 1) {
    plan.stages.push_back(exchange_inside(g, static_cast<double>(g.count()) / g.n()));
    plan.stages.front().nvlink = static_cast<double>(size - 1);
  }
  Stage rails;
  for (size_t l = 0; l < size; ++l) {
    Clique rail{{}, static_cast<double>(size) / g.n()};
    for (const auto& domain : g.domains) rail.members.push_back(domain[l]);
    rails.cliques.push_back(std::move(rail));
  }
  rails.network = g.count() - 1;
  plan.stages.push_back(std::move(rails));
  return plan;
}

extern const CollectiveAlgorithm kHierarchical{"hierarchical", refusal, plan, offered};

}  // namespace tw::network
