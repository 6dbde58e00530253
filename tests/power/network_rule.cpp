#include "power/network_rule.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "reference_cluster.hpp"
#include "topology/fabric.hpp"

namespace {

using namespace tw;

std::vector<int> first_nodes(int n) {
  std::vector<int> nodes(static_cast<size_t>(n));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

}  // namespace

TEST_CASE("named rules reproduce the stated and the published switch power") {
  const Fabric fabric = build_fabric(test::reference_cluster());
  const auto w = [&](NetworkRule rule, int n) { return *network_power_w(rule, fabric, first_nodes(n)); };
  CHECK(w(NetworkRule::as_published, 1) == 0);
  CHECK(w(NetworkRule::as_published, 8) == 16100);
  CHECK(w(NetworkRule::as_published, 9) == 16100);
  CHECK(w(NetworkRule::as_published, 64) == 59570);
  CHECK(w(NetworkRule::as_stated, 1) == 0);
  CHECK(w(NetworkRule::as_stated, 8) == 4830);
  CHECK(w(NetworkRule::as_stated, 9) == 5031.25);
  CHECK(w(NetworkRule::as_stated, 64) == 30590);
  CHECK(w(NetworkRule::whole_switches, 1) == 0);
  CHECK(w(NetworkRule::whole_switches, 8) == 20 * 1610);
  CHECK(w(NetworkRule::whole_switches, 64) == 38 * 1610);
}

TEST_CASE("by_load needs traffic and never exceeds the ports it uses") {
  const Fabric fabric = build_fabric(test::reference_cluster());
  const std::vector<int> nodes = first_nodes(8);
  CHECK_FALSE(network_power_w(NetworkRule::by_load, fabric, nodes).has_value());
  CHECK(*network_power_w(NetworkRule::by_load, fabric, first_nodes(1)) == 0);
  std::vector<double> full;
  for (const Cable& cable : fabric.cables) full.push_back(2 * cable.capacity_Bps);
  CHECK(*network_power_w(NetworkRule::by_load, fabric, nodes, full) ==
        Approx(*network_power_w(NetworkRule::as_stated, fabric, nodes)));
  for (double& load : full) load /= 4;
  CHECK(*network_power_w(NetworkRule::by_load, fabric, nodes, full) == Approx(4830.0 / 4));
}

TEST_CASE("a rule without a meaning on a fabric is null") {
  Cluster cluster = test::reference_cluster(2);
  Fabric fabric = build_fabric(cluster);
  fabric.type.kind = "torus";
  CHECK_FALSE(network_power_w(NetworkRule::as_published, fabric, first_nodes(8)).has_value());
  CHECK(network_power_by_rule(fabric, first_nodes(8)).size() == 4);
}

TEST_CASE("shares of several jobs add up to one") {
  const Fabric fabric = build_fabric(test::reference_cluster());
  const std::vector<std::vector<int>> jobs{{0, 1, 2}, {3, 4, 5, 6}, {12}, {20, 21, 40}};
  for (const NetworkRule rule : {NetworkRule::as_published, NetworkRule::as_stated, NetworkRule::whole_switches}) {
    const std::vector<double> shares = network_shares(rule, fabric, jobs);
    REQUIRE(shares.size() == 4);
    CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == Approx(1).epsilon(1e-12));
    CHECK(shares[2] == 0);  // alone on its node
  }
}
