// Recursive doubling: pairs of ranks at distances that double exchange whole buffers, in as many rounds as the number
// of ranks has bits (Thakur, Rabenseifner and Gropp 2005). Ranks beyond a power of two hand their buffers to a
// neighbour before and get the sum after.
#include <bit>

#include "network/algorithm.hpp"

namespace tw::network {
namespace {

std::string refusal(const Group&, Operation op) {
  return op == Operation::all_reduce ? "" : "it is for all-reduce";
}

// Named by the table of a library that has it (LibraryChoice); NCCL and RCCL do not.
bool offered(const Group&, Operation, const CollectiveOptions&) {
  return false;
}

// One message each way in a round; a round with any message between domains lasts as long as that. All rounds are one
// stage, as a ring's are: in each of them a rank sends its part to every partner.
FlowPlan plan(const Group& g, Operation) {
  const int n = g.n();
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int beyond = n - power;  // of the first 2 * beyond ranks the even ones
  const auto rank = [&](int place) { return place < beyond ? 2 * place + 1 : place + beyond; };
  Stage all;
  bool between = false;
  const auto send = [&](int from, int to) {
    all.flows.push_back({from, to, 1});
    between = between || g.domain_of(from) != g.domain_of(to);
  };
  const auto count = [&](double rounds) {
    (between ? all.network : all.nvlink) += rounds;
    between = false;
  };
  for (int i = 0; i < beyond; ++i) send(2 * i, 2 * i + 1), send(2 * i + 1, 2 * i);
  if (beyond > 0) count(2);
  for (int d = 1; d < power; d *= 2) {
    for (int place = 0; place < power; ++place) send(rank(place), rank(place ^ d));
    count(1);
  }
  FlowPlan made;
  made.stages.push_back(std::move(all));
  return made;
}

}  // namespace

extern const CollectiveAlgorithm kRecursiveDoubling{"recursive_doubling", refusal, plan, offered};

}  // namespace tw::network
