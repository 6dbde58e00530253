#include "topology/inspect.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "clusters.hpp"
#include "core/document.hpp"

using namespace tw;
using tw::test::flat_cluster;
using tw::test::reference_cluster;

namespace {
Cluster torus(std::vector<int> dimensions) {
  Cluster c = reference_cluster();
  c.fabric.kind = "torus";
  c.fabric.dimensions = std::move(dimensions);
  c.node.gpus = c.node.nics = 1;
  c.node.nic_bandwidth = bytes_per_second(300e9);
  return c;
}
}  // namespace

TEST_CASE("summary of the reference cluster") {
  const TopologySummary s = topology_summary(build_fabric(reference_cluster()));
  CHECK(s.nodes == 72);
  CHECK(s.gpus == 576);
  CHECK(s.switches == 40);
  CHECK(s.cables == 576 + 384);
  REQUIRE(s.levels.size() == 2);
  CHECK(s.levels[0].name == "leaf");
  CHECK(s.levels[0].ports_free() == 24 * (64 - 40));
  CHECK(s.levels[0].oversubscription().value() == Approx(24 * 25.0 / (16 * 50)));  // 4,800 down, 6,400 up
  CHECK_FALSE(s.levels[1].oversubscription().has_value());
  // Half the nodes against the other half: bound by their adapters, 36 x 8 x 25 GB/s.
  CHECK(s.bisection_Bps == Approx(36 * 8 * 25e9).epsilon(1e-9));
  CHECK(s.bisection_share == Approx(1));
  CHECK(s.diameter == 4);
}

TEST_CASE("bisection follows the uplinks when they are few, and failures") {
  Cluster c = reference_cluster();
  c.fabric.spines = c.fabric.uplinks_per_leaf = 2;
  // 12 leaves on a side, 2 x 50 GB/s each.
  CHECK(topology_summary(build_fabric(c)).bisection_Bps == Approx(12 * 2 * 50e9).epsilon(1e-9));
  c.fabric.failed = {"spine-1"};
  const TopologySummary s = topology_summary(build_fabric(c));
  CHECK(s.bisection_Bps == Approx(12 * 50e9).epsilon(1e-9));
  CHECK(s.failed == std::vector<std::string>{"spine-1"});
  c.fabric.failed = {"spine-1", "leaf-0-A - spine-0"};
  CHECK(topology_summary(build_fabric(c)).bisection_Bps == Approx(11 * 50e9).epsilon(1e-9));
}

TEST_CASE("torus: cables, diameter and bisection as calculated") {
  const TopologySummary s = topology_summary(build_fabric(torus({4, 4, 4})));
  CHECK(s.nodes == 64);
  CHECK(s.cables == 64 + 3 * 64);
  CHECK(s.diameter == 2 + 6);
  CHECK(s.bisection_Bps == Approx(2 * 16 * 50e9).epsilon(1e-9));  // two planes of 16 cables
  CHECK(topology_summary(build_fabric(torus({2, 3}))).cables == 6 + 3 + 6);
  CHECK(topology_summary(build_fabric(torus({8}))).diameter == 2 + 4);
  // Nodes are alike: one search tells the longest way. With a failed cable each is searched from, which is said.
  Cluster c = torus({4, 4, 4});
  size_t searches = 0;
  const auto count = [&](size_t done, size_t all) {
    CHECK(done == searches++);
    CHECK(all == 64);
  };
  CHECK(topology_summary(build_fabric(c), count).diameter == 2 + 6);
  CHECK(searches == 1);
  c.fabric.failed = {"router-0 - router-1"};
  searches = 0;
  CHECK(topology_summary(build_fabric(c), count).diameter == 2 + 6);
  CHECK(searches == 64);
}

