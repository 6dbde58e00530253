#include "study/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/files.hpp"
#include "core/text.hpp"
#include "facility/facility.hpp"
#include "topology/fabric.hpp"

namespace tw {
namespace {

// Everything that one value cannot tell by itself: what belongs together, what divides, what fits the cluster.
void check_scenario(Scenario& s, const ReadContext& root) {
  if (s.network.has_value() == s.workload.has_value())
    root.fault(
        s.network ? "both \"network\" and \"workload\" are given" : "neither \"network\" nor \"workload\" is given",
        "exactly one: a transformer or a profiled workload");
  if (s.network && !s.training)
    root.fault("missing key \"training\" (how the transformer is trained)", "at least {\"sequence\": 8192}");
  const ReadContext plan = root.at("plan");
  const std::string problem = nodes_problem(s.cluster, s.plan.nodes + s.plan.evaluation_nodes);
  if (!problem.empty()) plan.at("nodes").fault(problem);
  complete_plan(s.plan, s.cluster.node.gpus, plan);
  if (s.network && s.training) {
    if (s.network->kv_heads > 0 && s.network->heads % s.network->kv_heads != 0)
      root.at("network")
          .at("kv_heads")
          .fault(fmt::format("{} key/value heads do not divide {} heads", s.network->kv_heads, s.network->heads));
    check_plan(s.plan, *s.network, *s.training, s.cluster.node.gpus, plan);
    if (s.training->precision == Precision::fp8 && s.cluster.node.accelerator.peak_fp8.value() <= 0)
      root.at("training").at("precision").fault(fmt::format("{} has no FP8", s.cluster.node.accelerator.name), "bf16");
  }
  if (s.workload) {
    double sum = 0;
    for (const auto& [name, share] : s.workload->activities) {
      sum += share;
      std::vector<std::string> known;
      for (const auto& entry : Choices<Activity>::table()) known.push_back(entry.first);
      if (std::find(known.begin(), known.end(), name) == known.end())
        root.at("workload")
            .at("activities")
            .at(name)
            .fault(fmt::format("unknown activity \"{}\"", name), suggest(name, known));
    }
    if (sum > 1 + 1e-9)
      root.at("workload").at("activities").fault(fmt::format("the shares add up to {:.3f}", sum), "at most 1");
    if (s.plan.tp * s.plan.pp * s.plan.cp * s.plan.ep != 1)
      plan.fault("a profiled workload is data parallel only", "tp = pp = cp = ep = 1");
  }
  const RunPlan& run = s.run;
  const ReadContext at_run = root.at("run");
  if (run.samples && run.steps) at_run.fault("both \"samples\" and \"steps\" are given", "one of them");
  if (run.evaluation_interval > 0 && run.evaluation_samples <= 0)
    at_run.at("evaluation_samples").fault("evaluations need samples", "above 0");
  if (run.asynchronous_evaluation && s.plan.evaluation_nodes == 0)
    at_run.at("asynchronous_evaluation").fault("no nodes of their own evaluate", "set /plan/evaluation_nodes");
  check_fabric(s.cluster, root.at("cluster"));
  check_site(s.site, root.at("site"));
}

LoadedScenario finish(const Document& document, const std::string& file, Faults& faults, bool explain) {
  LoadedScenario loaded;
  loaded.file = file;
  Faults mine;
  loaded.scenario = read<Scenario>(document, mine);
  // Values that could not be read would only give follow-up faults.
  if (document.complete() && mine.empty()) check_scenario(loaded.scenario, ReadContext{&document, "", &mine, {}});
  for (const Fault& fault : mine.list()) faults.add(fault);
  if (!document.complete()) return loaded;
  loaded.sha256 = sha256_hex(document.canonical());
  if (explain) loaded.explain = document.explain(description<Scenario>().info());
  return loaded;
}

}  // namespace

LoadedScenario load_scenario(const std::string& file, const std::vector<std::string>& overrides, Faults& faults,
                             bool explain) {
  return finish(Document::load(file, description<Scenario>().info(), overrides, faults), file, faults, explain);
}

LoadedScenario scenario_from_text(const std::string& text, const std::string& name,
                                  const std::vector<std::string>& overrides, Faults& faults) {
  return finish(Document::from_text(text, name, description<Scenario>().info(), overrides, faults), name, faults,
                false);
}

}  // namespace tw
