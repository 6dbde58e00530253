// PCIe trees inside nodes: loads and times by hand.
#include <catch2/catch.hpp>

#include "../topology/clusters.hpp"
#include "core/error.hpp"
#include "network/collective.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;
using tw::test::flat_cluster;

namespace {

Bandwidth gigabytes(double x) {
  return bytes_per_second(x * 1e9);
}

// Two sockets, a switch of 24 GB/s on each with two accelerators and two adapters of 25 GB/s; no NVLink.
Cluster two_switches() {
  Cluster c = flat_cluster(2);
  c.node.gpus = c.node.nics = 4;
  c.node.nic_bandwidth = gigabytes(25);
  c.node.nvlink.bandwidth = gigabytes(1);
  c.node.nvlink.island = 1;
  c.node.accelerator.host_bandwidth = gigabytes(26);
  c.node.pcie.switches = {{"first", "", 0, gigabytes(24), {0, 1}, {0, 1}},
                          {"second", "", 1, gigabytes(24), {2, 3}, {2, 3}}};
  c.node.pcie.inter_socket = gigabytes(16);
  return c;
}

CollectiveCost send(const Fabric& f, const std::vector<std::vector<Rank>>& pairs, double bytes) {
  CollectiveOptions o;
  o.protocol = Protocol::simple;
  return Collectives(f, o).cost(Operation::send_recv, pairs, bytes);
}

double moving_s(const CollectiveCost& c) {
  return c.time_s - c.load.latency_s;
}

}  // namespace

TEST_CASE("two accelerators and two adapters behind one PCIe switch: what stays below it does not use its uplink") {
  const Fabric f = build_fabric(two_switches());
  CHECK(f.nics_beside == std::vector<std::vector<int>>{{0}, {1}, {2}, {3}});
  // Each to the other node over the adapter beside it: the adapter's 25 GB/s bind.
  const CollectiveCost out = send(f, {{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}}, 1e9);
  CHECK(moving_s(out) == Approx(1.0 / 25).epsilon(1e-9));
  CHECK(out.bottleneck == "NIC");
  // To an accelerator below the same switch: the PCIe links of the two.
  CHECK(moving_s(send(f, {{{0, 0}, {0, 1}}}, 1e9)) == Approx(1.0 / 26).epsilon(1e-9));
  // Both to the other socket: one uplink of 24 GB/s for two, and 16 GB/s between the sockets for two.
  CHECK(moving_s(send(f, {{{0, 0}, {0, 2}}}, 1e9)) == Approx(1.0 / 16).epsilon(1e-9));
  const CollectiveCost both = send(f, {{{0, 0}, {0, 2}}, {{0, 1}, {0, 3}}}, 1e9);
  CHECK(moving_s(both) == Approx(2.0 / 16).epsilon(1e-9));
  CHECK(both.bottleneck == "inter-socket");
}

TEST_CASE("two switches of one socket share their uplinks, not the link between sockets") {
  Cluster c = two_switches();
  c.node.pcie.switches[1].socket = 0;
  c.node.pcie.inter_socket = {};
  const Fabric f = build_fabric(c);
  const CollectiveCost both = send(f, {{{0, 0}, {0, 2}}, {{0, 1}, {0, 3}}}, 1e9);
  CHECK(moving_s(both) == Approx(2.0 / 24).epsilon(1e-9));
  CHECK(both.bottleneck == "PCIe switch");
}

TEST_CASE("an accelerator whose adapters hang at the other socket crosses to it, and shares the uplink there") {
  // One adapter of 25 GB/s, at the first switch: accelerators 2 and 3 cross 24, 16 and 24 GB/s.
  Cluster c = two_switches();
  c.node.nics = 1;
  c.node.pcie.switches[0].nics = {0};
  c.node.pcie.switches[1].nics = {};
  const Fabric f = build_fabric(c);
  CHECK(f.nics_beside == std::vector<std::vector<int>>{{0}, {0}, {0}, {0}});
  CHECK(moving_s(send(f, {{{0, 0}, {1, 0}}}, 1e9)) == Approx(1.0 / 25).epsilon(1e-9));
  CHECK(moving_s(send(f, {{{0, 2}, {1, 0}}}, 1e9)) == Approx(1.0 / 16).epsilon(1e-9));
  // Two from the far socket and one from the near: 16 GB/s for two against the adapter's 25 for three.
  const CollectiveCost three = send(f, {{{0, 2}, {1, 0}}, {{0, 3}, {1, 0}}, {{0, 0}, {1, 1}}}, 1e9);
  CHECK(moving_s(three) == Approx(2.0 / 16).epsilon(1e-9));
}

TEST_CASE("a tree of switches: ways join at the lowest switch above both, and adapters are shared by the nearest") {
  Cluster c = two_switches();
  c.node.nics = 2;
  c.node.pcie.switches = {{"top", "", 0, gigabytes(12), {}, {}},
                          {"left", "top", 0, gigabytes(24), {0, 1}, {}},
                          {"right", "top", 0, gigabytes(24), {2}, {0}},
                          {"alone", "", 0, gigabytes(24), {3}, {1}}};
  const Fabric f = build_fabric(c);
  CHECK(f.nics_beside == std::vector<std::vector<int>>{{0}, {0}, {0}, {1}});
  CHECK(moving_s(send(f, {{{0, 0}, {0, 2}}}, 1e9)) == Approx(1.0 / 24).epsilon(1e-9));
  CHECK(moving_s(send(f, {{{0, 0}, {0, 3}}}, 1e9)) == Approx(1.0 / 12).epsilon(1e-9));
  // Both directions of a link are apart.
  CHECK(moving_s(send(f, {{{0, 0}, {0, 3}}, {{0, 3}, {0, 1}}}, 1e9)) == Approx(1.0 / 12).epsilon(1e-9));
  CHECK(f.link_name(f.pcie_links()) == "node-0 top up");
}

TEST_CASE("an all-to-all over PCIe: what crosses the sockets, by single flows and by hand") {
  const Fabric f = build_fabric(two_switches());
  CollectiveOptions o;
  o.protocol = Protocol::simple;
  o.algorithm = "direct";
  // 4 ranks of one node, a quarter of the buffer to each: 4 quarters cross between the sockets each way.
  const CollectiveCost cost =
      Collectives(f, o).cost(Operation::all_to_all, std::vector<Rank>{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, 1e9);
  CHECK(moving_s(cost) == Approx(1.0 / 16).epsilon(1e-9));
}

TEST_CASE("PCIe trees that cannot be are refused") {
  const auto refused = [](const Cluster& c, const std::string& what) {
    INFO(what);
    CHECK_THROWS_WITH(build_fabric(c), Catch::Contains(what));
  };
  Cluster c = two_switches();
  c.node.pcie.switches[1].gpus = {2};
  refused(c, "gpu 3 hangs below none of them");
  c = two_switches();
  c.node.pcie.switches[1].nics = {2, 3, 4};
  refused(c, "there is no nic 4");
  c = two_switches();
  c.node.pcie.switches[1].gpus = {1, 2, 3};
  refused(c, "gpu 1 hangs below two switches");
  c = two_switches();
  c.node.pcie.switches[1].above = "frist";
  refused(c, "did you mean \"first\"?");
  c = two_switches();
  c.node.pcie.inter_socket = {};
  refused(c, "2 sockets without a link between them");
  c = two_switches();
  c.node.pcie.switches[1].socket = 0;
  c.node.pcie.switches[0].above = "second";
  c.node.pcie.switches[1].above = "first";
  refused(c, "switches hang below each other");
}
