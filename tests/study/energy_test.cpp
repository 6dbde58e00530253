// Every shipped scenario says what it takes from the grid, or why not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "paths.hpp"
#include "simulated.hpp"

namespace tw {
namespace {

std::vector<LoadedScenario> shipped() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/scenarios"))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<LoadedScenario> list;
  Faults faults;
  for (const std::string& file : files) list.push_back(load_scenario(file, {}, faults));
  faults.throw_if_any();
  return list;
}

size_t warnings_about(const Result& r, const char* what) {
  return static_cast<size_t>(std::count_if(r.warnings.begin(), r.warnings.end(),
                                           [&](const std::string& w) { return w.find(what) != std::string::npos; }));
}

}  // namespace

TEST_CASE("every shipped scenario has energy, carbon and cost, or one warning that says why") {
  SimulationOptions options;
  options.runs = 1;
  for (const Outcome& outcome : simulate_all(shipped(), options, 2, 600, {})) {
    const Result& r = outcome.result;
    INFO(r.scenario);
    REQUIRE(r.error.empty());
    CHECK(r.power.network_w.has_value());
    CHECK(r.energy.total_dc_j.has_value());
    CHECK(r.energy.facility_j.has_value());
    CHECK(r.carbon.kg_co2e.has_value());
    CHECK(r.grid.facility.mean_w > 0);
    const bool priced = std::any_of(r.cost.begin(), r.cost.end(), [](const auto& c) { return c.second.has_value(); });
    CHECK(warnings_about(r, "no price") == (priced ? 0 : 1));
    // Parts add up: the building carries the nodes, their network and what the delivery loses.
    CHECK(*r.energy.total_dc_j == Approx(*r.energy.nodes_dc_j + *r.energy.network_j).epsilon(1e-12));
  }
}

TEST_CASE("traffic of the step acts on by_load and on switch power by load") {
  const Result r = result(k8);
  const auto by = [&](const char* rule) { return *r.power.network_w_by_rule.at(rule); };
  CHECK(by("by_load") > 0);
  CHECK(by("by_load") < by("as_stated"));
  // A step that exchanges as much in more time keeps its cables less busy.
  const Result slower = result(k8, {"/cluster/node/accelerator/board_limit=500 W"});
  CHECK(*slower.power.network_w_by_rule.at("by_load") < by("by_load"));
  const std::string ports = R"({"model": "ports", "idle": "600 W", "per_port": "10 W", "per_load": "10 W"})";
  const std::string load = R"({"model": "load", "idle": "600 W", "per_port": "10 W", "per_load": "10 W"})";
  const double still_w = *result(k8, {"/cluster/fabric/switch/power=" + ports}).power.network_w;
  const double busy_w = *result(k8, {"/cluster/fabric/switch/power=" + load}).power.network_w;
  CHECK(busy_w > still_w);
  CHECK(busy_w < still_w * 1.5);
}

TEST_CASE("neighbours that are known share the switches, and a job on every node pays for all that it reaches") {
  const Result alone = result(k8);
  const Result shared = result(
      k8,
      {R"(/jobs=[{"name": "other", "nodes": ["node-8", "node-9", "node-10", "node-11"], "size": "1 MB", "compute": "1 s"},)"
       R"( {"name": "third", "nodes": ["node-12", "node-18"], "size": "1 MB", "compute": "1 s"}])"});
  // By ports a job pays for its own, whoever has the others; whole switches are shared.
  CHECK(*shared.power.network_w_by_rule.at("as_stated") <= *alone.power.network_w_by_rule.at("as_stated"));
  CHECK(*shared.power.network_w_by_rule.at("whole_switches") < *alone.power.network_w_by_rule.at("whole_switches"));
  const Result all = result(k8, {"/cluster/fabric/units=2", "/plan/nodes=12", "/plan/gbs=12"});
  CHECK(*all.power.network_w_by_rule.at("as_stated") == Approx(20 * 1610));
}

TEST_CASE("a rule that is undefined for the fabric is refused") {
  Faults faults;
  load_scenario("scenarios/mlperf-lora.json", {"/network_rule=as_published"}, faults);
  CHECK(faults.size() == 1);
}

}  // namespace tw
