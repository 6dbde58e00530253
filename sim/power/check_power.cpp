#include "power/check_power.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "power/bus.hpp"
#include "power/node_power.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {
namespace {

constexpr double kMostRectifiers = 2e6;  // of the largest cluster with eight for two nodes; each is followed in time

}

void check_power(const Cluster& cluster, const std::vector<Activity>& used, const ReadContext& at) {
  const GpuPower& gpu = cluster.node.accelerator.power;
  const ReadContext board = at.at("node").at("accelerator");
  const ReadContext watts_at = board.at("power");
  for (const Activity a : used) {
    const std::string name = choice_name(a);
    const double w = gpu.of(a).value();
    if (!(w > 0))
      watts_at.at(name).fault("no watts for an activity in use", fmt::format("example: \"{}\": \"500 W\"", name));
    else if (a != Activity::idle && w < gpu.idle.value())
      watts_at.at(name).fault(fmt::format("{} is below idle, {}", to_text(gpu.of(a)), to_text(gpu.idle)),
                              "a busy board draws no less than an idle one");
  }
  if (!(gpu.idle.value() > 0)) watts_at.at("idle").fault("no watts", "example: \"idle\": \"72 W\"");
  if (gpu.context < gpu.idle)
    watts_at.at("context").fault(fmt::format("{} is below idle, {}", to_text(gpu.context), to_text(gpu.idle)),
                                 "a board with a job draws no less than one without");
  if (cluster.node.accelerator.board_limit <= gpu.context)
    board.at("board_limit")
        .fault(fmt::format("{} is not above what the board draws with a job loaded, {}",
                           to_text(cluster.node.accelerator.board_limit), to_text(gpu.context)),
               "the limit must leave room for work");
  const NodePower& node = cluster.node.power;
  const ReadContext node_at = at.at("node").at("power");
  if (!(node.host_base.value() > 0)) node_at.at("host_base").fault("no watts", "example: \"host_base\": \"1600 W\"");
  if (node.fan_idle > node.fan_full)
    node_at.at("fan_idle")
        .fault(fmt::format("{} is above fan_full, {}", to_text(node.fan_idle), to_text(node.fan_full)),
               "idle is at most full");
  if (node.fan_full.value() > 0 && !(node.fan_full_heat.value() > 0))
    node_at.at("fan_full_heat")
        .fault("fans without the heat at which they run at full speed", "example: \"fan_full_heat\": \"10 kW\"");
  const SwitchType& type = cluster.fabric.switches;
  const ReadContext switch_at = at.at("fabric").at("switch");
  const FabricKind* const kind = find_kind(cluster.fabric);
  const bool switched = kind != nullptr && kind->own_switches && kind->levels(cluster.fabric) != 1;
  if (!(type.nameplate.value() > 0) && type.power.model == SwitchPowerModel::nameplate && switched)
    switch_at.at("nameplate").fault("no watts", "example: \"nameplate\": \"1610 W\"");
  if (type.power.model != SwitchPowerModel::nameplate) {
    const double most_w =
        type.power.idle.value() + type.ports * (type.power.per_port.value() + type.power.per_load.value());
    if (!(most_w > 0))
      switch_at.at("power").fault("no watts",
                                  "example: \"power\": {\"model\": \"ports\", \"idle\": \"600 W\", "
                                  "\"per_port\": \"10 W\"}");
    if (type.nameplate.value() > 0 && type.power.idle > type.nameplate)
      switch_at.at("power").at("idle").fault(
          fmt::format("{} is above the nameplate, {}", to_text(type.power.idle), to_text(type.nameplate)),
          "idle is at most the maximum");
  }
  const PowerDelivery& delivery = cluster.power_delivery;
  std::set<std::string> taken{"feed", "shelf", "rectifier", "bus", "node"};
  for (size_t i = 0; i < delivery.upstream.size(); ++i)
    if (const std::string& kind = delivery.upstream[i].kind; !taken.insert(kind).second)
      at.at("power_delivery")
          .at("upstream")
          .at(i)
          .at("kind")
          .fault(fmt::format("\"{}\" names another stage already", kind),
                 "a name of its own, such as \"PDU\" or \"UPS-2\"");
  const double buses = std::ceil(static_cast<double>(cluster.nodes()) / delivery.nodes_per_bus);
  const double rectifiers = buses * delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
  if (rectifiers > kMostRectifiers)
    at.at("power_delivery")
        .fault(fmt::format("the cluster would have {:.0f} rectifiers", rectifiers),
               fmt::format("at most {:.0f}: fewer shelves a bus, or rectifiers a shelf", kMostRectifiers));
  const double idle_bus_w =
      delivery.nodes_per_bus * idle_node(cluster.node, cluster.node.accelerator.board_limit).total();
  if (idle_bus_w > bus_rating_w(delivery))
    at.at("power_delivery")
        .fault(fmt::format("idle nodes of a bus draw {:.0f} W, its rectifiers give {:.0f} W", idle_bus_w,
                           bus_rating_w(delivery)),
               "fewer nodes a bus, or more rectifiers");
}

}  // namespace tw
