#include "power/energy_window.hpp"

#include "core/sum.hpp"

namespace tw {
namespace {

void add_network(EnergyWindow& window, std::optional<double> network_j) {
  window.network_j = network_j;
  if (!network_j) return;
  window.total_dc_j = window.nodes_dc_j + *network_j;
  window.total_ac_j = *window.total_dc_j + window.rectifier_loss_j;
}

}  // namespace

EnergyWindow run_window(const PowerRun& run, std::optional<double> network_w) {
  EnergyWindow window;
  window.nodes_dc_j = run.nodes_dc_j;
  window.rectifier_loss_j = run.rectifier_loss_j + run.battery_j;
  add_network(window, network_w ? std::optional(*network_w * run.duration_s()) : std::nullopt);
  return window;
}

EnergyWindow mlperf_window(const Cluster& cluster, const PowerRun& run, std::optional<double> network_w,
                           double before_s, double after_s, double rcp_factor) {
  const double from_s = run.run_begin_s - before_s;
  const double to_s = run.run_end_s + after_s;
  const double file_s = to_s - from_s;
  const double scale = file_s > 0 ? run.duration_s() / file_s * rcp_factor : 0;
  Sum dc_j, loss_j;
  for (size_t i = 0; i < run.nodes.size(); ++i) dc_j.add(run.node_j(i, from_s, to_s));
  EnergyWindow window;
  window.nodes_dc_j = dc_j.value() * scale;
  for (const BusPowerRun& bus : run.buses) loss_j.add(bus.loss_between_j(cluster.power_delivery, from_s, to_s));
  window.rectifier_loss_j = loss_j.value() * scale + run.battery_j * rcp_factor;
  window.rcp_factor = rcp_factor;
  add_network(window, network_w ? std::optional(*network_w * run.duration_s() * rcp_factor) : std::nullopt);
  return window;
}

}  // namespace tw
