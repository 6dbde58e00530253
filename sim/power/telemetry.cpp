#include "power/telemetry.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "core/error.hpp"
#include "core/files.hpp"
#include "power/bus.hpp"
#include "topology/fabric.hpp"

namespace tw {
namespace {

void check_interval(double interval_s) {
  if (!(interval_s > 0) || !std::isfinite(interval_s))
    throw InputError({{"telemetry", "", fmt::format("an interval of {} s", interval_s), "it must be above 0"}});
}

// Ends of the intervals: run_start and run_stop always end one, so no reading straddles a window's edge.
std::vector<double> interval_ends(const TelemetryRun& run, double interval_s) {
  const double begin_s = run.power->run_begin_s - run.before_s;
  const std::vector<double> edges{run.power->run_begin_s, run.power->run_end_s, run.power->run_end_s + run.after_s};
  std::vector<double> ends;
  double from_s = begin_s;
  for (const double to_s : edges) {
    const double length_s = to_s - from_s;
    if (!(length_s > 0)) continue;
    const auto count = static_cast<size_t>(std::ceil(length_s / interval_s - 1e-9));
    for (size_t k = 1; k < count; ++k) ends.push_back(from_s + static_cast<double>(k) * interval_s);
    ends.push_back(to_s);
    from_s = to_s;
  }
  return ends;
}

// Mean watts of each interval of a function of time, computed once for all members that share it.
class IntervalMeans {
 public:
  IntervalMeans(const PiecewiseWatts& power, double begin_s, const std::vector<double>& ends) {
    double from_s = begin_s;
    watts_.reserve(ends.size());
    for (const double to_s : ends) {
      watts_.push_back(power.integral(from_s, to_s) / (to_s - from_s));
      from_s = to_s;
    }
  }
  double operator[](size_t k) const { return watts_[k]; }

