#include "power/check_power.hpp"

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "power/network_rule.hpp"
#include "reference_cluster.hpp"
#include "topology/fabric.hpp"

namespace {

using namespace tw;

std::string faults_of(const Cluster& cluster, const std::vector<Activity>& used) {
  Faults faults;
  const Document document;
  check_power(cluster, used, ReadContext{&document, "/cluster", &faults, {}});
  try {
    faults.throw_if_any();
  } catch (const InputError& error) {
    std::string text;
    for (const Fault& fault : error.faults()) text += fault.text() + "\n";
    return text;
  }
  return "";
}

}  // namespace

TEST_CASE("the reference cluster's power data is complete") {
  std::vector<Activity> all;
  for (size_t i = 0; i < kActivities; ++i) all.push_back(static_cast<Activity>(i));
  CHECK(faults_of(test::reference_cluster(), all).empty());
}

TEST_CASE("missing power data is listed at once with examples") {
  Cluster cluster = test::reference_cluster();
  cluster.node.accelerator.power.convolution = watts(0);
  cluster.node.accelerator.power.copy = watts(10);
  cluster.node.power.host_base = watts(0);
  cluster.fabric.switches.nameplate = watts(0);
  const std::string text = faults_of(cluster, {Activity::convolution, Activity::copy});
  CHECK(text.find("/cluster/node/accelerator/power/convolution") != std::string::npos);
  CHECK(text.find("\"convolution\": \"500 W\"") != std::string::npos);
  CHECK(text.find("below idle") != std::string::npos);
  CHECK(text.find("host_base") != std::string::npos);
  CHECK(text.find("nameplate") != std::string::npos);
  // An activity that nothing uses needs no watts.
  CHECK(faults_of(cluster, {}).find("convolution") == std::string::npos);
}

TEST_CASE("idle above maximum and limits below idle are faults") {
  Cluster cluster = test::reference_cluster();
  cluster.node.power.fan_idle = watts(100);
  cluster.node.power.fan_full = watts(50);
  cluster.node.accelerator.board_limit = watts(100);
  cluster.fabric.switches.power.model = SwitchPowerModel::ports;
  cluster.fabric.switches.power.idle = watts(2000);
  cluster.power_delivery.rectifier.rating = watts(100);
  const std::string text = faults_of(cluster, {});
  for (const char* part : {"fan_idle", "fan_full_heat", "board_limit", "above the nameplate", "power_delivery"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("stages of the power delivery have names of their own") {
  Cluster cluster = test::reference_cluster();
  PowerStage stage;
  stage.rating = watts(1e6);
  for (const char* kind : {"PDU", "UPS"})
    cluster.power_delivery.upstream.push_back(stage), cluster.power_delivery.upstream.back().kind = kind;
  CHECK(faults_of(cluster, {}).empty());
  for (const char* kind : {"PDU", "bus", "feed"}) {
    cluster.power_delivery.upstream[1].kind = kind;
    CHECK(faults_of(cluster, {}).find("power_delivery/upstream/1/kind") != std::string::npos);
  }
}

TEST_CASE("switch power by ports and by load") {
  Cluster cluster = test::reference_cluster(2);
  cluster.fabric.switches.power.model = SwitchPowerModel::ports;
  cluster.fabric.switches.power.idle = watts(600);
  cluster.fabric.switches.power.per_port = watts(10);
  cluster.fabric.switches.power.per_load = watts(5);
  const std::vector<int> nodes{0, 1, 2, 3, 4, 5, 6, 7};
  Fabric fabric = build_fabric(cluster);
  // 4 leaves with 40 cables, 16 spines with one cable from each of 4 leaves.
  const double by_ports = 4 * (600 + 400.0) + 16 * (600 + 40.0);
  CHECK(*network_power_w(NetworkRule::whole_switches, fabric, {{nodes, {}}}) == Approx(by_ports));
  fabric.type.switches.power.model = SwitchPowerModel::load;
  CHECK(*network_power_w(NetworkRule::whole_switches, fabric, {{nodes, {}}}) == Approx(by_ports));
  std::vector<double> half;
  for (const Cable& cable : fabric.cables) half.push_back(cable.capacity_Bps);
  const double loaded = *network_power_w(NetworkRule::whole_switches, fabric, {{nodes, half}});
  CHECK(loaded > by_ports);
  CHECK(loaded < by_ports + 20 * 64 * 5 * 0.5);
}
