// A collective algorithm is one description and one line in a table; a library of collectives is data.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "core/document.hpp"
#include "network/collective.hpp"
#include "network/message_level.hpp"
#include "network/process.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::flat_cluster;
using tw::test::reference_cluster;

namespace {

// Everybody sends to the first, who adds up and sends back.
std::string star_refusal(const Group& g, Operation op) {
  if (op != Operation::all_reduce) return "a star only adds up";
  return g.n() > 64 ? "a star of more than 64" : "";
}
FlowPlan star_plan(const Group& g, Operation) {
  Stage in, out;
  for (int r = 1; r < g.n(); ++r) {
    in.flows.push_back({r, 0, 1});
    out.flows.push_back({0, r, 1});
  }
  in.network = out.network = 1;
  return {{in, out}, "tree"};
}
bool star_offered(const Group& g, Operation op, const CollectiveOptions&) {
  return star_refusal(g, op).empty();
}
const CollectiveAlgorithm kStar{"star", star_refusal, star_plan, star_offered};

}  // namespace

TEST_CASE("a new algorithm is one description and one line: costs, choice, refusal and messages follow") {
  std::vector<CollectiveAlgorithm> known = algorithms();
  known.push_back(kStar);
  CollectiveOptions o;
  o.known = &known;
  o.algorithm = "star";
  o.protocol = Protocol::simple;
  const Fabric f = build_fabric(flat_cluster(5));
  const auto ranks = ranks_of(f, place_packed(f, 5));
  const CollectiveCost c = Collectives(f, o).cost(Operation::all_reduce, ranks, 1e9);
  CHECK(c.algorithm == "star");
  // Four buffers come into one adapter of 50 GB/s, at 92 % (the row of trees); two messages over two cables.
  CHECK(c.time_s - c.load.latency_s == Approx(4 * 1e9 / 50e9 / 0.92).epsilon(1e-12));
  CHECK(c.load.latency_s == Approx(8.4e-6 + 2 * (12.8e-6 + 2 * 0.6e-6)).epsilon(1e-12));
  CHECK_THROWS_WITH(Collectives(f, o).cost(Operation::all_gather, ranks, 1e9),
                    Catch::Contains("all-gather cannot run as star: a star only adds up"));
  const ChildResult r =
      in_child([&] { return fmt::format("{:.17g}", message_level_s(f, Operation::all_reduce, ranks, 1e9, o)); });
  INFO(r.error);
  // Both directions of the adapter are busy at once, piece by piece; each piece waits for its messages.
  CHECK(std::stod(r.value) > c.time_s);
  CHECK(std::stod(r.value) < c.time_s * 1.1);
  o.algorithm = "auto";
  CHECK(Collectives(f, o).cost(Operation::all_reduce, ranks, 8).time_s <= c.load.latency_s * 1.001);
  o.algorithm = "stra";
  CHECK_THROWS_WITH(Collectives(f, o).cost(Operation::all_reduce, ranks, 8),
                    Catch::Contains("there is no algorithm \"stra\"") && Catch::Contains("star"));
}

TEST_CASE("a library of collectives is data: its latencies and what it lacks") {
  CollectiveLibrary slow = default_library();
  slow.name = "slow";
  slow.algorithms["ring"].simple->base = seconds(1);
  slow.algorithms["tree"].ll.reset();
  slow.algorithms.erase("collnet");
  CollectiveOptions o;
  o.library = &slow;
  o.algorithm = "ring";
  o.protocol = Protocol::simple;
  const Fabric f = build_fabric(reference_cluster());
  const auto ranks = ranks_of(f, place_packed(f, 2));
  CHECK(Collectives(f, o).cost(Operation::all_reduce, ranks, 1e6).time_s > 1);
  o.algorithm = "tree";
  o.protocol = Protocol::ll;
  CHECK_THROWS_WITH(Collectives(f, o).cost(Operation::all_reduce, ranks, 1e6),
                    Catch::Contains("slow has no protocol ll for tree"));
  o.algorithm = "sharp";
  CHECK_THROWS_WITH(Collectives(f, o).cost(Operation::all_reduce, ranks, 1e6), Catch::Contains("\"collnet\""));
}

TEST_CASE("libraries that are shipped can be read, and an older one does without NVLink multicast") {
  const Fabric f = build_fabric(reference_cluster());
  for (const char* name : {"nccl-2.27", "nccl-2.12", "rccl-2.22-mi300x"}) {
    const auto library = load<CollectiveLibrary>(std::string("models/collectives/") + name + ".json");
    INFO(name);
    CollectiveOptions o;
    o.library = &library;
    o.nvls = o.explain = true;
    const CollectiveCost c = Collectives(f, o).cost(Operation::all_reduce, ranks_of(f, place_packed(f, 1)), 1e9);
    CHECK((c.algorithm == "nvls") == (std::string(name) == "nccl-2.27"));
    for (const auto& [text, op] : Choices<Operation>::table()) {
      const CollectiveCost wide = Collectives(f, o).cost(op, ranks_of(f, place_packed(f, 4)), 1e9);
      CHECK(wide.time_s >= wide.bound_s);
    }
  }
}
