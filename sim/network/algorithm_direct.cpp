// Point to point: all-to-all as a message from every rank to every other; send-recv one way between two ranks, else
// from each to the next.
#include <algorithm>

#include "network/algorithm.hpp"
#include "network/link_loads.hpp"

namespace tw::network {

namespace {

std::string refusal(const Group&, Operation op) {
  return op == Operation::all_to_all || op == Operation::send_recv ? "" : "it goes over all ranks";
}

FlowPlan plan(const Group& g, Operation op) {
  const bool apart = op == Operation::all_to_all && g.count() > 1 && rails_apart(g.fabric, g.ranks.front().node);
  if (apart && g.even_size() > 1) return along_rails(g);  // as NCCL's messages go
  Stage all;
  all.network = g.count() > 1 ? 1 : 0;
  all.nvlink = g.count() > 1 ? 0 : 1;
  if (op == Operation::all_to_all) {
    // Every rank pays a message to every other; those inside its domain go at the same time.
    size_t smallest = g.ranks.size();
    for (const auto& domain : g.domains) smallest = std::min(smallest, domain.size());
    (g.count() > 1 ? all.network : all.nvlink) =
        static_cast<double>(g.count() > 1 ? g.ranks.size() - smallest : g.ranks.size() - 1);
    if (apart) {  // one to each domain, with what mates sent along
      all.network = g.count() - 1;
      all.nvlink = static_cast<double>(g.largest()) - 1;
    }
    Clique everyone{{}, 1.0 / g.n()};
    for (int r = 0; r < g.n(); ++r) everyone.members.push_back(r);
    all.cliques.push_back(std::move(everyone));
  } else {
    for (int r = 0; r < (g.n() == 2 ? 1 : g.n()); ++r) all.flows.push_back({r, (r + 1) % g.n(), 1});
  }
  FlowPlan plan{{std::move(all)}, "p2p"};
  plan.single_messages = op == Operation::send_recv;
  return plan;
}

bool offered(const Group& g, Operation op, const CollectiveOptions&) {
  return refusal(g, op).empty();
}

}  // namespace

extern const CollectiveAlgorithm kDirect{"direct", refusal, plan, offered};

}  // namespace tw::network
