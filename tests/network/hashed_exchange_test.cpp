// ECMP of very many flows: drawn link by link as hashes one by one fall.
#include "network/hashed_exchange.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "../topology/clusters.hpp"
#include "network/collective.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::reference_cluster;

namespace {

struct Moments {
  double mean = 0, variance = 0;
};

template <class Draw>
Moments moments_of(const Draw& draw) {
  constexpr int kDraws = 20000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  return {sum / kDraws, squares / kDraws - sum / kDraws * sum / kDraws};
}

// How much fuller the fullest cable between switches is than under spraying.
double unevenness(int nodes, uint64_t seed, const std::string& failed = "", int queue_pairs = 1) {
  Cluster c = reference_cluster();
  c.fabric.units = 32;
  c.fabric.nodes_per_unit = 8;
  c.fabric.switches.ports = 256;
  if (!failed.empty()) c.fabric.failed = {failed};
  const auto fullest = [&](RoutingPolicy policy) {
    c.fabric.routing = policy;
    const Fabric f = build_fabric(c);
    CollectiveLibrary library = default_library();
    library.queue_pairs = queue_pairs;
    CollectiveOptions o;
    o.algorithm = "direct";
    o.seed = seed;
    o.bound = false;
    o.library = &library;
    const CollectiveCost cost = Collectives(f, o).cost(Operation::all_to_all, ranks_of(f, place_packed(f, nodes)), 1e9);
    std::vector<double> in(f.vertices.size(), 0), out = in;
    double most = 0;
    for (const LinkUse& use : cost.load.uses) {
      if (use.link >= f.cable_links()) continue;
      const Cable& cable = f.cables[static_cast<size_t>(use.link / 2)];
      out[static_cast<size_t>(use.link % 2 == 0 ? cable.a : cable.b)] += use.weight;
      in[static_cast<size_t>(use.link % 2 == 0 ? cable.b : cable.a)] += use.weight;
      if (cable.kind == CableKind::uplink) most = std::max(most, use.weight);
    }
    for (size_t v = 0; v < in.size(); ++v) CHECK(in[v] == Approx(out[v]).epsilon(1e-9).margin(1e-12));
    return most;
  };
  return fullest(RoutingPolicy::ecmp) / fullest(RoutingPolicy::adaptive) - 1;
}

}  // namespace

TEST_CASE("draws have the mean and the variance of their distribution") {
  SplitMix64 stream{7};
  for (const auto& [all, marked, drawn] : std::vector<std::array<double, 3>>{
           {10, 4, 5}, {100, 3, 50}, {1000, 500, 20}, {1e6, 3e5, 1000}, {1e6, 3e5, 4e5}}) {
    const double part = marked / all, variance = drawn * part * (1 - part) * (all - drawn) / (all - 1);
    const Moments m = moments_of([&, a = all, k = marked, n = drawn] { return draw_marked(a, k, n, stream); });
    CHECK(m.mean == Approx(drawn * part).margin(4 * std::sqrt(variance / 20000)));
    CHECK(m.variance == Approx(variance).epsilon(0.06));
  }
  for (const double flows : {1.0, 7.0, 100.0, 3000.0, 1e6})
    for (const int ways : {2, 16}) {
      const double mean = flows / ways, variance = mean * (1 - 1.0 / ways);
      const Moments m = moments_of([&, n = flows, w = ways] { return draw_way(n, w, stream); });
      CHECK(m.mean == Approx(mean).margin(4 * std::sqrt(variance / 20000)));
      CHECK(m.variance == Approx(variance).epsilon(0.06));
    }
  CHECK(draw_marked(10, 0, 5, stream) == 0);
  CHECK(draw_marked(10, 10, 5, stream) == 5);
  CHECK(draw_marked(10, 8, 5, stream) >= 3);
  CHECK(draw_way(5, 1, stream) == 5);
}

TEST_CASE("an all-to-all under ECMP is no smoother beyond 512 ranks: 256 to 2,048") {
  // Hashed one by one up to 512 ranks, drawn beyond. The fullest of many cables of a mean of m flows is a few sqrt(1/m)
  // fuller; m grows with the ranks, as each leaf has 32 of them.
  std::vector<double> scaled;
  for (const int nodes : {32, 48, 64, 65, 96, 128, 256}) {
    double mean = 0;
    for (uint64_t seed = 1; seed <= 3; ++seed) mean += unevenness(nodes, seed) / 3;
    const double flows = 32.0 * (8 * nodes - 64) / 16;
    scaled.push_back(mean * std::sqrt(flows));
    INFO(8 * nodes << " ranks: " << mean);
    CHECK(scaled.back() > 2);
    CHECK(scaled.back() < 5);
  }
  CHECK(scaled[3] == Approx(scaled[2]).epsilon(0.25));
}

TEST_CASE("hashed flows on a fabric that is no even tree, and queue pairs, above 512 ranks") {
  CHECK(unevenness(96, 1, "leaf-0-A - spine-0") > 0.01);  // the fullest are the 15 cables of the leaf
  CHECK(unevenness(96, 1) > 1.5 * unevenness(96, 1, "", 8));
  CHECK(unevenness(96, 1) != unevenness(96, 2));
  CHECK(unevenness(96, 1) == unevenness(96, 1));
}
