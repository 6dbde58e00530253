#include <catch2/catch.hpp>
#include <set>

#include "clusters.hpp"
#include "core/codec.hpp"
#include "core/document.hpp"
#include "topology/builder.hpp"
#include "topology/fabric_kind.hpp"
#include "topology/inspect.hpp"

namespace {

using namespace tw;

// A router a unit, each cabled to all others: all that a new kind needs, beside its line in the table.
void describe_clique(Description<FabricType>& d) {
  describe_units(d);
  d.optional("uplink_bandwidth", &FabricType::uplink_bandwidth, "");
}
void generate_clique(FabricBuilder& b) {
  const FabricType& f = b.cluster.fabric;
  if (!(f.uplink_bandwidth.value() > 0))
    return b.fault("/fabric/uplink_bandwidth", "the routers' cables have no bandwidth", "such as \"400 Gbit/s\"");
  std::vector<int> routers;
  for (int u = 0; u < f.units; ++u) {
    routers.push_back(b.add_switch("router-" + std::to_string(u), 1, u));
    for (const int other : routers)
      if (other != routers.back()) b.connect(other, routers.back(), CableKind::mesh, f.uplink_bandwidth.value());
    for (int n = 0; n < f.nodes_per_unit; ++n)
      for (int k = 0; k < b.cluster.node.nics; ++k) b.connect_nic(u * f.nodes_per_unit + n, k, routers.back());
  }
}
const FabricKind kClique{"clique",       describe_clique, generate_clique,
                         nodes_in_units, nodes_of_unit,   [](const FabricType&) { return 0; },
                         "units",        "router"};

std::string faults_of(const std::string& fabric) {
  Faults faults;
  const Document document = Document::from_text(fabric, "f.json", description<FabricType>().info(), {}, faults);
  read<FabricType>(document, faults);
  std::string text;
  for (const Fault& fault : faults.list()) text += fault.text() + "\n";
  return text;
}

}  // namespace

TEST_CASE("a kind of fabric reads its own keys and refuses those of others") {
  CHECK(faults_of(R"({"kind": "torus", "dimensions": [2, 2], "switch": {"nameplate": "0 W"}})").empty());
  CHECK(faults_of(R"({"spines": 4, "switch": {"nameplate": "1 kW"}})").empty());  // scalable units by default
  CHECK_THAT(faults_of(R"({"kind": "fat_tree", "dimensions": [2, 2], "switch": {"nameplate": "1 kW"}})"),
             Catch::Contains("/dimensions") && Catch::Contains("no key of kind \"fat_tree\"") &&
                 Catch::Contains("it belongs to torus"));
  CHECK_THAT(faults_of(R"({"kind": "torus", "spines": 4, "switch": {"nameplate": "1 kW"}})"),
             Catch::Contains("it belongs to scalable_units or fat_tree"));
  // A kind that is none is one fault, not one for every key.
  const std::string unknown = faults_of(R"({"kind": "hypercube", "spines": 4, "switch": {"nameplate": "1 kW"}})");
  CHECK(std::count(unknown.begin(), unknown.end(), '\n') == 1);
  CHECK_THAT(unknown, Catch::Contains("hypercube") && Catch::Contains("dragonfly"));
}

TEST_CASE("kinds answer for their units and levels") {
  FabricType type = test::reference_cluster().fabric;
  CHECK(kind_of(type).nodes(type) == 72);
  CHECK(kind_of(type).nodes_per_unit(type) == 6);
  CHECK(kind_of(type).levels(type) == 2);
  type.cores = 4;
  CHECK(kind_of(type).levels(type) == 3);
  type.kind = "torus";
  type.dimensions = {4, 2};
  CHECK(kind_of(type).nodes(type) == 8);
  CHECK(kind_of(type).nodes_per_unit(type) == 0);
  std::set<std::string> names;
  for (const FabricKind& kind : fabric_kinds()) CHECK(names.insert(kind.name).second);
}

TEST_CASE("a new kind is one description and one line: it is read, built, checked, routed and inspected") {
  std::vector<FabricKind> known = fabric_kinds();
  known.push_back(kClique);
  Description<FabricType> fabric;
  describe_fabric(fabric, known);
  const auto cluster_of = [&](const std::string& keys, std::string& said) {
    Faults faults;
    const Document document =
        Document::from_text("{" + keys + R"(, "switch": {"nameplate": "0 W"}})", "f.json", fabric.info(), {}, faults);
    Cluster c = test::flat_cluster(1);
    c.fabric = {};
    fabric.read(&c.fabric, document.root(), ReadContext{&document, "", &faults, {}});
    c.fabric.kinds = &known;
    said.clear();
    for (const Fault& fault : faults.list()) said += fault.text();
    return c;
  };
  std::string said;
  Cluster c = cluster_of(
      R"("kind": "clique", "units": 4, "nodes_per_unit": 2, "uplink_bandwidth": "50 GB/s", "failed": ["router-0 - router-3"])",
      said);
  CHECK(said.empty());
  CHECK(c.nodes() == 8);
  const Fabric f = build_fabric(c);
  const TopologySummary s = topology_summary(f);
  CHECK(s.kind == "clique");
  CHECK(s.switches == 4);
  CHECK(s.cables == 8 + 6);
  REQUIRE(s.levels.size() == 1);
  CHECK(s.levels[0].name == "router");
  // Routers 0 and 1 against 2 and 3: four cables, of which one has failed.
  CHECK(s.bisection_Bps == Approx(3 * 50e9).epsilon(1e-9));
  CHECK(s.diameter == 2 + 2);  // round what has failed
  Router router(f);
  CHECK(router.hops(0, 0, 2, 0) == 3);
  CHECK(router.hops(0, 0, 6, 0) == 4);
  CHECK_THROWS_WITH(explain_route(f, "node-0", "node-9"), Catch::Contains("there is no node or adapter \"node-9\""));

  cluster_of(R"("kind": "clique", "spines": 4)", said);
  CHECK_THAT(said, Catch::Contains("no key of kind \"clique\"") && Catch::Contains("it belongs to scalable_units"));
  c = cluster_of(R"("kind": "clique", "units": 2)", said);
  CHECK_THROWS_WITH(build_fabric(c), Catch::Contains("the routers' cables have no bandwidth"));
  c.fabric.kinds = nullptr;  // what the program does not know, it says, with what it does
  CHECK_THROWS_WITH(build_fabric(c), Catch::Contains("there is no topology \"clique\"") && Catch::Contains("torus"));
}
