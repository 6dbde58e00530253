// Every shipped scenario says what it takes from the grid, or why not.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

#include "study/simulate.hpp"

namespace tw {
namespace {

std::vector<LoadedScenario> shipped() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios"))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<LoadedScenario> list;
  Faults faults;
  for (const std::string& file : files) list.push_back(load_scenario(file, {}, faults));
  faults.throw_if_any();
  return list;
}

size_t warnings_about(const Result& r, const char* what) {
  return static_cast<size_t>(std::count_if(r.warnings.begin(), r.warnings.end(), [&](const std::string& w) {
    return w.find(what) != std::string::npos;
  }));
}

}  // namespace

TEST_CASE("every shipped scenario has energy, carbon and cost, or one warning that says why") {
  SimulationOptions options;
  options.runs = 1;
  for (const Outcome& outcome : simulate_all(shipped(), options, 2, 120, {})) {
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

}  // namespace tw
