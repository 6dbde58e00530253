// Money and embodied carbon of a hall.
#include <algorithm>

#include "study/hall_study.hpp"

namespace tw {

void count_money(const LoadedHall& loaded, const hall::HallPlan& plan, hall::HallOutcome& out) {
  if (!loaded.priced) {
    out.cost_energy.reset();
    for (hall::JobOutcome& job : out.jobs) job.cost_energy.reset();
  }
  constexpr double year_s = 365.25 * 86400, month_s = 30 * 86400.0;
  // Of the whole hall a node-second: what is spread evenly, on the nodes that hold jobs.
  const auto spread = [&](const auto& per_node, double per_switch, double per_cable, double years, Maybe& total,
                          Maybe hall::JobOutcome::*share) {
    double sum = 0, held = 0;
    for (size_t c = 0; c < plan.clusters.size(); ++c) {
      const auto node = per_node.find(plan.clusters[c].name);
      if (node == per_node.end()) return;  // a part that is not known makes no sum
      const hall::Cluster& of = plan.clusters[c];
      const double value = of.nodes * node->second.value() + of.switches * per_switch + of.cables * per_cable;
      sum += value * out.end_s / (years * year_s);
    }
    for (const hall::JobOutcome& job : out.jobs) held += job.node_s;
    total = sum;
    for (hall::JobOutcome& job : out.jobs)
      if (held > 0) job.*share = sum * job.node_s / held;
  };
  if (loaded.input.money) {
    const hall::MoneyInput& m = *loaded.input.money;
    if (!m.node.empty())
      spread(m.node, m.network_switch.value(), m.cable.value(), m.years, out.cost_capital,
             &hall::JobOutcome::cost_capital);
    if (m.demand_charge.value() > 0) {
      double sum = 0;
      for (size_t k = 0; k < out.demand_by_month_w.size(); ++k)
        sum += out.demand_by_month_w[k] / 1e3 * m.demand_charge.value() *
               std::min(1.0, (out.end_s - static_cast<double>(k) * month_s) / month_s);
      out.cost_demand = sum;
      double energy = 0;
      for (const hall::JobOutcome& job : out.jobs) energy += job.energy_j;
      for (hall::JobOutcome& job : out.jobs)
        if (energy > 0) job.cost_demand = sum * job.energy_j / energy;
    }
  }
  if (loaded.input.embodied)
    spread(loaded.input.embodied->node, loaded.input.embodied->network_switch.value(), 0, loaded.input.embodied->years,
           out.embodied_kg_co2e, &hall::JobOutcome::embodied_kg_co2e);
  for (hall::JobOutcome& job : out.jobs) {
    for (const Maybe& part : {job.cost_energy, job.cost_demand, job.cost_capital})
      if (part) job.cost = job.cost.value_or(0) + *part;
    if (!job.end_s || job.tokens <= 0) continue;
    if (job.cost) job.cost_per_million_tokens = *job.cost / job.tokens * 1e6;
    job.kwh_per_million_tokens = job.energy_j / joules_per_kwh / job.tokens * 1e6;
  }
}

}  // namespace tw
