// Telemetry as operators log it: SQLite or CSV, at any interval, of every node, bus, rectifier and switch of a job.
//
// A reading is the mean over its interval (as an energy counter gives), so sums of watts * seconds are the energies of
// the report to rounding. Tables:
//   runs(run_id, scenario, seed, cluster, run_start_s, run_stop_s, interval_s, network_rule)
//   nodes(node_id, name, bus_id, role)           buses(bus_id, name, voltage_v, rating_w)
//   rectifiers(rectifier_id, bus_id, shelf, slot, rating_w, ...)  switches(switch_id, name, tier, share, watts)
//   node_readings(run_id, time_s, seconds, node_id, watts)
//   bus_readings(run_id, time_s, seconds, bus_id, dc_w, ac_w, supply_w, rectifiers_on)
// Views, of what follows from other rows:
//   rectifier_readings(run_id, time_s, seconds, rectifier_id, input_v, input_a, input_w, output_v, output_a, output_w,
//                      temperature_c)
//   switch_readings(run_id, time_s, seconds, switch_id, watts)
//   energies(run_id, nodes_dc_j, rectifier_loss_j, network_j): what the report says of window run.
// time_s is the end of the interval, from run_start. Ids of nodes, buses and switches are those of the cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "power/network_rule.hpp"
#include "power/power_run.hpp"
#include "power/step_power.hpp"

namespace tw {

// Queries that reproduce the report's energies of window `run`; bind the run's id as the only parameter.
inline constexpr std::string_view kNodesDcQuery =
    "SELECT SUM(watts * seconds) FROM node_readings NATURAL JOIN runs "
    "WHERE run_id = ? AND time_s > run_start_s AND time_s <= run_stop_s";
inline constexpr std::string_view kRectifierLossQuery =
    "SELECT SUM((ac_w - dc_w) * seconds) FROM bus_readings NATURAL JOIN runs "
    "WHERE run_id = ? AND time_s > run_start_s AND time_s <= run_stop_s";
inline constexpr std::string_view kNetworkQuery =
    "SELECT SUM(watts * seconds) FROM switch_readings NATURAL JOIN runs "
    "WHERE run_id = ? AND time_s > run_start_s AND time_s <= run_stop_s";

struct TelemetrySwitch {
  int id = 0;
  std::string name;
  int tier = 1;
  double share = 1;  // charged to the job
  double watts = 0;  // share * power of the switch
};

struct TelemetryRun {
  std::string scenario;
  uint64_t seed = 1;
  const Cluster* cluster = nullptr;
  const Timeline* timeline = nullptr;
  const PowerRun* power = nullptr;
  std::string network_rule;
  std::vector<TelemetrySwitch> switches;  // see telemetry_switches()
  double before_s = 0, after_s = 0;       // recorded beyond the run
  const StepPower* step = nullptr;        // what steps look like inside, over and over; absent: their mean
};

std::vector<TelemetrySwitch> telemetry_switches(const Fabric& fabric, const std::vector<SwitchShare>& shares);

// Writes a new file (replacing an old one) whole or not at all. InputError when that cannot be done or the interval is
// not positive.
void write_telemetry_sqlite(const std::string& path, const std::vector<TelemetryRun>& runs, double interval_s);

// Readings that would be written.
double telemetry_readings(const std::vector<TelemetryRun>& runs, double interval_s);

// By the ending of the name: .csv, one long table scenario,time_s,seconds,kind,id,input_w,output_w (kind node, bus,
// rectifier or switch; input_w blank where there is no conversion), else SQLite. Readings are written as they are made.
// InputError where there would be more than a billion.
void write_telemetry(const std::string& path, const std::vector<TelemetryRun>& runs, double interval_s);

}  // namespace tw
