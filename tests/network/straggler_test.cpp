// A rank that comes late, or whose adapter is slow: what its exchange takes at each level, by hand.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "network/message_level.hpp"
#include "network/process.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::flat_cluster;
using tw::test::reference_cluster;

namespace {

constexpr double kBytes = 64e6;

CollectiveOptions named(const std::string& algorithm) {
  CollectiveOptions o;
  o.algorithm = algorithm;
  o.protocol = Protocol::simple;
  return o;
}

std::vector<Rank> all_of(const Fabric& f) {
  return ranks_of(f, place_packed(f, f.node_count));
}

CollectiveCost as_load(const Fabric& f, Operation op, const CollectiveOptions& o) {
  return Collectives(f, o).cost(op, all_of(f), kBytes);
}

double as_messages_s(const Fabric& f, Operation op, const CollectiveOptions& o) {
  MessageProgram program = message_program(f, op, all_of(f), kBytes, o, 16);
  const std::vector<Link> links = engine_links(f, program.classes);
  return run_program(*fluid_engine(links, program.classes), program);
}

// Nodes of one accelerator on one leaf, the adapter of one of them at half of 50 GB/s.
Fabric one_slow(int nodes, int slow) {
  Cluster c = flat_cluster(nodes);
  if (slow >= 0) c.fabric.cable_changes = {{fmt::format("node-{} nic 0", slow), bytes_per_second(25e9)}};
  return build_fabric(c);
}

constexpr Operation kOfRings[] = {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter};

}  // namespace

TEST_CASE("a rank that is late by d delays its ring by d, whichever it is: levels 1, 2 and 3") {
  for (const int n : {2, 3, 8})
    for (const Operation op : kOfRings) {
      const Fabric f = one_slow(n, -1);
      const double load_s = as_load(f, op, named("ring")).time_s, messages_s = as_messages_s(f, op, named("ring"));
      for (int rank = 0; rank < n; ++rank)
        for (const double d : {3e-6, 700e-6, 0.2}) {
          CollectiveOptions late = named("ring");
          late.late_s.assign(static_cast<size_t>(n), 0);
          late.late_s[static_cast<size_t>(rank)] = d;
          CHECK(as_load(f, op, late).time_s == Approx(load_s + d).epsilon(1e-12));
          CHECK(as_messages_s(f, op, late) == Approx(messages_s + d).epsilon(1e-9));
        }
    }
  // Of several the last one counts.
  const Fabric f = one_slow(4, -1);
  CollectiveOptions late = named("ring");
  late.late_s = {1e-3, 0, 4e-3, 2e-3};
  const CollectiveCost cost = as_load(f, Operation::all_reduce, late);
  CHECK(cost.late_s == 4e-3);
  CHECK(as_messages_s(f, Operation::all_reduce, late) ==
        Approx(4e-3 + as_messages_s(f, Operation::all_reduce, named("ring"))).epsilon(1e-9));
  const ChildResult level2 = in_child([&] { return fmt::format("{:.17g}", load_level_s(f, cost)); });
  INFO(level2.error);
  CHECK(std::stod(level2.value) == Approx(cost.time_s).epsilon(1e-9));
}

TEST_CASE("one adapter at half speed: a ring is as slow as that hop, at every level") {
  for (const int n : {2, 3, 8})
    for (const Operation op : kOfRings)
      for (int slow = 0; slow < n; ++slow) {
        const Fabric even = one_slow(n, -1), f = one_slow(n, slow);
        const CollectiveCost alone = as_load(even, op, named("ring")), cost = as_load(f, op, named("ring"));
        CHECK(cost.load.latency_s == Approx(alone.load.latency_s).epsilon(1e-12));
        CHECK(cost.time_s - cost.load.latency_s == Approx(2 * (alone.time_s - alone.load.latency_s)).epsilon(1e-12));
        // Every message of the slow rank takes twice as long, and so does every one to it.
        const double rounds = (op == Operation::all_reduce ? 2 : 1) * (n - 1.0);
        const double hop_s = 12.8e-6 + 2 * 0.6e-6, piece_s = kBytes / n / 25e9;
        CHECK(as_messages_s(f, op, named("ring")) == Approx(8.4e-6 + rounds * (hop_s + piece_s)).epsilon(1e-9));
      }
}

