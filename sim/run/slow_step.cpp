#include "run/slow_step.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace tw {

Cluster with_slow_cables(const Cluster& cluster, const std::vector<SlowCable>& cables, const std::vector<bool>& slow) {
  Cluster changed = cluster;
  for (size_t i = 0; i < cables.size(); ++i) {
    if (!slow[i]) continue;
    if (cables[i].bandwidth)
      changed.fabric.cable_changes.push_back({cables[i].cable, *cables[i].bandwidth});
    else
      changed.fabric.failed.push_back(cables[i].cable);
  }
  return changed;
}

namespace {

class SlowSteps {
 public:
  SlowSteps(const RunInputs& in, const RunModel& model, const std::vector<int>& nodes)
      : in_(in), model_(model), nodes_(nodes) {}

  double pace(const std::vector<double>& by_node, const std::vector<bool>& cables) {
    const double most = *std::max_element(by_node.begin(), by_node.end());
    const bool any_cable = std::find(cables.begin(), cables.end(), true) != cables.end();
    const bool stages = in_.step.plan->pp > 1;
    if (!any_cable && (!stages || most <= 1)) return most;
    const std::vector<double> workers = stages ? by_worker(by_node) : std::vector<double>{};
    const double ratio = known(workers, cables) / known({}, std::vector<bool>(cables.size(), false));
    return stages ? ratio : ratio + most - 1;
  }

 private:
  // A worker's visits wait for the slowest of its ranks; one that stands for all replicas is the slowest of all.
  std::vector<double> by_worker(const std::vector<double>& by_node) const {
    const Plan& plan = *in_.step.plan;
    const int gpus = in_.step.cluster->node.gpus, ranks = plan.tp * plan.cp, replicas = model_.replicas;
    std::vector<double> slow(static_cast<size_t>(plan.pp * replicas), 1);
    for (int r = 0; r < ranks * plan.dp * plan.pp; ++r) {
      const int stage = r / ranks / plan.dp, replica = replicas > 1 ? r / ranks % plan.dp : 0;
      double& worker = slow[static_cast<size_t>(stage * replicas + replica)];
      worker = std::max(worker, by_node[static_cast<size_t>(r / gpus)]);
    }
    return slow;
  }

  double known(const std::vector<double>& workers, const std::vector<bool>& cables) {
    const auto [at, fresh] = times_.try_emplace({workers, cables}, 0.0);
    if (fresh) at->second = time_s(workers, cables);
    return at->second;
  }

  double time_s(const std::vector<double>& workers, const std::vector<bool>& cables) const {
    StepInputs in = in_.step;
    const Cluster cluster = with_slow_cables(*in.cluster, in_.run->slow_cables, cables);
    in.cluster = &cluster;
    const Fabric fabric = build_fabric(cluster);
    const StepNetwork network = build_step_network(in, fabric, nodes_, model_.replicas);
    StepPlan plan = plan_step(in, network, model_.slowdown);
    plan.noise = HostNoise{};
    plan.slow = workers;
    const auto engine = network::fluid_engine(network.links, network.classes);
    return simulate_step(plan, network, *engine, model_.replicas, 0, 0).time_s;
  }

  const RunInputs& in_;
  const RunModel& model_;
  std::vector<int> nodes_;
  std::map<std::pair<std::vector<double>, std::vector<bool>>, double> times_;
};

}  // namespace

std::function<double(const std::vector<double>&, const std::vector<bool>&)> slow_pace(const RunInputs& in,
                                                                                      const RunModel& model,
                                                                                      const std::vector<int>& nodes) {
  const auto steps = std::make_shared<SlowSteps>(in, model, nodes);
  return [steps](const std::vector<double>& by_node, const std::vector<bool>& cables) {
    return steps->pace(by_node, cables);
  };
}

}  // namespace tw
