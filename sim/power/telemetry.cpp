#include "power/telemetry.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/csv_field.hpp"
#include "core/error.hpp"
#include "core/files.hpp"
#include "power/bus.hpp"
#include "power/loss_law.hpp"
#include "topology/fabric.hpp"

namespace tw {
namespace {

void check_interval(double interval_s) {
  if (!(interval_s > 0) || !std::isfinite(interval_s))
    throw InputError({{"telemetry", "", fmt::format("an interval of {} s", interval_s), "it must be above 0"}});
}

// Beyond this a file of readings helps nobody.
constexpr double kMostReadings = 1e9;

// What steps draw beyond their mean. Over whole steps that is nothing, so a moment's sum says all: energies of the
// report stay what they are.
class InsideSteps {
 public:
  explicit InsideSteps(const TelemetryRun& run) : run_(run) {
    if (run.step == nullptr || run.step->watts.empty() || !(run.step->mean_w() > 0)) return;
    const StepPower& s = *run.step;
    const double begin_s = s.begin_s.front(), step_s = s.end_s - begin_s, mean_w = s.mean_w() * s.end_s / step_s;
    place_.push_back(0), sum_.push_back(0);
    for (size_t i = 0; i < s.watts.size(); ++i) {
      const double end_s = i + 1 < s.begin_s.size() ? s.begin_s[i + 1] : s.end_s;
      place_.push_back((end_s - begin_s) / step_s);
      sum_.push_back(sum_.back() + (s.total_w(i) / mean_w - 1) * (place_.back() - place_[i]));
    }
  }
  // Joules of a node of the group since its present step began, less those of the mean.
  double more_j(size_t group, double time_s) const {
    if (place_.empty()) return 0;
    const std::vector<Phase>& phases = run_.timeline->groups[group].phases;
    const auto next =
        std::upper_bound(phases.begin(), phases.end(), time_s, [](double t, const Phase& p) { return t < p.begin_s; });
    if (next == phases.begin()) return 0;
    const Phase& phase = *std::prev(next);
    if (phase.kind != PhaseKind::train || phase.steps <= 0 || time_s >= phase.end_s) return 0;
    const double step_s = (phase.end_s - phase.begin_s) / phase.steps, x = (time_s - phase.begin_s) / step_s;
    const double at = x - std::floor(x);
    const auto i = static_cast<size_t>(std::upper_bound(place_.begin() + 1, place_.end() - 1, at) - place_.begin());
    const double part = (at - place_[i - 1]) / (place_[i] - place_[i - 1]);
    return run_.power->group_dc[group].at(time_s) * step_s * (sum_[i - 1] + part * (sum_[i] - sum_[i - 1]));
  }

