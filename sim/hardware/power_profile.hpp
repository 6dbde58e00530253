// Power of the parts of a node beside its accelerators, and of rectifiers: what stands in models/power/*.json.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

struct NodePower {
  Power host_base;                 // CPUs, memory, NVSwitches, NICs and drives of a node that is on
  double conversion_loss = 0;      // share of the accelerators' power lost between bus and board
  std::optional<Power> gap_power;  // of one accelerator between the kernels of a step; absent: that of spinning
  Power nvswitch_load;             // added when the accelerators spend all their time in collectives
  Power nic_load;                  // added when the NICs do (jobs of two nodes and more)
  Power fan_idle;                  // air-cooled nodes: fans at low speed; immersed nodes have none
  Power fan_full;                  // fans at full speed
  Power fan_full_heat;             // heat of the node at which the fans run at full speed
  double fan_exponent = 3;         // fan power over flow: 3 by the affinity laws
  double spread = 0;               // relative standard deviation of a node's power from board to board
  std::string source;
  static void describe(Description<NodePower>& d);
};

struct RectifierType {
  Power rating;
  Power fixed_loss;                                   // of one rectifier that is on
  double proportional_loss = 0;                       // share of its DC output
  Voltage input_voltage = volts(230);                 // phase to neutral
  Temperature ambient = Temperature::from_value(35);  // inlet: its temperature at no load
  Temperature rise = Temperature::from_value(25);     // above that at its rating
  std::string source;
  static void describe(Description<RectifierType>& d);
};

// A battery shelf (BBU) on a DC bus.
struct BatteryProfile {
  Energy capacity;
  Power power;                      // most it gives
  double discharge_efficiency = 1;  // given to the bus over what leaves the cells
  double charge_efficiency = 1;
  Power recharge;  // most that it takes from the rectifiers
  std::string source;
  static void describe(Description<BatteryProfile>& d);
};

enum class SwitchPowerModel { nameplate, ports, load };

// What a switch draws, beside its nameplate: chassis, cabled ports, traffic.
struct SwitchPower {
  SwitchPowerModel model = SwitchPowerModel::nameplate;
  Power idle;      // no cable plugged in
  Power per_port;  // of a cabled port without traffic
  Power per_load;  // added to a port at full load, both directions
  std::string source;
  static void describe(Description<SwitchPower>& d);
};

// What must still carry the load when one part has failed.
enum class Redundancy { n, n_plus_1, two_n };
template <>
struct Choices<Redundancy> {
  static std::vector<std::pair<std::string, Redundancy>> table();
};

// A stage between the grid and the power shelves: PDU, UPS, transformer.
struct PowerStage {
  std::string kind;
  int feeds = 1;                 // units of the stage below that one unit feeds; of the lowest stage: buses
  Power rating;                  // output of one unit with the modules it needs
  int modules = 1;               // that share the load of a unit; n+1 adds a spare one, 2n a second unit
  Power fixed_loss;              // of one unit without its spare, at no load
  double proportional_loss = 0;  // share of the output
  double square_loss = 0;        // share of the output at the rating; grows with the load
  Redundancy redundancy = Redundancy::n;
  std::string source;
  static void describe(Description<PowerStage>& d);
};

}  // namespace tw
