#include "study/hall_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "network/process.hpp"
#include "power/network_rule.hpp"
#include "study/result.hpp"
#include "study/simulate.hpp"
#include "topology/fabric.hpp"
#include "topology/placement.hpp"

namespace tw {
namespace {

// Boards at their limit through the conversion, everything else at full load.
double nameplate_w(const NodeType& node) {
  const NodePower& p = node.power;
  return node.gpus * node.accelerator.board_limit.value() * (1 + p.conversion_loss) + p.host_base.value() +
         p.nvswitch_load.value() + p.nic_load.value() + p.fan_full.value();
}

// The building's power for the nodes of a job and its switches, at full load.
double building_w(const Scenario& s, int nodes, double node_w, double network_w) {
  const RectifierType& r = s.cluster.power_delivery.rectifier;
  const PowerDelivery& d = s.cluster.power_delivery;
  const double buses = std::ceil(static_cast<double>(nodes) / d.nodes_per_bus);
  const double loss_w =
      r.fixed_loss.value() * buses * d.shelves_per_bus * d.rectifiers_per_shelf + r.proportional_loss * nodes * node_w;
  return (nodes * node_w + network_w + (s.site.pue_base == PueBase::ac ? loss_w : 0)) * s.site.pue;
}

class Hall {
 public:
  Hall(const LoadedScenario& base, const std::vector<std::string>& overrides, const HallFitOptions& options,
       const std::function<void(size_t, size_t)>& progress)
      : base_(base),
        s_(base.scenario),
        overrides_(overrides),
        options_(options),
        progress_(progress),
        fabric_(build_fabric(s_.cluster)) {
    const int ranks = s_.plan.tp * s_.plan.pp * s_.plan.cp * std::max(1, s_.plan.ep), gpus = s_.cluster.node.gpus;
    out_.step = ranks / std::gcd(ranks, gpus);
    most_ = (s_.cluster.nodes() - s_.plan.evaluation_nodes) / out_.step;
    out_.scenario = s_.name;
    out_.node_nameplate_w = nameplate_w(s_.cluster.node);
  }

  HallFit run() {
    for (const double share : {1.0, options_.derate}) {
      const double limit_w = share * options_.facility_w;
      out_.answers.push_back(largest("simulated peak", limit_w, [&](int n) { return simulated(n); }));
      out_.answers.push_back(largest("nameplate", limit_w, [&](int n) { return by_nameplate(n); }));
      if (options_.derate >= 1) break;
    }
    return std::move(out_);
  }

 private:
  struct Load {
    double peak_w = 0, network_w = 0;
    std::string problem;
  };

  double network_w(int nodes) const {
    const auto w = network_power_w(*s_.network_rule, fabric_,
                                   {{place(fabric_, s_.placement, nodes + s_.plan.evaluation_nodes), {}}});
    if (!w)
      throw InputError(
          {{base_.file, "/network_rule",
            fmt::format("{} does not say what the switches of {} draw", choice_name(*s_.network_rule), s_.cluster.name),
            "as_stated or whole_switches: a hall feeds its switches, too"}});
    return *w;
  }
  int gbs(int nodes) const {
    return static_cast<int>(std::lround(static_cast<double>(s_.plan.gbs) * nodes / s_.plan.nodes));
  }
  Load by_nameplate(int nodes) const {
    const double switches_w = network_w(nodes);
    return {building_w(s_, nodes + s_.plan.evaluation_nodes, out_.node_nameplate_w, switches_w), switches_w, ""};
  }

  Load simulated(int nodes) {
    if (const auto known = known_.find(nodes); known != known_.end()) return known->second;
    std::vector<std::string> set = overrides_;
    for (const char* pointer : {"/plan/dp=null", "/reference=null"}) set.emplace_back(pointer);
    set.push_back(fmt::format("/plan/nodes={}", nodes));
    set.push_back(fmt::format("/plan/gbs={}", gbs(nodes)));
    const ChildResult child = in_child(
        [&] {
          Faults faults;
          const LoadedScenario one = load_scenario(base_.file, set, faults);
          faults.throw_if_any();
          Result r = simulate(one, {options_.seed, 1, 1});
          r.timeline = {}, r.series = {};
          return to_bytes(r);
        },
        options_.deadline_s);
    Load load;
    if (child.error.empty()) {
      const Result r = from_bytes(child.value);
      load = {r.grid.facility.peak_w, network_w(nodes), ""};
      for (const NodePowerResult& node : r.power.per_node) out_.node_peak_w = std::max(out_.node_peak_w, node.peak_w);
    } else {
      load.problem = child.error.substr(0, child.error.find('\n'));
    }
    ++out_.simulated;
    if (progress_) progress_(out_.simulated, out_.simulated + 8);
    return known_[nodes] = load;
  }

  template <class LoadOf>
  HallCount largest(const std::string& by, double limit_w, const LoadOf& load_of) {
    HallCount answer;
    answer.by = by, answer.limit_w = limit_w;
    // Power grows with nodes: [low fits, high does not].
    int low = 0, high = most_ + 1, best = 0;
    std::string problem;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      const Load load = load_of(middle * out_.step);
      problem = load.problem;
      // What does not run (too few replicas to share its memory, say) tells nothing of its power.
      const bool below = (problem.empty() ? load : by_nameplate(middle * out_.step)).peak_w <= limit_w;
      (below ? low : high) = middle;
      if (below && problem.empty()) best = middle, answer.peak_w = load.peak_w, answer.network_w = load.network_w;
    }
    answer.nodes = best * out_.step;
    answer.gbs = gbs(answer.nodes);
    answer.bound = best == most_ ? "nodes of the cluster" : problem.empty() ? "facility power" : problem;
    return answer;
  }

  const LoadedScenario& base_;
  const Scenario& s_;
  const std::vector<std::string>& overrides_;
  const HallFitOptions& options_;
  const std::function<void(size_t, size_t)>& progress_;
  const Fabric fabric_;
  int most_ = 0;
  std::map<int, Load> known_;
  HallFit out_;
};

}  // namespace

HallFit fit_hall(const LoadedScenario& base, const std::vector<std::string>& overrides, const HallFitOptions& options,
                 const std::function<void(size_t, size_t)>& progress) {
  return Hall(base, overrides, options, progress).run();
}

}  // namespace tw