TEST_CASE("dragonfly: all groups reach one another over one global cable") {
  Cluster c = reference_cluster();
  c.fabric.kind = "dragonfly";
  c.fabric.units = 9;
  c.fabric.nodes_per_unit = 4;
  c.fabric.switches_per_group = 4;
  c.fabric.global_links_per_switch = 2;
  const Fabric f = build_fabric(c);
  const TopologySummary s = topology_summary(f);
  CHECK(s.switches == 36);
  CHECK(s.cables == 36 * 8 + 9 * 6 + 9 * 8 / 2);
  CHECK(s.diameter == 2 + 3);  // local, global, local
  c.fabric.global_links_per_switch = 1;
  CHECK_THROWS_WITH(build_fabric(c), Catch::Contains("4 global cables of a group do not reach 8 other groups"));
}

TEST_CASE("three levels: pods and rails") {
  Cluster c = reference_cluster();
  c.fabric.kind = "fat_tree";
  c.node.gpus = c.node.nics = 4;
  c.fabric.units = 4;
  c.fabric.nodes_per_unit = 4;
  c.fabric.leaves_per_unit = 4;
  c.fabric.wiring = NicWiring::rails;
  c.fabric.spines = 8;
  c.fabric.uplinks_per_leaf = 4;
  c.fabric.spine_groups = 4;
  c.fabric.uplinks_per_spine = 8;
  c.fabric.cores = 4;
  const Fabric pods = build_fabric(c);
  CHECK(topology_summary(pods).diameter == 6);
  CHECK(topology_summary(pods).levels[2].name == "core");
  c.fabric.spine_grouping = SpineGrouping::rails;
  const Fabric rails = build_fabric(c);
  Router over_pods(pods), over_rails(rails);
  CHECK(over_pods.hops(0, 1, 15, 1) == 6);
  CHECK(over_rails.hops(0, 1, 15, 1) == 4);  // the same rail meets below the cores
  CHECK(over_rails.hops(0, 1, 15, 2) == 6);
  c.fabric.uplinks_per_spine = 0;
  CHECK_THROWS_WITH(build_fabric(c), Catch::Contains("uplinks of spine-0"));
}