TEST_CASE("one adapter at half speed: an all-to-all waits for its rank, a tree only where its rank is busiest") {
  const Fabric even = one_slow(6, -1), f = one_slow(6, 4);
  const auto moving_s = [](const CollectiveCost& c) { return c.time_s - c.load.latency_s; };
  const double slow_s = 5.0 / 6 * kBytes / 25e9;
  const CollectiveCost exchange = as_load(f, Operation::all_to_all, named("direct"));
  CHECK(moving_s(exchange) == Approx(slow_s).epsilon(1e-12));
  CHECK(moving_s(exchange) == Approx(2 * moving_s(as_load(even, Operation::all_to_all, named("direct")))));
  const double messages_s = as_messages_s(f, Operation::all_to_all, named("direct"));
  CHECK(messages_s >= slow_s);
  CHECK(messages_s <= 1.25 * slow_s + exchange.load.latency_s + 6 * 14e-6);
  // Of four members the two trees (3 above 1 above 0 and 2; 0 above 2 above 1 and 3) have 1 and 2 in the middle: each
  // half of the buffer goes over 4 of their edges, and over 2 of those of 0 and 3.
  const double full_s = kBytes / 50e9 / 0.92;
  CHECK(moving_s(as_load(one_slow(4, -1), Operation::all_reduce, named("tree"))) == Approx(2 * full_s).epsilon(1e-12));
  for (const auto& [slow, times] : {std::pair{0, 2.0}, {1, 4.0}, {2, 4.0}, {3, 2.0}}) {
    const Fabric four = one_slow(4, slow);
    CHECK(moving_s(as_load(four, Operation::all_reduce, named("tree"))) == Approx(times * full_s).epsilon(1e-12));
    CHECK(as_messages_s(four, Operation::all_reduce, named("tree")) >= times * full_s);
  }
}

TEST_CASE("a late rank delays an exchange by what it is late at most: every algorithm, message by message") {
  Cluster c = reference_cluster();
  c.node.gpus = c.node.nics = 2;
  c.fabric.units = 2;
  c.fabric.nodes_per_unit = 2;
  const Fabric f = build_fabric(c);
  const std::vector<Rank> ranks = all_of(f);
  const Group group(f, ranks);
  int tried = 0, hidden = 0;
  for (const CollectiveAlgorithm& algorithm : algorithms())
    for (const auto& [name, op] : Choices<Operation>::table()) {
      if (!algorithm.refusal(group, op).empty()) continue;
      const double on_time_s = as_messages_s(f, op, named(std::string(algorithm.name)));
      const double load_s = as_load(f, op, named(std::string(algorithm.name))).time_s;
      for (int rank = 0; rank < group.n(); ++rank)
        for (const double d : {20e-6, 0.05}) {
          INFO(algorithm.name << ", " << name << ", rank " << rank << " late by " << d);
          CollectiveOptions late = named(std::string(algorithm.name));
          late.late_s.assign(static_cast<size_t>(group.n()), 0);
          late.late_s[static_cast<size_t>(rank)] = d;
          CHECK(as_load(f, op, late).time_s == Approx(load_s + d).epsilon(1e-12));
          const double messages_s = as_messages_s(f, op, late);
          // Messages that share links in another order fill them a little better or worse; those of a ring never do.
          const double order = algorithm.name == "ring" ? 1e-9 : 0.05;
          CHECK(messages_s >= std::max(on_time_s * (1 - order), d));
          CHECK(messages_s <= on_time_s * (1 + order) + d);
          hidden += messages_s < (on_time_s + d) * (1 - 1e-3);
          ++tried;
        }
    }
  CHECK(tried >= 200);
  CHECK(hidden > 0);  // what does not wait for it goes on
}
