// What a result says beside its numbers, where an input does not go with the others.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/document.hpp"
#include "hardware/accelerator.hpp"
#include "simulated.hpp"
#include "topology/cluster.hpp"

namespace tw {
namespace {

bool tells(const std::string& file, const std::vector<std::string>& set, const char* what) {
  const Result r = result(file, set);
  CAPTURE(file, r.error);
  CHECK(r.error.empty());
  return std::any_of(r.warnings.begin(), r.warnings.end(),
                     [&](const std::string& w) { return w.find(what) != std::string::npos; });
}

}  // namespace

TEST_CASE("hosts without noise are told, and no large cluster that is shipped has such hosts") {
  const char* said = "its hosts have no noise";
  CHECK(tells(kLlama, {"/plan/nodes=4", "/cluster/hosts/noise/host_sigma=0", "/cluster/hosts/noise/device_sigma=0"},
              said));
  CHECK_FALSE(tells(kLlama, {"/plan/nodes=4"}, said));
  CHECK_FALSE(tells(kLlama, {"/plan/nodes=4", "/cluster=topologies/superpod-h100-16384.json"}, said));
}

TEST_CASE("a building that takes less than what it holds is told") {
  const char* said = "PUE and losses do not belong together";
  CHECK(tells(k8, {"/cluster/power_delivery/rectifier/proportional_loss=0.3"}, said));
  CHECK_FALSE(tells(k8, {}, said));
}

TEST_CASE("tensor parallelism that leaves the NVLink domain is told") {
  const char* said = "leaves the NVLink domain";
  CHECK(tells(kLlama, {"/plan/tp=16", "/plan/nodes=4"}, said));
  CHECK_FALSE(tells(kLlama, {"/plan/tp=8", "/plan/nodes=4"}, said));
}

TEST_CASE("a release whose settings are of racks warns on nodes, and the other way round") {
  const char *racks = "recipes for racks whose nodes NVLink joins", *nodes = "recipes for nodes where NVLink ends";
  const std::string rack = "/cluster=topologies/gb200-nvl72.json", node = "/cluster=topologies/superpod-b200.json";
  const auto with = [](const char* release) { return std::string("/software=models/software/") + release + ".json"; };
  CHECK(tells(kLlama, {node, with("nemo-26.06")}, racks));
  CHECK(tells(kLlama, {rack, "/plan/nodes=2", with("nemo-experts")}, nodes));
  for (const char* release : {"nemo-25.09", "nemo-26.04", "nemo-26.06"})
    CHECK_FALSE(tells(kLlama, {rack, "/plan/nodes=2", with(release)}, "recipes for"));
  for (const char* release : {"nemo-25.09", "nemo-26.04", "nemo-experts"})
    CHECK_FALSE(tells(kLlama, {node, with(release)}, "recipes for"));
}

TEST_CASE("a rack's accelerators are those of their profile, watts and peaks") {
  for (const char* name : {"gb200", "gb300"}) {
    CAPTURE(name);
    const auto rack = load<Cluster>(std::string("topologies/") + name + "-nvl72.json").node.accelerator;
    const auto chip = load<Accelerator>(std::string("models/accelerators/") + name + ".json");
    CHECK(rack.name == chip.name);
    CHECK(rack.board_limit.value() == chip.board_limit.value());
    for (const Precision p : {Precision::bf16, Precision::fp8}) CHECK(rack.peak(p).value() == chip.peak(p).value());
  }
}

}  // namespace tw
