#include "study/step_detail.hpp"

#include <algorithm>
#include <map>

#include "core/outputs.hpp"
#include "network/metered_engine.hpp"
#include "run/run_model.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

// Bytes that a rank sends in a collective of n ranks on a buffer, as a ring or a direct exchange moves them.
double sent_bytes(Exchange what, double bytes, int n) {
  const double others = (n - 1.0) / n;
  return bytes * others * (what == Exchange::tp_all_reduce || what == Exchange::expert_tp_reduce ? 2 : 1);
}

// What the ranks of one NVLink domain exchange inside the layers, bytes a second and accelerator.
double domain_rate_Bps(const Scenario& s, const Fabric& fabric, double step_s) {
  const Plan& p = s.plan;
  const int domain = fabric.gpus * fabric.nodes_per_domain;
  const auto rate = [&](Exchange e) {  // ranks of an exchange, where all of them stand in one domain
    switch (e) {
      case Exchange::tp_all_gather:
      case Exchange::tp_reduce_scatter:
      case Exchange::tp_all_reduce:
        return p.tp <= domain ? p.tp : 1;
      case Exchange::cp_exchange:
      case Exchange::cp_all_gather:
      case Exchange::cp_reduce_scatter:
      case Exchange::cp_all_to_all:
        return p.tp * p.cp <= domain ? p.cp : 1;
      case Exchange::ep_all_to_all:
        return p.ep * p.expert_tp() <= domain ? p.ep : 1;
      case Exchange::expert_tp_gather:
      case Exchange::expert_tp_scatter:
      case Exchange::expert_tp_reduce:
        return p.expert_tp() <= domain ? p.expert_tp() : 1;
      default:
        return 1;
    }
  };
  double bytes = 0;
  const auto add = [&](const LayerOperations& ops, double times) {
    for (const auto* list : {&ops.forward, &ops.backward})
      for (const Operation& o : *list)
        if (const int n = rate(o.exchange); n > 1) bytes += times * sent_bytes(o.exchange, o.bytes, n);
  };
  for (const auto& [kind, count] :
       count_kinds(layers_as_trained(*s.network, *s.training, layers_of_chunks(*s.network, p)), 0, s.network->layers))
    add(layer_operations(*s.network, kind, *s.training, p, s.software), static_cast<double>(count) / p.pp);
  add(embedding_operations(*s.network, *s.training, p, s.software), 1.0 / p.pp);
  add(head_operations(*s.network, *s.training, p, s.software), 1.0 / p.pp);
  return bytes * p.ga() / step_s;
}

std::vector<TierLoad> tier_loads(const Scenario& s, const RunModel& model, const Fabric& fabric,
                                 const network::MeteredEngine& meter) {
  const StepNetwork& network = model.network;
  std::vector<double> rates(network.links.size(), 0);
  for (size_t c = 0; c < network.classes.size(); ++c) {
    if (std::find(network.others.begin(), network.others.end(), static_cast<int>(c)) != network.others.end()) continue;
    for (const network::LinkUse& use : network.classes[c].uses)
      rates[static_cast<size_t>(use.link)] += use.weight * meter.rate_Bps(c);
  }
  std::vector<TierLoad> tiers;
  const auto tier = [&](const std::string& name) -> TierLoad& {
    for (TierLoad& t : tiers)
      if (t.tier == name) return t;
    return tiers.emplace_back(TierLoad{name});
  };
  for (size_t l = 0; l < rates.size() && l < network.link_ids.size(); ++l) {
    if (rates[l] <= 0) continue;
    TierLoad& t = tier(fabric.link_class(network.link_ids[l]));
    t.capacity_Bps = network.links[l].capacity_Bps;
    t.busiest_Bps = std::max(t.busiest_Bps, rates[l]);
    t.mean_Bps += (rates[l] - t.mean_Bps) / ++t.links;
  }
  if (const double inside = s.network ? domain_rate_Bps(s, fabric, model.quiet.time_s) : 0; inside > 0) {
    TierLoad& t = tier("NVLink");
    t.capacity_Bps = fabric.nvlink_Bps, t.busiest_Bps += inside, t.mean_Bps += inside, t.links = std::max(t.links, 2);
  }
  return tiers;
}

}  // namespace

void TierLoad::describe(Outputs<TierLoad>& d) {
  d.output("tier", &TierLoad::tier);
  d.output("links", &TierLoad::links);
  d.output("capacity_Bps", &TierLoad::capacity_Bps);
  d.output("busiest_Bps", &TierLoad::busiest_Bps);
  d.output("mean_Bps", &TierLoad::mean_Bps);
}

void StepDetail::describe(Outputs<StepDetail>& d) {
  d.output("memory", &StepDetail::memory);
  d.output("kernels", &StepDetail::kernels);
  d.output("tiers", &StepDetail::tiers);
}

StepDetail step_detail(const Scenario& s, const RunModel& model, const Fabric& fabric,
                       const network::MeteredEngine& meter, int stage) {
  StepDetail d;
  d.tiers = tier_loads(s, model, fabric, meter);
  if (!s.network) return d;
  const auto work = memory_work(s.plan);
  const StageCurves curves = memory_curves(*s.network, *s.training, s.plan, s.software,
                                           layers_of_chunks(*s.network, s.plan), work[static_cast<size_t>(stage)]);
  d.memory = step_memory(curves, model.spans, stage, model.quiet.time_s);
  d.kernels = step_kernels(run_inputs(s).step, model.slowdown);
  return d;
}

}  // namespace tw