TEST_CASE("an explicit graph, its faults and a domain wider than a node") {
  const std::string text = R"({
    "name": "two", "node": {"accelerator": "models/accelerators/h100-sxm.json", "gpus": 2, "nics": 2, "nic_bandwidth": "200 Gbit/s",
      "nvlink": {"bandwidth": "450 GB/s", "nodes": 2}, "power": "models/power/hgx-h100-air.json"},
    "fabric": {"kind": "graph", "units": 2, "nodes_per_unit": 2, "switch": {"nameplate": "1 kW", "ports": 8},
      "graph_switches": [{"name": "a"}, {"name": "b"}, {"name": "top", "tier": 2}],
      "graph_cables": [
        {"from": "node-0", "to": "a", "count": 2, "bandwidth": "200 Gbit/s"}, {"from": "node-1", "to": "a", "count": 2, "bandwidth": "200 Gbit/s"},
        {"from": "node-2", "to": "b", "count": 2, "bandwidth": "100 Gbit/s"}, {"from": "node-3", "to": "b", "count": 2, "bandwidth": "200 Gbit/s"},
        {"from": "a", "to": "top", "bandwidth": "400 Gbit/s"}, {"from": "top", "to": "b", "count": 2, "bandwidth": "400 Gbit/s"}]},
    "power_delivery": {"rectifier": "models/power/rectifier-5kw.json"},
    "storage": {"read_bandwidth": "1 GB/s", "write_bandwidth": "1 GB/s"}})";
  const auto with = [&](std::vector<std::string> overrides) {
    Faults faults;
    const Document d = Document::from_text(text, "two.json", description<Cluster>().info(), overrides, faults);
    const auto c = read<Cluster>(d, faults);
    if (faults.empty()) check_fabric(c, ReadContext{&d, "", &faults, {}});
    faults.throw_if_any();
    return build_fabric(c);
  };
  const Fabric f = with({});
  const TopologySummary s = topology_summary(f);
  CHECK(s.nvlink_domains == 2);
  CHECK(s.bisection_Bps == Approx(50e9));  // one cable of 400 Gbit/s from a
  CHECK(explain_route(f, "node-0", "node-1").policy == "NVLink");
  CHECK(explain_route(f, "node-0", "node-2 nic 1").bandwidth_Bps == Approx(12.5e9));
  CHECK_THROWS_WITH(with({"/fabric/graph_switches/1/name=a"}),
                    Catch::Contains("/fabric/graph_switches/1/name: the name \"a\" is taken"));
  CHECK_THROWS_WITH(with({"/fabric/graph_cables/4/to=tip"}), Catch::Contains("no node or switch \"tip\""));
  CHECK_THROWS_WITH(with({"/fabric/graph_cables/0/count=3"}),
                    Catch::Contains("node-0 has more cables than its 2 NICs"));
  CHECK_THROWS_WITH(with({"/fabric/graph_cables/4/bandwidth=0 GB/s"}), Catch::Contains("out of range"));
  CHECK_THROWS_WITH(with({"/fabric/graph_cables/4/bandwidth=-1 GB/s"}), Catch::Contains("out of range"));
  CHECK_THROWS_WITH(with({"/fabric/graph_cables/5/count=8"}),
                    Catch::Contains("9 cables on top, which has 8 ports") || Catch::Contains("cables on b"));
  CHECK_THROWS_WITH(
      with({"/fabric/failed=[\"top\"]", "/node/nvlink/nodes=1"}),
      Catch::Contains("node-2 (and 1 more nodes)") || Catch::Contains("node-2 cannot be reached from node-0"));
  CHECK_THROWS_WITH(with({"/fabric/failed=[\"tap\"]"}), Catch::Contains("no cable or switch \"tap\""));
  CHECK_THROWS_WITH(
      with(
          {R"(/node/nvlink/collectives=[{"operation": "all-reduse", "ranks": 2, "floor": "1 us", "bus_bandwidth": "1 GB/s"}])"}),
      Catch::Contains(
          "/node/nvlink/collectives/0/operation: there is no collective \"all-reduse\"; did you mean \"all-reduce\""));
  CHECK_THROWS_WITH(with({"/node/nvlink/nodes=3"}), Catch::Contains("do not divide 4 nodes"));
}

TEST_CASE("routes are explained, and refused over what has failed") {
  Cluster c = reference_cluster();
  const RouteExplanation r = explain_route(build_fabric(c), "node-0", "node-6");
  REQUIRE(r.steps.size() == 3);
  CHECK(r.steps[0].at == "leaf-0-A");
  CHECK(r.steps[0].links == 16);
  CHECK(r.steps[0].taken == "all");
  CHECK(r.cables == 4);
  CHECK(r.bandwidth_Bps == Approx(25e9));
  CHECK(r.latency_s == Approx(2.4e-6));
  CHECK_THAT(r.lines()[1], Catch::Contains("16 cables of 800 GB/s together"));
  c.fabric.routing = RoutingPolicy::ecmp;
  CHECK_THAT(explain_route(build_fabric(c), "node-0", "node-6").steps[0].taken, Catch::StartsWith("spine-"));
  c.fabric.failed = {"leaf-0-A"};
  const Fabric broken = build_fabric(c);
  CHECK_THROWS_WITH(explain_route(broken, "node-0 nic 1", "node-6"),
                    Catch::Contains("node-0 nic 1 is cabled to leaf-0-A, which has failed"));
  CHECK(explain_route(broken, "node-0", "node-6").from == "node-0 nic 4");
  CHECK_THROWS_WITH(explain_route(broken, "node-72", "node-6"), Catch::Contains("no node or adapter \"node-72\""));
}

TEST_CASE("drawings name every vertex once") {
  for (const Cluster& c : {reference_cluster(), torus({4, 4}), flat_cluster(3)}) {
    const Fabric f = build_fabric(c);
    const std::string svg = svg_text(f), dot = dot_text(f);
    for (const FabricVertex& v : f.vertices) {
      CHECK_THAT(svg, Catch::Contains(">" + v.name + "</text>"));
      CHECK_THAT(dot, Catch::Contains("\"" + v.name + "\" [style"));
    }
    CHECK_THAT(svg, Catch::EndsWith("</svg>\n") && !Catch::Contains("=\"nan") && !Catch::Contains("=\"inf"));
  }
}

