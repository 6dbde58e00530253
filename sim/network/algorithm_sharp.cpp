// Reduction in the network switches: each member's share goes up once, summed wherever streams of a rail meet, and
// comes back once.
#include <algorithm>
#include <set>

#include "network/algorithm.hpp"
#include "network/collective.hpp"

namespace tw::network {
namespace {

// Can what members below several switches send be summed above these?
bool meets_above(const Group& g) {
  const Fabric& f = g.fabric;
  std::set<int> leaves;
  for (int r = 0; r < g.n(); ++r)
    for (const int k : g.adapters(r)) leaves.insert(f.nic_switch(g.ranks[static_cast<size_t>(r)].node, k));
  return leaves.size() < 2 || std::all_of(leaves.begin(), leaves.end(), [&](int leaf) {
           const auto& cables = f.cables_at[static_cast<size_t>(leaf)];
           return std::any_of(cables.begin(), cables.end(), [&](int id) { return f.goes_up(id, leaf); });
         });
}

std::string refusal(const Group& g, Operation op) {
  if (op != Operation::all_reduce || g.count() == 1) return "it reduces between nodes";
  if (g.even_size() == 0) return kUneven;
  return meets_above(g) ? "" : "SHARP needs levels of switches to reduce in";
}

FlowPlan plan(const Group& g, Operation) {
  const int size = g.even_size();
  FlowPlan plan;
  plan.tuning = "collnet";
  Stage inside, up, down;
  for (const auto& domain : g.domains) {
    if (size > 1) inside.cliques.push_back({domain, 1.0 / size});
    for (int l = 0; l < size; ++l) {
      up.flows.push_back({domain[static_cast<size_t>(l)], kReduction, 1.0 / size, l});
      down.flows.push_back({kReduction, domain[static_cast<size_t>(l)], 1.0 / size, l});
    }
  }
  inside.nvlink = up.network = down.network = 1;
  if (size > 1) plan.stages.push_back(inside);
  plan.stages.push_back(std::move(up));
  plan.stages.push_back(std::move(down));
  if (size > 1) plan.stages.push_back(std::move(inside));
  return plan;
}

bool offered(const Group& g, Operation op, const CollectiveOptions& options) {
  return options.sharp && refusal(g, op).empty();
}

}  // namespace

extern const CollectiveAlgorithm kSharp{"sharp", refusal, plan, offered, true};

}  // namespace tw::network