 private:
  const TelemetryRun& run_;
  std::vector<double> place_, sum_;  // in a step of length 1
};

// One interval: mean watts of a node of each group, and of each bus of PowerRun::buses; of the latter, what its steps
// draw beyond their mean.
struct Interval {
  double from_s = 0, to_s = 0;
  std::vector<double> group_w, bus_w, bus_more_w;
  double seconds() const { return to_s - from_s; }
};

// Edges of the stretches that are cut into intervals: run_start and run_stop always end one, so no reading straddles a
// window's edge.
std::vector<double> edges_of(const TelemetryRun& run) {
  const double begin_s = run.power->run_begin_s, end_s = run.power->run_end_s;
  return {begin_s - run.before_s, begin_s, end_s, end_s + run.after_s};
}

double intervals_in(double length_s, double interval_s) {
  return length_s > 0 ? std::ceil(length_s / interval_s - 1e-9) : 0;
}

// Calls take(interval) for one after the other: nothing is kept.
template <class Take>
void each_interval(const TelemetryRun& run, double interval_s, const Take& take) {
  const PowerRun& power = *run.power;
  std::vector<size_t> same(power.buses.size());  // the first bus with the same load
  std::map<const PiecewiseWatts*, size_t> known;
  for (size_t i = 0; i < same.size(); ++i) same[i] = known.emplace(power.buses[i].dc.get(), i).first->second;
  Interval now;
  now.group_w.resize(power.group_dc.size());
  now.bus_w.resize(power.buses.size());
  now.bus_more_w.resize(power.buses.size());
  const InsideSteps inside(run);
  std::vector<double> more_w(power.group_dc.size());
  const auto edges = edges_of(run);
  for (size_t e = 0; e + 1 < edges.size(); ++e) {
    const double count = intervals_in(edges[e + 1] - edges[e], interval_s);
    for (double k = 1; k <= count; ++k) {
      now.from_s = k > 1 ? now.to_s : edges[e];
      now.to_s = k < count ? edges[e] + k * interval_s : edges[e + 1];
      for (size_t g = 0; g < now.group_w.size(); ++g) {
        more_w[g] = (inside.more_j(g, now.to_s) - inside.more_j(g, now.from_s)) / now.seconds();
        now.group_w[g] = power.group_dc[g].integral(now.from_s, now.to_s) / now.seconds() + more_w[g];
      }
      std::fill(now.bus_more_w.begin(), now.bus_more_w.end(), 0);
      for (const NodePowerRun& node : power.nodes)
        now.bus_more_w[static_cast<size_t>(node.bus)] += node.factor * more_w[static_cast<size_t>(node.group)];
      for (size_t i = 0; i < now.bus_w.size(); ++i)
        now.bus_w[i] = same[i] < i
                           ? now.bus_w[same[i]]
                           : power.buses[i].dc->integral(now.from_s, now.to_s) / now.seconds() + now.bus_more_w[i];
      take(now);
    }
  }
}

// A battery on the bus would take the swings of steps: it is not asked here.
double loss_of(const PowerDelivery& delivery, const BusPowerRun& bus, const Interval& now, size_t i) {
  const double loss_w = bus.loss_between_j(delivery, now.from_s, now.to_s) / now.seconds();
  return bus.supply == bus.dc ? loss_w + rectifier_law(delivery).proportional * now.bus_more_w[i] : loss_w;
}

constexpr const char* kSchema = R"(
CREATE TABLE runs(run_id INTEGER PRIMARY KEY, scenario TEXT, seed INTEGER, cluster TEXT, run_start_s REAL,
  run_stop_s REAL, interval_s REAL, network_rule TEXT);
CREATE TABLE nodes(run_id INTEGER, node_id INTEGER, name TEXT, bus_id INTEGER, role TEXT);
CREATE TABLE buses(run_id INTEGER, bus_id INTEGER, name TEXT, voltage_v REAL, rating_w REAL);
CREATE TABLE rectifiers(run_id INTEGER, rectifier_id INTEGER, bus_id INTEGER, shelf INTEGER, slot INTEGER,
  rating_w REAL, place INTEGER, input_v REAL, ambient_c REAL, rise_c REAL);
CREATE TABLE switches(run_id INTEGER, switch_id INTEGER, name TEXT, tier INTEGER, share REAL, watts REAL);
CREATE TABLE intervals(run_id INTEGER, time_s REAL, seconds REAL);
CREATE TABLE node_readings(run_id INTEGER, time_s REAL, seconds REAL, node_id INTEGER, watts REAL);
CREATE TABLE bus_readings(run_id INTEGER, time_s REAL, seconds REAL, bus_id INTEGER, dc_w REAL, ac_w REAL,
  supply_w REAL, rectifiers_on INTEGER);
-- Rectifiers of a bus share its load evenly; those that failed (the last ones) carry nothing. Switches draw what they
-- draw. What follows from other rows is a view: the file is a quarter as large, and as much faster to write.
CREATE VIEW rectifier_readings AS SELECT run_id, time_s, seconds, rectifier_id, input_v, input_w / input_v AS input_a,
  input_w, output_v, output_w / output_v AS output_a, output_w,
  ambient_c + rise_c * output_w / rating_w AS temperature_c FROM
  (SELECT l.run_id, l.time_s, l.seconds, r.rectifier_id, r.input_v, b.voltage_v AS output_v, r.ambient_c, r.rise_c,
     r.rating_w, CASE WHEN r.place < l.rectifiers_on THEN l.ac_w / l.rectifiers_on ELSE 0.0 END AS input_w,
     CASE WHEN r.place < l.rectifiers_on THEN l.supply_w / l.rectifiers_on ELSE 0.0 END AS output_w
   FROM bus_readings AS l JOIN buses AS b ON b.run_id = l.run_id AND b.bus_id = l.bus_id
     JOIN rectifiers AS r ON r.run_id = l.run_id AND r.bus_id = l.bus_id);
CREATE VIEW switch_readings AS SELECT i.run_id, i.time_s, i.seconds, s.switch_id, s.watts
  FROM intervals AS i JOIN switches AS s ON s.run_id = i.run_id;
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
  SQLite::Statement rectifiers(db, "INSERT INTO rectifiers VALUES(?,?,?,?,?,?,?,?,?,?)");
  for (const BusPowerRun& bus : run.power->buses) {
    insert(buses, run_id, bus.bus, fmt::format("bus-{}", bus.bus), delivery.bus_voltage.value(),
           bus_rating_w(delivery));
    for (int shelf = 0; shelf < delivery.shelves_per_bus; ++shelf)
      for (int slot = 0; slot < delivery.rectifiers_per_shelf; ++slot)
        insert(rectifiers, run_id, rectifier_id(delivery, bus.bus, shelf, slot), bus.bus, shelf, slot,
               delivery.rectifier.rating.value(), shelf * delivery.rectifiers_per_shelf + slot,
               delivery.rectifier.input_voltage.value(), delivery.rectifier.ambient.value(),
               delivery.rectifier.rise.value());
  }
  SQLite::Statement switches(db, "INSERT INTO switches VALUES(?,?,?,?,?,?)");
  for (const TelemetrySwitch& s : run.switches) insert(switches, run_id, s.id, s.name, s.tier, s.share, s.watts);
}

void insert_readings(SQLite::Database& db, const TelemetryRun& run, int run_id, double interval_s) {
  const PowerDelivery& delivery = run.cluster->power_delivery;
  SQLite::Statement intervals(db, "INSERT INTO intervals VALUES(?,?,?)");
  SQLite::Statement nodes(db, "INSERT INTO node_readings VALUES(?,?,?,?,?)");
  SQLite::Statement buses(db, "INSERT INTO bus_readings VALUES(?,?,?,?,?,?,?,?)");
  each_interval(run, interval_s, [&](const Interval& now) {
    const double from_s = now.from_s, time_s = now.to_s, seconds = now.seconds();
    insert(intervals, run_id, time_s, seconds);
    for (const NodePowerRun& node : run.power->nodes)
      insert(nodes, run_id, time_s, seconds, node.node, node.factor * now.group_w[static_cast<size_t>(node.group)]);
    for (size_t i = 0; i < run.power->buses.size(); ++i) {
      const BusPowerRun& bus = run.power->buses[i];
      const double dc_w = now.bus_w[i];
      const double loss_w = loss_of(delivery, bus, now, i);
      const double supply_w = bus.supply == bus.dc ? dc_w : bus.supply->integral(from_s, time_s) / seconds;
      insert(buses, run_id, time_s, seconds, bus.bus, dc_w, supply_w + loss_w, supply_w,
             bus.rectifiers_on(delivery, 0.5 * (from_s + time_s)));
    }
  });
}

void append_csv(OutputFile& file, fmt::memory_buffer& out, const TelemetryRun& run, double interval_s) {
  const PowerDelivery& delivery = run.cluster->power_delivery;
  const auto to = std::back_inserter(out);
  each_interval(run, interval_s, [&](const Interval& now) {
    const std::string head = fmt::format("{},{:.9g},{:.9g},", csv_line_field(run.scenario), now.to_s, now.seconds());
    for (const NodePowerRun& node : run.power->nodes)
      fmt::format_to(to, "{}node,{},,{:.9g}\n", head, node.node,
                     node.factor * now.group_w[static_cast<size_t>(node.group)]);
    for (size_t i = 0; i < run.power->buses.size(); ++i) {
      const BusPowerRun& bus = run.power->buses[i];
      const double dc_w = now.bus_w[i];
      const double supply_w = bus.supply == bus.dc ? dc_w : bus.supply->integral(now.from_s, now.to_s) / now.seconds();
      const double ac_w = supply_w + loss_of(delivery, bus, now, i);
      fmt::format_to(to, "{}bus,{},{:.9g},{:.9g}\n", head, bus.bus, ac_w, dc_w);
      const int all = delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
      const int on = bus.rectifiers_on(delivery, 0.5 * (now.from_s + now.to_s));
      for (int r = 0; r < all; ++r)
        fmt::format_to(to, "{}rectifier,{},{:.9g},{:.9g}\n", head, bus.bus * all + r, r < on ? ac_w / on : 0.0,
                       r < on ? supply_w / on : 0.0);
    }
    for (const TelemetrySwitch& s : run.switches) fmt::format_to(to, "{}switch,{},,{:.9g}\n", head, s.id, s.watts);
    if (out.size() < (1U << 20)) return;
    file.write({out.data(), out.size()});
    out.clear();
  });
}

constexpr const char* kCsvHead = "scenario,time_s,seconds,kind,id,input_w,output_w\n";

}  // namespace

