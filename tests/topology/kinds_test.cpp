#include <catch2/catch.hpp>
#include <set>

#include "clusters.hpp"
#include "core/codec.hpp"
#include "core/document.hpp"
#include "topology/fabric_kind.hpp"

namespace {

using namespace tw;

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
