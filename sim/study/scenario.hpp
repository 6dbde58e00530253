// A scenario: what runs where, for how long, compared with what (scenarios/*.json).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "facility/hourly_series.hpp"
#include "facility/site.hpp"
#include "run/run_plan.hpp"
#include "study/neighbours.hpp"
#include "topology/cluster.hpp"
#include "workload/plan.hpp"
#include "workload/software.hpp"

namespace tw {

// A measured figure beside the predicted one.
struct Measured {
  std::string quantity;
  double value = 0;
  std::string unit;
  std::string kind = "predicted";
  static void describe(Description<Measured>& d);
};

struct Reference {
  std::string source;
  std::vector<Measured> rows;
  std::string trace;  // CSV of node watts over time, for figures
  static void describe(Description<Reference>& d);
};

struct Scenario {
  std::string name;
  std::string description;
  std::optional<Architecture> network;
  std::optional<ProfiledWorkload> workload;
  std::optional<Training> training;
  Cluster cluster;
  Software software;
  Plan plan;
  RunPlan run;
  Site site;
  NodePlacement placement;
  std::vector<NeighbourJob> jobs;
  std::vector<BackgroundTraffic> traffic;
  std::optional<NetworkRule> network_rule;  // of a loaded scenario always there: its own, or its cluster's
  Reference reference;
  std::string benchmark;  // of models/benchmarks; empty: none
  static void describe(Description<Scenario>& d);
};

// A scenario that passed every check, with what the report wants to know about its inputs.
struct LoadedScenario {
  Scenario scenario;
  SiteSeries site_series;  // where the site names hourly series
  std::string file;
  std::string sha256;   // of the effective inputs
  std::string explain;  // filled only on request
  std::vector<std::string> warnings;
};

// Reads and checks a scenario. All faults go to `faults`; the value is then not to be used.
LoadedScenario load_scenario(const std::string& file, const std::vector<std::string>& overrides, Faults& faults,
                             bool explain = false);

}  // namespace tw
