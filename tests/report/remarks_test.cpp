// Where an answer is left at less than its model, it says so, in words and JSON.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "../topology/clusters.hpp"
#include "network/collective.hpp"
#include "report/collective_report.hpp"
#include "report/topology_report.hpp"
#include "study/neighbours.hpp"

TEST_CASE("exchanges too large for adaptive routing at its best are named by collective and topology") {
  tw::Cluster c = tw::test::flat_cluster(1);
  c.fabric.kind = "torus";
  c.fabric.dimensions = {32, 32};
  const tw::Fabric whole = tw::build_fabric(c);
  c.fabric.failed = {"router-0 - router-1"};
  const tw::Fabric faulty = tw::build_fabric(c);
  const auto answer = [](const tw::Fabric& f) {
    std::vector<int> nodes;
    for (int n = 0; n < f.node_count; ++n) nodes.push_back(n);
    const tw::network::CollectiveCost cost =
        tw::network::Collectives(f).cost(tw::network::Operation::all_to_all, tw::network::ranks_of(f, nodes), 1e9);
    return nlohmann::json::parse(tw::report::collective_json(cost, 1));
  };
  CHECK(answer(whole).count("warnings") == 0);
  REQUIRE(answer(faulty)["warnings"].size() == 1);
  CHECK_THAT(answer(faulty)["warnings"][0].get<std::string>(), Catch::Contains("1048576 pairs of switches"));
  CHECK(nlohmann::json::parse(tw::report::topology_json(c, whole, tw::topology_summary(whole))).count("warnings") == 0);
  const nlohmann::json topology =
      nlohmann::json::parse(tw::report::topology_json(c, faulty, tw::topology_summary(faulty)));
  REQUIRE(topology["warnings"].size() == 1);
  CHECK_THAT(topology["warnings"][0].get<std::string>(), Catch::Contains("paths are uneven"));
  CHECK_THAT(tw::report::topology_table(c, faulty, tw::topology_summary(faulty)),
             Catch::Contains("warning      paths are uneven"));
  // A run gets what neighbours' exchanges leave.
  tw::Neighbours others;
  others.jobs.push_back({"other", {}, tw::network::Operation::all_to_all, tw::bytes(1e9), {}});
  for (int n = 0; n < faulty.node_count; ++n) others.jobs.front().nodes.push_back("node-" + std::to_string(n));
  std::vector<std::string> remarks;
  neighbour_loads(others, faulty, tw::default_library(), &remarks);
  REQUIRE(remarks.size() == 1);
  CHECK_THAT(remarks.front(), Catch::StartsWith("\"other\": all-to-all over 1024 ranks"));
}