TEST_CASE("what Graphviz reads has cables with their number and speed, and names that need it in quotes") {
  Cluster c = reference_cluster();
  c.name = "the \"large\" hall";
  c.fabric.uplinks_per_leaf = 32;
  c.fabric.failed = {"spine-1"};
  const std::string dot = dot_text(build_fabric(c));
  CHECK_THAT(dot, Catch::StartsWith("graph G {\nlabel=\"the \\\"large\\\" hall\";\nrankdir=BT;\n"));
  CHECK_THAT(dot, Catch::Contains("\"node-0\"--\"leaf-0-A\" [label=\"4 x 200 Gbit/s\"];\n"));
  CHECK_THAT(dot, Catch::Contains("\"leaf-0-A\"--\"spine-0\" [label=\"2 x 400 Gbit/s\"];\n"));
  CHECK_THAT(dot, Catch::Contains("\"leaf-0-A\"--\"spine-1\" [label=\"2 x 400 Gbit/s\", color=red, style=dashed]"));
}

TEST_CASE("dragonfly: parallel cables inside a group, and what goes down over what goes up") {
  Cluster c = reference_cluster();
  c.fabric.kind = "dragonfly";
  c.fabric.units = 5;
  c.fabric.nodes_per_unit = 4;
  c.fabric.switches_per_group = 4;
  c.fabric.global_links_per_switch = 2;
  c.fabric.local_links = 3;
  const TopologySummary s = topology_summary(build_fabric(c));
  CHECK(s.cables == 20 * 8 + 5 * 6 * 3 + 5 * 8 / 2);
  // A switch has a node of 8 x 25 GB/s below it and two cables of 50 GB/s to other groups.
  REQUIRE(s.levels.size() == 1);
  CHECK(*s.levels.front().oversubscription() == Approx(2).epsilon(1e-12));
  // Between two groups: two cables for all of their nodes.
  c.fabric.units = 2;
  c.fabric.global_links_per_switch = 1;
  CHECK(topology_summary(build_fabric(c)).bisection_Bps == Approx(4 * 50e9).epsilon(1e-9));
}

TEST_CASE("a twisted torus: every router has its cables, and ways are shorter by the twist") {
  Cluster plain = torus({4, 8}), twisted = plain;
  twisted.fabric.twists = {4};
  const Fabric f = build_fabric(twisted);
  CHECK(topology_summary(f).cables == topology_summary(build_fabric(plain)).cables);
  std::vector<int> degree(f.vertices.size(), 0);
  for (const Cable& cable : f.cables)
    if (cable.kind == CableKind::mesh) ++degree[static_cast<size_t>(cable.a)], ++degree[static_cast<size_t>(cable.b)];
  for (size_t v = 0; v < f.vertices.size(); ++v)
    if (f.vertices[v].kind == VertexKind::network_switch) CHECK(degree[v] == 4);
  // k x 2k: 2 + 4 hops without, and by the twist of half of the long side 4 with (Camara et al. 2010: the twisted torus
  // has the shorter diameter); bisection is that of the long side.
  CHECK(topology_summary(build_fabric(plain)).diameter == 2 + 6);
  CHECK(topology_summary(f).diameter == 2 + 4);
  CHECK(topology_summary(f).bisection_Bps >= topology_summary(build_fabric(plain)).bisection_Bps);
  // In three dimensions what runs over the end of the next one is twisted again.
  Cluster three = torus({2, 2, 4});
  three.fabric.twists = {1, 2};
  CHECK(topology_summary(build_fabric(three)).nodes == 16);
  twisted.fabric.twists = {4, 1};
  CHECK_THROWS_WITH(build_fabric(twisted), Catch::Contains("2 twists of 2 dimensions"));
}