 private:
  std::vector<double> watts_;
};

struct Sampled {
  double begin_s = 0;
  std::vector<double> ends;
  std::vector<IntervalMeans> groups;
  std::map<const PiecewiseWatts*, IntervalMeans> buses;
};

Sampled sample_run(const TelemetryRun& run, double interval_s) {
  Sampled s;
  s.begin_s = run.power->run_begin_s - run.before_s;
  s.ends = interval_ends(run, interval_s);
  for (const PiecewiseWatts& dc : run.power->group_dc) s.groups.emplace_back(dc, s.begin_s, s.ends);
  for (const BusPowerRun& bus : run.power->buses)
    if (s.buses.count(bus.dc.get()) == 0) s.buses.emplace(bus.dc.get(), IntervalMeans(*bus.dc, s.begin_s, s.ends));
  return s;
}

constexpr const char* kSchema = R"(
CREATE TABLE runs(run_id INTEGER PRIMARY KEY, scenario TEXT, seed INTEGER, cluster TEXT, run_start_s REAL,
  run_stop_s REAL, interval_s REAL, network_rule TEXT);
CREATE TABLE nodes(run_id INTEGER, node_id INTEGER, name TEXT, bus_id INTEGER, role TEXT);
CREATE TABLE buses(run_id INTEGER, bus_id INTEGER, name TEXT, voltage_v REAL, rating_w REAL);
CREATE TABLE rectifiers(run_id INTEGER, rectifier_id INTEGER, bus_id INTEGER, shelf INTEGER, slot INTEGER,
  rating_w REAL);
CREATE TABLE switches(run_id INTEGER, switch_id INTEGER, name TEXT, tier INTEGER, share REAL);
CREATE TABLE node_readings(run_id INTEGER, time_s REAL, seconds REAL, node_id INTEGER, watts REAL);
CREATE TABLE bus_readings(run_id INTEGER, time_s REAL, seconds REAL, bus_id INTEGER, dc_w REAL, ac_w REAL);
CREATE TABLE rectifier_readings(run_id INTEGER, time_s REAL, seconds REAL, rectifier_id INTEGER, input_v REAL,
  input_a REAL, input_w REAL, output_v REAL, output_a REAL, output_w REAL, temperature_c REAL);
CREATE TABLE switch_readings(run_id INTEGER, time_s REAL, seconds REAL, switch_id INTEGER, watts REAL);
CREATE VIEW energies AS SELECT run_id,
  (SELECT SUM(watts * seconds) FROM node_readings AS n WHERE n.run_id = r.run_id
     AND time_s > run_start_s AND time_s <= run_stop_s) AS nodes_dc_j,
  (SELECT SUM((ac_w - dc_w) * seconds) FROM bus_readings AS b WHERE b.run_id = r.run_id
     AND time_s > run_start_s AND time_s <= run_stop_s) AS rectifier_loss_j,
  (SELECT SUM(watts * seconds) FROM switch_readings AS s WHERE s.run_id = r.run_id
     AND time_s > run_start_s AND time_s <= run_stop_s) AS network_j
  FROM runs AS r;
)";

// Binds in order and steps; the statement is ready again afterwards.
template <class... Values>
void insert(SQLite::Statement& statement, const Values&... values) {
  int index = 0;
  (statement.bind(++index, values), ...);
  statement.executeStep();
  statement.reset();
}

int rectifier_id(const PowerDelivery& delivery, int bus, int shelf, int slot) {
  return (bus * delivery.shelves_per_bus + shelf) * delivery.rectifiers_per_shelf + slot;
}

void insert_inventory(SQLite::Database& db, const TelemetryRun& run, int run_id, double interval_s) {
  const PowerDelivery& delivery = run.cluster->power_delivery;
  SQLite::Statement runs(db, "INSERT INTO runs VALUES(?,?,?,?,?,?,?,?)");
  insert(runs, run_id, run.scenario, static_cast<int64_t>(run.seed), run.cluster->name, run.power->run_begin_s,
         run.power->run_end_s, interval_s, run.network_rule);
  SQLite::Statement nodes(db, "INSERT INTO nodes VALUES(?,?,?,?,?)");
  for (const NodePowerRun& node : run.power->nodes)
    insert(nodes, run_id, node.node, fmt::format("node-{}", node.node),
           run.power->buses[static_cast<size_t>(node.bus)].bus,
           run.timeline->groups[static_cast<size_t>(node.group)].role);
  SQLite::Statement buses(db, "INSERT INTO buses VALUES(?,?,?,?,?)");
  SQLite::Statement rectifiers(db, "INSERT INTO rectifiers VALUES(?,?,?,?,?,?)");
  for (const BusPowerRun& bus : run.power->buses) {
    insert(buses, run_id, bus.bus, fmt::format("bus-{}", bus.bus), delivery.bus_voltage.value(),
           bus_rating_w(delivery));
    for (int shelf = 0; shelf < delivery.shelves_per_bus; ++shelf)
      for (int slot = 0; slot < delivery.rectifiers_per_shelf; ++slot)
        insert(rectifiers, run_id, rectifier_id(delivery, bus.bus, shelf, slot), bus.bus, shelf, slot,
               delivery.rectifier.rating.value());
  }
  SQLite::Statement switches(db, "INSERT INTO switches VALUES(?,?,?,?,?)");
  for (const TelemetrySwitch& s : run.switches) insert(switches, run_id, s.id, s.name, s.tier, s.share);
}

void insert_readings(SQLite::Database& db, const TelemetryRun& run, int run_id, double interval_s) {
  const PowerDelivery& delivery = run.cluster->power_delivery;
  const Sampled sampled = sample_run(run, interval_s);
  SQLite::Statement nodes(db, "INSERT INTO node_readings VALUES(?,?,?,?,?)");
  SQLite::Statement buses(db, "INSERT INTO bus_readings VALUES(?,?,?,?,?,?)");
  SQLite::Statement rectifiers(db, "INSERT INTO rectifier_readings VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  SQLite::Statement switches(db, "INSERT INTO switch_readings VALUES(?,?,?,?,?)");
  const double input_v = delivery.rectifier.input_voltage.value();
  const double output_v = delivery.bus_voltage.value();
  const double rating_w = delivery.rectifier.rating.value();
  double from_s = sampled.begin_s;
  for (size_t k = 0; k < sampled.ends.size(); ++k) {
    const double time_s = sampled.ends[k];
    const double seconds = time_s - from_s;
    for (const NodePowerRun& node : run.power->nodes)
      insert(nodes, run_id, time_s, seconds, node.node,
             node.factor * sampled.groups[static_cast<size_t>(node.group)][k]);
    const double middle_s = 0.5 * (from_s + time_s);
    for (const BusPowerRun& bus : run.power->buses) {
      const double dc_w = sampled.buses.at(bus.dc.get())[k];
      const double loss_w = bus.loss_between_j(delivery, from_s, time_s) / seconds;
      insert(buses, run_id, time_s, seconds, bus.bus, dc_w, dc_w + loss_w);
      const int on = bus.rectifiers_on(delivery, middle_s);
      for (int shelf = 0; shelf < delivery.shelves_per_bus; ++shelf)
        for (int slot = 0; slot < delivery.rectifiers_per_shelf; ++slot) {
          // Rectifiers of a bus share its load evenly; those that failed (the last ones) carry nothing.
          const bool works = shelf * delivery.rectifiers_per_shelf + slot < on;
          const double output_w = works ? dc_w / on : 0;
          const double input_w = works ? (dc_w + loss_w) / on : 0;
          const double temperature =
              delivery.rectifier.ambient.value() + delivery.rectifier.rise.value() * output_w / rating_w;
          insert(rectifiers, run_id, time_s, seconds, rectifier_id(delivery, bus.bus, shelf, slot), input_v,
                 input_w / input_v, input_w, output_v, output_w / output_v, output_w, temperature);
        }
    }
    for (const TelemetrySwitch& s : run.switches) insert(switches, run_id, time_s, seconds, s.id, s.watts);
    from_s = time_s;
  }
}

}  // namespace

std::vector<TelemetrySwitch> telemetry_switches(const Fabric& fabric, const std::vector<SwitchShare>& shares) {
  std::vector<TelemetrySwitch> list;
  for (const SwitchShare& share : shares) {
    const FabricVertex& vertex = fabric.vertices[static_cast<size_t>(share.vertex)];
    list.push_back({share.vertex, vertex.name, vertex.tier, share.share, share.watts});
  }
  return list;
}

void write_telemetry_sqlite(const std::string& path, const std::vector<TelemetryRun>& runs, double interval_s) {
  check_interval(interval_s);
  const std::filesystem::path target(path);
  const std::string part = path + ".part";
  std::error_code ignored;
  try {
    if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path());
    std::filesystem::remove(part, ignored);
    {
      SQLite::Database db(part, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      // The file is renamed into place when complete, so neither journal nor syncing protects anything here.
      db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE");
      SQLite::Transaction transaction(db);
      db.exec(kSchema);
      for (size_t i = 0; i < runs.size(); ++i) {
        insert_inventory(db, runs[i], static_cast<int>(i) + 1, interval_s);
        insert_readings(db, runs[i], static_cast<int>(i) + 1, interval_s);
      }
      transaction.commit();
    }
    std::filesystem::rename(part, target);
  } catch (const SQLite::Exception& error) {
    std::filesystem::remove(part, ignored);
    throw InputError({{path, "", fmt::format("telemetry cannot be written: {}", error.what()), ""}});
  } catch (const std::filesystem::filesystem_error& error) {
    std::filesystem::remove(part, ignored);
    throw InputError({{path, "", fmt::format("telemetry cannot be written: {}", error.code().message()), ""}});
  }
}

std::string telemetry_csv(const std::vector<TelemetryRun>& runs, double interval_s) {
  check_interval(interval_s);
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "scenario,time_s,seconds,kind,id,input_w,output_w\n");
  for (const TelemetryRun& run : runs) {
    const PowerDelivery& delivery = run.cluster->power_delivery;
    const Sampled sampled = sample_run(run, interval_s);
    double from_s = sampled.begin_s;
    for (size_t k = 0; k < sampled.ends.size(); ++k) {
      const double time_s = sampled.ends[k];
      const double seconds = time_s - from_s;
      const std::string head = fmt::format("{},{:.9g},{:.9g},", run.scenario, time_s, seconds);
      for (const NodePowerRun& node : run.power->nodes)
        fmt::format_to(to, "{}node,{},,{:.9g}\n", head, node.node,
                       node.factor * sampled.groups[static_cast<size_t>(node.group)][k]);
      for (const BusPowerRun& bus : run.power->buses) {
        const double dc_w = sampled.buses.at(bus.dc.get())[k];
        const double ac_w = dc_w + bus.loss_between_j(delivery, from_s, time_s) / seconds;
        fmt::format_to(to, "{}bus,{},{:.9g},{:.9g}\n", head, bus.bus, ac_w, dc_w);
        const int all = delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
        const int on = bus.rectifiers_on(delivery, 0.5 * (from_s + time_s));
        for (int r = 0; r < all; ++r)
          fmt::format_to(to, "{}rectifier,{},{:.9g},{:.9g}\n", head, bus.bus * all + r, r < on ? ac_w / on : 0.0,
                         r < on ? dc_w / on : 0.0);
      }
      for (const TelemetrySwitch& s : run.switches) fmt::format_to(to, "{}switch,{},,{:.9g}\n", head, s.id, s.watts);
      from_s = time_s;
    }
  }
  return fmt::to_string(out);
}

void write_telemetry(const std::string& path, const std::vector<TelemetryRun>& runs, double interval_s) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".csv")
    write_file(path, telemetry_csv(runs, interval_s));
  else
    write_telemetry_sqlite(path, runs, interval_s);
}

}  // namespace tw
