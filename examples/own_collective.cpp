// A collective algorithm from outside: an all-gather in which every rank sends its part straight to all others. It is
// named beside those of the program, and its time, links and bound follow from its flows.
#include <cstdio>

#include "core/document.hpp"
#include "network/collective.hpp"
#include "study/library.hpp"
#include "topology/fabric.hpp"
#include "topology/placement.hpp"

using namespace tw::network;

namespace {

std::string refusal(const Group&, Operation operation) {
  return operation == Operation::all_gather ? "" : "it gathers only";
}

FlowPlan plan(const Group& group, Operation) {
  Stage stage;
  Clique everyone{{}, 1.0 / group.n()};  // a rank's part is 1 / n of the full buffer
  for (int rank = 0; rank < group.n(); ++rank) everyone.members.push_back(rank);
  stage.cliques.push_back(everyone);
  stage.network = 1;  // all messages leave at once
  return {{stage}, "p2p", true};
}

bool offered(const Group&, Operation operation, const CollectiveOptions&) {
  return operation == Operation::all_gather;
}

}  // namespace

int main() {
  tw::use_installed_package();
  const auto cluster = tw::load<tw::Cluster>("topologies/smc-h100.json");
  const tw::Fabric fabric = tw::build_fabric(cluster);
  const std::vector<Rank> ranks = ranks_of(fabric, tw::place(fabric, tw::Placement::packed, 4));
  std::vector<CollectiveAlgorithm> known = algorithms();
  known.push_back({"straight", refusal, plan, offered});
  CollectiveOptions options;
  options.known = &known;
  for (const char* name : {"ring", "straight"}) {
    options.algorithm = name;
    const CollectiveCost cost = Collectives(fabric, options).cost(Operation::all_gather, ranks, 1e6);
    std::printf("%-9s %7.1f us, bound %7.1f us by %s\n", name, 1e6 * cost.time_s, 1e6 * cost.bound_s,
                cost.bottleneck.c_str());
  }
}
