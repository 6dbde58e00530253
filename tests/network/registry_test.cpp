// A collective algorithm is one description and one line in a table; a library of collectives is data.
#include <fmt/format.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "../topology/clusters.hpp"
#include "core/document.hpp"
#include "hardware/accelerator.hpp"
#include "network/collective.hpp"
#include "network/message_level.hpp"
#include "network/process.hpp"
#include "topology/placement.hpp"
#include "workload/software.hpp"

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
  for (const char* name :
       {"nccl-2.27", "nccl-2.12", "rccl-2.22-mi300x", "oneccl-2021-max", "oneccl-2021-host", "xla-tpu"}) {
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

TEST_CASE("recursive doubling and pieces take what their closed forms say, for any number of ranks") {
  constexpr double bytes = 1e9, Bps = 50e9, message_s = 12.8e-6 + 2 * 0.6e-6;  // two cables to the leaf and back
  for (int n = 2; n <= 17; ++n) {
    const Fabric f = build_fabric(flat_cluster(n));
    const auto ranks = ranks_of(f, place_packed(f, n));
    const double power = std::bit_floor(static_cast<unsigned>(n)), rounds = std::log2(power);
    const double beyond = n > power ? 1 : 0;  // ranks beyond a power of two: a buffer before, a buffer after
    const auto cost = [&](const char* name) {
      CollectiveOptions o;
      o.algorithm = name;
      o.protocol = Protocol::simple;
      return Collectives(f, o).cost(Operation::all_reduce, ranks, bytes);
    };
    INFO(n << " ranks");
    const CollectiveCost doubling = cost("recursive_doubling"), pieces = cost("pieces");
    CHECK(doubling.load.latency_s == Approx(8.4e-6 + (rounds + 2 * beyond) * message_s).epsilon(1e-12));
    CHECK(doubling.time_s - doubling.load.latency_s == Approx((rounds + beyond) * bytes / Bps).epsilon(1e-12));
    CHECK(pieces.load.latency_s == Approx(8.4e-6 + std::ceil(2 * (n - 1) / 8.0) * message_s).epsilon(1e-12));
    CHECK(pieces.time_s - pieces.load.latency_s == Approx(2.0 * (n - 1) / n * bytes / Bps).epsilon(1e-12));
    for (const CollectiveCost* c : {&doubling, &pieces}) CHECK(c->time_s >= c->bound_s);
  }
}

TEST_CASE("a library may go by a table of sizes: the first choice that fits and can run, said by explain") {
  const auto host = load<CollectiveLibrary>("models/collectives/oneccl-2021-host.json");
  const auto max = load<CollectiveLibrary>("models/collectives/oneccl-2021-max.json");
  const auto algorithm = [](const Fabric& f, const CollectiveLibrary& library, int ranks, Operation op, double bytes) {
    CollectiveOptions o;
    o.library = &library;
    o.explain = true;
    auto all = ranks_of(f, place_packed(f, f.node_count));
    all.resize(static_cast<size_t>(ranks));
    const CollectiveCost c = Collectives(f, o).cost(op, all, bytes);
    bool listed = false;
    for (const Considered& k : c.considered) listed = listed || (k.listed && k.algorithm == c.algorithm);
    return c.algorithm + (listed ? "" : ", not listed");
  };
  const Fabric flat = build_fabric(flat_cluster(6));
  CHECK(algorithm(flat, host, 6, Operation::all_reduce, 16384) == "recursive_doubling");
  CHECK(algorithm(flat, host, 6, Operation::all_reduce, 16385) == "pieces");
  CHECK(algorithm(flat, host, 6, Operation::all_reduce, 64e6) == "ring");
  CHECK(algorithm(flat, host, 6, Operation::all_gather, 1000) == "pieces");
  CHECK(algorithm(flat, host, 6, Operation::send_recv, 1e6) == "direct, not listed");
  const Fabric nodes = build_fabric(reference_cluster());
  CHECK(algorithm(nodes, max, 32, Operation::all_reduce, 1e6) == "recursive_doubling");
  CHECK(algorithm(nodes, max, 32, Operation::all_reduce, 64e6) == "hierarchical");
  CHECK(algorithm(nodes, max, 30, Operation::all_reduce, 64e6) == "ring");  // four nodes of 8, 8, 8 and 6
  CHECK(algorithm(nodes, default_library(), 32, Operation::all_reduce, 64e6) == "ring, not listed");

  CollectiveLibrary wrong = host;
  wrong.choices.push_back({"all-reduce", {}, "rign"});
  wrong.choices.push_back({"reduce", {}, "ring"});
  CHECK(library_faults(host).empty());
  CHECK(library_faults(wrong).size() == 2);
  CollectiveOptions o;
  o.library = &wrong;
  CHECK_THROWS_WITH(Collectives(flat, o), Catch::Contains("/choices/8/algorithm: unknown choice \"rign\"") &&
                                              Catch::Contains("/choices/9/operation: unknown choice \"reduce\""));
}

TEST_CASE("the library of a release is taken where it drives the accelerator, else the accelerator's, else NCCL") {
  Software release;
  Accelerator chip;
  CHECK(&library_of(release, chip) == &default_library());
  release.collectives = load<CollectiveLibrary>("models/collectives/nccl-2.12.json");
  CHECK(library_of(release, chip).name == "NCCL 2.12");
  chip.collectives = load<CollectiveLibrary>("models/collectives/rccl-2.22-mi300x.json");
  CHECK(library_of(release, chip).name == "RCCL 2.22 (MI300X)");
  release.collectives = chip.collectives;
  release.collectives->name = "another RCCL";
  CHECK(library_of(release, chip).name == "another RCCL");
  release.collectives.reset();
  CHECK(library_of(release, chip).name == "RCCL 2.22 (MI300X)");
  for (const char* name : {"mi300x", "mi325x", "mi355x"})
    CHECK(load<Accelerator>(std::string("models/accelerators/") + name + ".json").collectives->family == "RCCL");
  CHECK(!load<Accelerator>("models/accelerators/h100-sxm.json").collectives);
}

TEST_CASE("reduction in switches that have nothing above them is refused by name, else said once and done without") {
  Cluster c = flat_cluster(1);
  c.fabric.kind = "torus";
  c.fabric.dimensions = {4, 4, 4};
  const Fabric f = build_fabric(c);
  CollectiveOptions on;
  on.sharp = true;
  Collectives collectives(f, on);
  const auto first = [&](int count) { return ranks_of(f, place_packed(f, count)); };
  const CollectiveCost without = Collectives(f).cost(Operation::all_reduce, first(64), 1e9);
  const CollectiveCost other = collectives.cost(Operation::all_reduce, first(64), 1e9);
  CHECK(other.algorithm == "hierarchical");
  CHECK(other.time_s == without.time_s);
  CHECK(other.bound_s == without.bound_s);
  CHECK(other.remark ==
        "SHARP is switched on, and all-reduces go another way: SHARP needs levels of switches to reduce in");
  collectives.cost(Operation::all_reduce, first(16), 1e9);
  CHECK(collectives.remarks() == std::set{other.remark});
  on.algorithm = "sharp";
  CHECK_THROWS_WITH(Collectives(f, on).cost(Operation::all_reduce, first(64), 1e9),
                    Catch::Contains("all-reduce cannot run as sharp: SHARP needs levels of switches"));
}

TEST_CASE("level 3 says which rounds it plays together") {
  const Fabric f = build_fabric(flat_cluster(40));
  const auto part = [&](int nodes) {
    return ClassPart{Operation::all_reduce, {ranks_of(f, place_packed(f, nodes))}, "ring"};
  };
  CHECK(joined_rounds(f, part(33)).empty());
  CHECK(joined_rounds(f, part(34)) ==
        "level 3 plays the 66 rounds of ring all-reduce over 34 ranks as 64, with the latency of all");
  CHECK_FALSE(joined_rounds(f, part(33), 32).empty());
}
