// A torus seen from one of its routers, whole or with cables that failed or are slow, against searches of the graph.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <queue>

#include "clusters.hpp"
#include "core/random.hpp"
#include "topology/routing.hpp"

using namespace tw;

namespace {

Cluster random_torus(SplitMix64& stream) {
  const auto below = [&](int n) { return static_cast<int>(stream() % static_cast<uint64_t>(n)); };
  Cluster c = test::flat_cluster(1);
  c.fabric.kind = "torus";
  c.fabric.dimensions.clear();
  for (int d = 1 + below(3); d > 0; --d) c.fabric.dimensions.push_back(1 + below(d == 1 ? 7 : 6));
  if (below(3) == 0)
    for (size_t d = 0; d + 1 < c.fabric.dimensions.size(); ++d)
      c.fabric.twists.push_back(below(c.fabric.dimensions[d + 1]));
  if (c.nodes() < 2) return random_torus(stream);
  const Fabric whole = build_fabric(c);
  for (int changes = below(4); changes > 0; --changes) {
    const Cable& cable = whole.cables[static_cast<size_t>(below(static_cast<int>(whole.cables.size())))];
    if (cable.kind != CableKind::mesh) continue;
    const std::string name = fmt::format("{} - {}", whole.vertices[static_cast<size_t>(cable.a)].name,
                                         whole.vertices[static_cast<size_t>(cable.b)].name);
    if (below(2) == 0)
      c.fabric.failed.push_back(name);
    else
      c.fabric.cable_changes.push_back({name, bytes_per_second(cable.line_Bps * (10 + below(180)) / 100)});
  }
  return c;
}

std::vector<int> searched(const Fabric& f, int to) {
  std::vector<int> distance(f.vertices.size(), -1);
  std::queue<int> queue({to});
  distance[static_cast<size_t>(to)] = 0;
  for (; !queue.empty(); queue.pop())
    for (const int id : f.cables_at[static_cast<size_t>(queue.front())]) {
      const Cable& c = f.cables[static_cast<size_t>(id)];
      if (c.failed || c.kind != CableKind::mesh) continue;
      const int next = c.a == queue.front() ? c.b : c.a;
      if (distance[static_cast<size_t>(next)] >= 0) continue;
      distance[static_cast<size_t>(next)] = distance[static_cast<size_t>(queue.front())] + 1;
      queue.push(next);
    }
  return distance;
}

}  // namespace

TEST_CASE("a torus: distances and next cables as a search finds them") {
  SplitMix64 stream{5};
  for (int pass = 0; pass < 300; ++pass) {
    const Cluster c = random_torus(stream);
    Fabric f;
    try {
      f = build_fabric(c);
    } catch (const InputError&) {
      continue;  // a node that nothing reaches
    }
    INFO(pass);
    Router router(f);
    for (int a = 0; a < f.node_count; ++a) {
      const int to = f.nic_switch(a, 0);
      const std::vector<int> distance = searched(f, to);
      for (int b = 0; b < f.node_count; ++b) {
        const int from = f.nic_switch(b, 0);
        REQUIRE(router.distance(from, to) == distance[static_cast<size_t>(from)]);
        std::vector<int> next;
        for (const int id : f.cables_at[static_cast<size_t>(from)]) {
          const Cable& cable = f.cables[static_cast<size_t>(id)];
          if (cable.failed || cable.kind != CableKind::mesh) continue;
          if (distance[static_cast<size_t>(cable.a == from ? cable.b : cable.a)] ==
              distance[static_cast<size_t>(from)] - 1)
            next.push_back(f.link(id, from));
        }
        REQUIRE(router.next_links(from, to) == next);
      }
    }
  }
}

TEST_CASE("an exchange of all on a torus loads links as one destination after the other does") {
  SplitMix64 stream{6};
  int compared = 0, faulty = 0, left = 0;
  for (int pass = 0; pass < 600; ++pass) {
    const Cluster c = random_torus(stream);
    Fabric f;
    try {
      f = build_fabric(c);
    } catch (const InputError&) {
      continue;
    }
    Router router(f);
    // All alike, some planes of the last dimension without ranks, or no two alike.
    std::vector<double> weight(f.vertices.size(), 0);
    const int plane = f.node_count / c.fabric.dimensions.back(), kind = static_cast<int>(stream() % 4);
    for (int n = 0; n < f.node_count; ++n)
      weight[static_cast<size_t>(f.nic_switch(n, 0))] = kind == 0                     ? 1 + n / plane % 2
                                                        : kind == 1                   ? (n < plane ? 2.0 : 0.0)
                                                        : kind == 2 && pass % 16 == 0 ? n
                                                                                      : 3;
    const auto all = router.exchange(weight, 0.25);
    if (!all) continue;
    INFO(pass << ": " << f.node_count << " routers");
    std::vector<double> loads = all->loads, other(loads.size(), 0);
    double pairs = all->pairs, distance = all->distance, searched_pairs = 0, searched_distance = 0;
    for (int n = 0; n < f.node_count; ++n) {
      const int to = f.nic_switch(n, 0);
      const bool was_left = std::find(all->left.begin(), all->left.end(), to) != all->left.end();
      std::vector<std::pair<int, double>> entering;
      for (int m = 0; m < f.node_count; ++m) {
        const int from = f.nic_switch(m, 0);
        const double both = weight[static_cast<size_t>(from)] * weight[static_cast<size_t>(to)];
        if (from == to || both <= 0) continue;
        entering.emplace_back(from, 0.25 * both);
        searched_pairs += both;
        searched_distance += both * router.distance(from, to);
        if (was_left) pairs += both, distance += both * router.distance(from, to);
      }
      router.spread(to, entering, other);
      if (was_left) router.spread(to, entering, loads);
      router.forget();
    }
    CHECK(pairs == Approx(searched_pairs));
    CHECK(distance == Approx(searched_distance).epsilon(1e-12));
    for (size_t l = 0; l < loads.size(); ++l) REQUIRE(loads[l] == Approx(other[l]).epsilon(1e-10).margin(1e-10));
    ++compared;
    const bool changed = !c.fabric.failed.empty() || !c.fabric.cable_changes.empty();
    faulty += changed ? 1 : 0;
    left += all->left.empty() ? 0 : 1;
    CHECK((router.same_everywhere() || !all->all_alike));
  }
  CHECK(compared > 200);
  CHECK(faulty > 80);
  CHECK(left > 20);
}
