#include "power/telemetry.hpp"

#include <SQLiteCpp/SQLiteCpp.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <numeric>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "power/energy_window.hpp"
#include "reference_cluster.hpp"
#include "topology/fabric.hpp"

namespace {

using namespace tw;

struct Fixture {
  Cluster cluster = test::reference_cluster(2);
  Timeline timeline = test::lora_timeline({});
  PowerRun power = integrate_power(cluster, timeline);
  Fabric fabric = build_fabric(cluster);
  std::vector<int> nodes{0, 1, 2, 3, 4, 5, 6, 7};
  TelemetryRun run() {
    TelemetryRun r;
    r.scenario = "eight";
    r.cluster = &cluster;
    r.timeline = &timeline;
    r.power = &power;
    r.network_rule = "as_published";
    r.switches = telemetry_switches(fabric, apportion(NetworkRule::as_published, fabric, {{nodes, {}}})->front());
    r.before_s = 10;
    r.after_s = 20;
    return r;
  }
};

double query(SQLite::Database& db, std::string_view text) {
  SQLite::Statement statement(db, std::string(text));
  statement.bind(1, 1);
  statement.executeStep();
  return statement.getColumn(0).getDouble();
}

}  // namespace

TEST_CASE("queries over telemetry give the report's energies at any interval") {
  Fixture f;
  const std::string path = (std::filesystem::temp_directory_path() / "trainwatt_telemetry_test.sqlite").string();
  for (const double interval_s : {0.7, 1.0, 30.0, 1e6}) {
    write_telemetry(path, {f.run()}, interval_s);
    SQLite::Database db(path, SQLite::OPEN_READONLY);
    CHECK(query(db, kNodesDcQuery) == Approx(f.power.nodes_dc_j).epsilon(1e-9));
    CHECK(query(db, kRectifierLossQuery) == Approx(f.power.rectifier_loss_j).epsilon(1e-9));
    CHECK(query(db, kNetworkQuery) == Approx(16100 * f.power.duration_s()).epsilon(1e-9));
    CHECK(query(db, "SELECT COUNT(*) FROM rectifiers WHERE run_id = ?") == 4 * 8);
    CHECK(query(db, "SELECT COUNT(*) FROM switches WHERE run_id = ?") == 4 + 16);
    CHECK(query(db,
                "SELECT SUM(output_v * output_a * seconds) FROM rectifier_readings NATURAL JOIN runs WHERE "
                "run_id = ? AND time_s > run_start_s AND time_s <= run_stop_s") ==
          Approx(f.power.nodes_dc_j).epsilon(1e-9));
  }
  std::filesystem::remove(path);
}

TEST_CASE("telemetry finer than a step shows what steps draw, and keeps the energies") {
  Fixture f;
  StepPower step;
  step.begin_s = {0, 0.25};
  step.watts.resize(2);
  step.watts[0][0] = 9000, step.watts[1][0] = 5000;
  step.end_s = 0.5;
  const std::string path = (std::filesystem::temp_directory_path() / "trainwatt_telemetry_step.sqlite").string();
  for (const double interval_s : {0.05, 0.7}) {
    TelemetryRun run = f.run();
    run.step = &step;
    write_telemetry(path, {run}, interval_s);
    SQLite::Database db(path, SQLite::OPEN_READONLY);
    CHECK(query(db, kNodesDcQuery) == Approx(f.power.nodes_dc_j).epsilon(1e-9));
    CHECK(query(db, kRectifierLossQuery) == Approx(f.power.rectifier_loss_j).epsilon(1e-9));
    const double most_w = query(db, "SELECT MAX(watts) FROM node_readings WHERE run_id = ?");
    CHECK((most_w > 1.2 * f.power.peak_w) == (interval_s < 0.1));
  }
  std::filesystem::remove(path);
}

TEST_CASE("CSV telemetry holds the same energies") {
  Fixture f;
  const std::string path = (std::filesystem::temp_directory_path() / "telemetry_of_a_test.csv").string();
  write_telemetry(path, {f.run()}, 1);
  const CsvTable table = CsvTable::load(path);
  std::filesystem::remove(path);
  double nodes_j = 0, ac_j = 0;
  for (size_t i = 0; i < table.rows(); ++i) {
    const double t = table.value(i, "time_s");
    if (t <= 0 || t > f.power.run_end_s * (1 + 1e-8)) continue;
    const double joules = table.value(i, "output_w") * table.value(i, "seconds");
    if (table.text(i, "kind") == "node") nodes_j += joules;
    if (table.text(i, "kind") == "bus") ac_j += table.value(i, "input_w") * table.value(i, "seconds");
  }
  CHECK(nodes_j == Approx(f.power.nodes_dc_j).epsilon(1e-7));
  CHECK(ac_j == Approx(f.power.nodes_ac_j).epsilon(1e-7));
}

TEST_CASE("telemetry that cannot be written leaves nothing behind") {
  Fixture f;
  CHECK_THROWS_AS(write_telemetry("/proc/none/t.sqlite", {f.run()}, 1), InputError);
  CHECK_THROWS_AS(write_telemetry_sqlite("/tmp/never.sqlite", {f.run()}, 0), InputError);
  CHECK_FALSE(std::filesystem::exists("/tmp/never.sqlite"));
  CHECK_FALSE(std::filesystem::exists("/tmp/never.sqlite.part"));
}
