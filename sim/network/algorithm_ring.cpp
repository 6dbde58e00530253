// One ring for each adapter; each keeps to its adapter on the way in and out of a domain, and crosses every member.
#include <algorithm>

#include "network/algorithm.hpp"
#include "network/domain_speeds.hpp"

namespace tw::network {
namespace {

std::string refusal(const Group&, Operation op) {
  return reduces_or_gathers(op) || op == Operation::broadcast ? "" : "it is sent directly";
}

FlowPlan plan(const Group& g, Operation op) {
  Stage ring;
  const int k = g.channels(), domains = g.count();
  const double turns = op == Operation::all_reduce ? 2 : 1;
  ring.relays = op == Operation::broadcast;  // a chain: nothing comes back to the root
  const double share = (ring.relays ? 1 : bus_factor(op, g.n())) / k;
  ring.flows.reserve(static_cast<size_t>(k) * static_cast<size_t>(g.n()));
  for (int c = 0; c < k; ++c)
    for (int d = 0; d < domains; ++d) {
      const std::vector<int> order = g.chain(d, ring.relays && d == 0 ? 0 : g.gate(d, c));
      for (size_t i = 0; i + 1 < order.size(); ++i) ring.flows.push_back({order[i], order[i + 1], share, c});
      const int next = (d + 1) % domains;
      if (ring.relays && next == 0) continue;
      const int to = domains == 1 ? order.front() : g.gate(next, c);
      ring.flows.push_back({order.back(), to, share, c, domains == 1 ? -1 : g.gate(d, c)});
    }
  const double hops = g.n() - 1;
  ring.network = domains == 1 ? 0 : turns * std::min<double>(ring.relays ? domains - 1 : domains, hops);
  ring.nvlink = turns * hops - ring.network;
  FlowPlan plan;
  plan.stages.push_back(std::move(ring));
  return plan;
}

bool offered(const Group& g, Operation op, const CollectiveOptions&) {
  return refusal(g, op).empty();
}

}  // namespace

extern const CollectiveAlgorithm kRing{"ring", refusal, plan, offered};

}  // namespace tw::network
