// A scenario: what runs where, for how long, compared with what (scenarios/*.json).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/document.hpp"
#include "facility/hourly_series.hpp"
#include "facility/site.hpp"
#include "power/network_rule.hpp"
#include "run/benchmark.hpp"
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
  static void describe(Description<Measured>& d) {
    d.object("measured", "A measured figure.");
    d.required("quantity", &Measured::quantity, "a quantity of the result contract, such as step_s or dc_mlperf_j");
    d.required("value", &Measured::value, "what was measured, in the unit of the result");
    d.required("unit", &Measured::unit, "its unit");
    d.optional("kind", &Measured::kind, "fitted, predicted or given");
  }
};

struct Reference {
  std::string source;
  std::vector<Measured> rows;
  std::string trace;  // CSV of node watts over time, for figures
  static void describe(Description<Reference>& d) {
    d.object("reference", "What was measured.");
    d.required("source", &Reference::source, "where the measurement comes from");
    d.optional("rows", &Reference::rows, "measured figures");
    d.optional("trace", &Reference::trace, "CSV with a measured power trace");
  }
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
  NetworkRule network_rule = NetworkRule::as_published;
  Reference reference;
  std::optional<Benchmark> benchmark;
  static void describe(Description<Scenario>& d) {
    d.object("scenario", "What runs where, for how long, compared with what.");
    d.required("name", &Scenario::name, "name of the scenario");
    d.optional("description", &Scenario::description, "what it shows");
    d.optional("network", &Scenario::network, "the transformer that is trained");
    d.optional("workload", &Scenario::workload, "or a profiled workload");
    d.optional("training", &Scenario::training, "how a transformer is trained");
    d.required("cluster", &Scenario::cluster, "the cluster");
    d.required("software", &Scenario::software, "the software release");
    d.required("plan", &Scenario::plan, "the parallel plan");
    d.optional("run", &Scenario::run, "how long it runs");
    d.required("site", &Scenario::site, "the site");
    d.optional("placement", &Scenario::placement, "which nodes of the cluster the job gets (default: the first)");
    d.optional("jobs", &Scenario::jobs, "other jobs on the same fabric");
    d.optional("traffic", &Scenario::traffic, "storage or background traffic on the same fabric");
    d.optional("network_rule", &Scenario::network_rule, "how switch power is apportioned to the job");
    d.optional("reference", &Scenario::reference, "what was measured");
    d.optional("benchmark", &Scenario::benchmark, "the MLPerf Training benchmark that this is, for logs in its form");
  }
};

// A scenario that passed every check, with what the report wants to know about its inputs.
struct LoadedScenario {
  Scenario scenario;
  SiteSeries site_series;  // where the site names hourly series
  std::string file;
  std::string sha256;   // of the effective inputs
  std::string explain;  // filled only on request
};

// Reads and checks a scenario. All faults go to `faults`; the value is then not to be used.
LoadedScenario load_scenario(const std::string& file, const std::vector<std::string>& overrides, Faults& faults,
                             bool explain = false);
LoadedScenario scenario_from_text(const std::string& text, const std::string& name,
                                  const std::vector<std::string>& overrides, Faults& faults);

}  // namespace tw
