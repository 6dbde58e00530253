#include "hardware/power_profile.hpp"

#include "core/codec.hpp"

namespace tw {

std::vector<std::pair<std::string, Redundancy>> Choices<Redundancy>::table() {
  return {{"n", Redundancy::n}, {"n+1", Redundancy::n_plus_1}, {"2n", Redundancy::two_n}};
}

void NodePower::describe(Description<NodePower>& d) {
  d.object("node_power", "Power of a node beside its accelerators.");
  d.required("host_base", &NodePower::host_base, "constant power of the host, its NICs, switches and drives");
  d.optional("conversion_loss", &NodePower::conversion_loss, "loss between the bus and the accelerators, as a share",
             between(0, 0.5));
  d.optional("gap_power", &NodePower::gap_power,
             "one accelerator in the gaps between kernels of training steps, with what its host draws more than at "
             "rest; absent: as spinning");
  d.optional("nvswitch_load", &NodePower::nvswitch_load,
             "power added by the NVLink switches when accelerators communicate all the time");
  d.optional("nic_load", &NodePower::nic_load,
             "power added by the network adapters when accelerators communicate all the time over the fabric");
  d.optional("fan_idle", &NodePower::fan_idle, "fans at their lowest speed; immersed nodes have none");
  d.optional("fan_full", &NodePower::fan_full, "fans at full speed");
  d.optional("fan_full_heat", &NodePower::fan_full_heat, "heat of the node at which its fans run at full speed");
  d.optional("fan_exponent", &NodePower::fan_exponent, "fan power goes with flow to this power", between(1, 4));
  d.optional("spread", &NodePower::spread, "relative standard deviation of power from node to node", between(0, 0.2));
  d.optional("source", &NodePower::source, "where the numbers come from");
}

void RectifierType::describe(Description<RectifierType>& d) {
  d.object("rectifier", "An AC to DC rectifier.");
  d.required("rating", &RectifierType::rating, "rated DC output", above(0));
  d.required("fixed_loss", &RectifierType::fixed_loss, "loss at no load");
  d.required("proportional_loss", &RectifierType::proportional_loss, "loss as a share of the DC output", between(0, 1));
  d.optional("input_voltage", &RectifierType::input_voltage, "AC input, phase to neutral", above(0));
  d.optional("ambient", &RectifierType::ambient, "temperature without load, for telemetry");
  d.optional("rise", &RectifierType::rise, "temperature rise at the rating, for telemetry");
  d.optional("source", &RectifierType::source, "where the numbers come from");
}

void BatteryProfile::describe(Description<BatteryProfile>& d) {
  d.object("battery", "A battery shelf (BBU) on a DC bus.");
  d.required("capacity", &BatteryProfile::capacity, "usable energy of its cells", above(0));
  d.required("power", &BatteryProfile::power, "most that it gives to the bus", above(0));
  d.optional("discharge_efficiency", &BatteryProfile::discharge_efficiency,
             "given to the bus over what leaves the cells", Range{0, 1, true});
  d.optional("charge_efficiency", &BatteryProfile::charge_efficiency, "stored over what is taken", Range{0, 1, true});
  d.required("recharge", &BatteryProfile::recharge, "most that it takes from the rectifiers", above(0));
  d.optional("source", &BatteryProfile::source, "where the numbers come from");
}

void SwitchPower::describe(Description<SwitchPower>& d) {
  d.object("switch_power", "Power of a switch: chassis, cabled ports, traffic.");
  d.optional("model", &SwitchPower::model, "nameplate; ports: idle + cabled ports; load: with traffic too");
  d.optional("idle", &SwitchPower::idle, "chassis without cables");
  d.optional("per_port", &SwitchPower::per_port, "of a cabled port without traffic");
  d.optional("per_load", &SwitchPower::per_load, "added to a port at full load");
  d.optional("source", &SwitchPower::source, "where the numbers come from");
}

void PowerStage::describe(Description<PowerStage>& d) {
  d.object("power_stage", "A stage between the grid and the power shelves, such as a PDU or a UPS.");
  d.required("kind", &PowerStage::kind, "what it is: PDU, UPS, transformer");
  d.optional("feeds", &PowerStage::feeds, "units of the stage below (buses, for the first) that one unit feeds",
             between(1, 1e6));
  d.required("rating", &PowerStage::rating, "output of one unit", above(0));
  d.optional("modules", &PowerStage::modules, "modules that share the load of a unit", between(1, 1000));
  d.optional("fixed_loss", &PowerStage::fixed_loss, "loss of one unit at no load");
  d.optional("proportional_loss", &PowerStage::proportional_loss, "loss as a share of the output", between(0, 1));
  d.optional("square_loss", &PowerStage::square_loss, "loss at the rating that grows with the square of the load",
             between(0, 1));
  d.optional("redundancy", &PowerStage::redundancy, "n, n+1 (a spare module) or 2n (a second unit)");
  d.optional("source", &PowerStage::source, "where the numbers come from");
}

}  // namespace tw
