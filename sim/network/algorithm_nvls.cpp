// Reduction and multicast in the NVLink switches; between domains two trees for each member (NCCL's NVLSTree).
#include <algorithm>

#include "network/algorithm.hpp"
#include "network/collective.hpp"

namespace tw::network {
namespace {

std::string refusal(const Group& g, Operation op) {
  if (!reduces_or_gathers(op) || (g.count() > 1 && op != Operation::all_reduce)) return "there is no such algorithm";
  if (g.fabric.nvlink.island > 0) return "NVLink has no switch here";
  return g.even_size() == 0 ? kUneven : "";
}

// The switch reads all members and one gets the sum, or one sends and all get it.
void through_switch(const Group& g, double out, double in, FlowPlan& plan) {
  Stage up, down;
  for (int d = 0; d < g.count(); ++d)
    for (const int r : g.domains[static_cast<size_t>(d)]) {
      up.flows.push_back({r, nvlink_switch(d), out});
      down.flows.push_back({nvlink_switch(d), r, in});
    }
  plan.stages.push_back(std::move(up));
  plan.stages.push_back(std::move(down));
}

FlowPlan plan(const Group& g, Operation op) {
  const int size = g.even_size();
  const double part = 1.0 / size;
  FlowPlan plan;
  plan.tuning = g.count() == 1 ? "nvls" : "nvls_tree";
  if (op != Operation::all_gather) through_switch(g, 1, part, plan);
  if (g.count() > 1) {
    Stage up, down;
    up.relays = down.relays = true;
    for (const bool second : {false, true}) {
      const std::vector<int> parents = tree_parents(g.count(), second);
      up.network = down.network = std::max<double>(up.network, depth_of(parents));
      for (int d = 0; d < g.count(); ++d)
        for (int l = 0; l < size && parents[static_cast<size_t>(d)] >= 0; ++l) {
          const int a = g.domains[static_cast<size_t>(d)][static_cast<size_t>(l)];
          const int b = g.domains[static_cast<size_t>(parents[static_cast<size_t>(d)])][static_cast<size_t>(l)];
          up.flows.push_back({a, b, part / 2, 2 * l + (second ? 1 : 0)});
          down.flows.push_back({b, a, part / 2, 2 * l + (second ? 1 : 0)});
        }
    }
    plan.stages.push_back(std::move(up));
    plan.stages.push_back(std::move(down));
  }
  if (op != Operation::reduce_scatter) through_switch(g, part, 1, plan);
  plan.stages.front().nvlink = 1;  // the library counts one phase for both
  return plan;
}

bool offered(const Group& g, Operation op, const CollectiveOptions& options) {
  return options.nvls && op == Operation::all_reduce && refusal(g, op).empty();
}

}  // namespace

extern const CollectiveAlgorithm kNvls{"nvls", refusal, plan, offered, true};

}  // namespace tw::network
