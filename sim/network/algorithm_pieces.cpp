// Each rank owns a piece of the buffer: all send theirs to its owner, who adds up, and it sends the sum to all. What
// oneCCL calls nreduce for all-reduce and naive for all-gather.
#include <algorithm>

#include "network/algorithm.hpp"
#include "network/link_loads.hpp"

namespace tw::network {
namespace {

std::string refusal(const Group&, Operation op) {
  return reduces_or_gathers(op) ? "" : "there is nothing to own";
}

bool offered(const Group&, Operation, const CollectiveOptions&) {
  return false;  // unless the library's table names it
}

FlowPlan plan(const Group& g, Operation op) {
  Stage everyone;
  Clique all{{}, 1.0 / g.n()};
  for (int r = 0; r < g.n(); ++r) all.members.push_back(r);
  size_t smallest = g.ranks.size();
  for (const auto& domain : g.domains) smallest = std::min(smallest, domain.size());
  // Those inside a domain go at the same time.
  (g.count() > 1 ? everyone.network : everyone.nvlink) =
      static_cast<double>(g.count() > 1 ? g.ranks.size() - smallest : g.ranks.size() - 1);
  if (g.count() > 1 && rails_apart(g.fabric, g.ranks.front().node)) {  // one to each domain, with what mates sent along
    everyone.network = g.count() - 1;
    everyone.nvlink = static_cast<double>(g.largest()) - 1;
  }
  everyone.cliques.push_back(std::move(all));
  FlowPlan plan;
  plan.tuning = "p2p";
  if (op == Operation::all_reduce) plan.stages.push_back(everyone);
  plan.stages.push_back(std::move(everyone));
  return plan;
}

}  // namespace

extern const CollectiveAlgorithm kPieces{"pieces", refusal, plan, offered};

}  // namespace tw::network