std::vector<TelemetrySwitch> telemetry_switches(const Fabric& fabric, const std::vector<SwitchShare>& shares) {
  std::vector<TelemetrySwitch> list;
  for (const SwitchShare& share : shares) {
    const FabricVertex& vertex = fabric.vertices[static_cast<size_t>(share.vertex)];
    list.push_back({share.vertex, vertex.name, vertex.tier, share.share, share.watts});
  }
  return list;
}

double telemetry_readings(const std::vector<TelemetryRun>& runs, double interval_s) {
  check_interval(interval_s);
  double readings = 0;
  for (const TelemetryRun& run : runs) {
    const PowerDelivery& delivery = run.cluster->power_delivery;
    const auto edges = edges_of(run);
    double intervals = 0;
    for (size_t e = 0; e + 1 < edges.size(); ++e) intervals += intervals_in(edges[e + 1] - edges[e], interval_s);
    const double a_bus = 1.0 + delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
    readings += intervals * (static_cast<double>(run.power->nodes.size() + run.switches.size()) +
                             a_bus * static_cast<double>(run.power->buses.size()));
  }
  return readings;
}

void write_telemetry_sqlite(const std::string& path, const std::vector<TelemetryRun>& runs, double interval_s) {
  check_interval(interval_s);
  OutputFile file(path);
  if (!file.replaces())
    throw InputError({{path, "", "telemetry in SQLite needs a file of its own", "a name, or .csv"}});
  try {
    SQLite::Database db(file.partial(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    // The file takes its place when complete, so neither journal nor syncing protects anything here.
    db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE");
    SQLite::Transaction transaction(db);
    db.exec(kSchema);
    for (size_t i = 0; i < runs.size(); ++i) {
      insert_inventory(db, runs[i], static_cast<int>(i) + 1, interval_s);
      insert_readings(db, runs[i], static_cast<int>(i) + 1, interval_s);
    }
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    throw InputError({{path, "", fmt::format("telemetry cannot be written: {}", error.what()), ""}});
  }
  file.commit();
}

void write_telemetry(const std::string& path, const std::vector<TelemetryRun>& runs, double interval_s) {
  const double readings = telemetry_readings(runs, interval_s);
  if (readings > kMostReadings)
    throw InputError({{path, "", fmt::format("{:.2g} readings are more than anybody reads", readings),
                       fmt::format("at most {:.0g}: --telemetry-interval of {:.3g} s or more", kMostReadings,
                                   interval_s * readings / kMostReadings)}});
  if (std::filesystem::path(path).extension() != ".csv") return write_telemetry_sqlite(path, runs, interval_s);
  OutputFile file(path);
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), kCsvHead);
  for (const TelemetryRun& run : runs) append_csv(file, out, run, interval_s);
  file.write({out.data(), out.size()});
  file.commit();
}

}  // namespace tw
