// Power from end to end: caps, failures of the supply, telemetry, what the grid sees.
#include <SQLiteCpp/SQLiteCpp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "paths.hpp"
#include "power/telemetry.hpp"
#include "study/simulated.hpp"
#include "topology/fabric.hpp"
#include "traces.hpp"

using namespace tw;

namespace {

std::string cap(int w) {
  return "/cluster/node/accelerator/board_limit=" + std::to_string(w) + " W";
}

}  // namespace

TEST_CASE("a board limit changes time and energy together") {
  for (const std::string& file : {k1, std::string("scenarios/smc-unet3d-1n.json")}) {
    INFO(file);
    double step_s = 0, power_w = 1e9;
    std::vector<double> rates;
    for (const int w : {700, 500, 350}) {
      const Result r = result(file, {cap(w)});
      CHECK(*r.step.time_s > step_s);
      CHECK(*r.power.steady < power_w);
      CHECK(*r.power.gpu_steady <= w * 1.0 + 1e-6);
      // Energy is the same power and time, not a factor of its own.
      double dc_j = 0;
      for (const NodePowerResult& n : r.power.per_node) dc_j += n.mean_w * *r.run.time_to_train_s.mean;
      CHECK(*r.energy.nodes_dc_j == Approx(dc_j).epsilon(1e-9));
      step_s = *r.step.time_s, power_w = *r.power.steady;
      rates.push_back(*r.step.samples_per_s);
      const bool labelled = std::any_of(r.warnings.begin(), r.warnings.end(), [](const std::string& text) {
        return text.find("estimate") != std::string::npos && text.find("cap") != std::string::npos;
      });
      CHECK(labelled == (w < 700));
    }
    CHECK(rates[2] / rates[0] < 0.9);
    CHECK(rates[2] / rates[0] > 0.5);
  }
}

TEST_CASE("a failed shelf: the bus sheds load, the run takes longer, and says so") {
  const std::string shelf =
      R"(/run/power_failures=[{"part": "rectifier", "unit": 0, "count": 6, "at": "100.25 s", "policy": "shed"}])";
  const Result base = result(k8), shed = result(k8, {shelf});
  REQUIRE(shed.grid.failures.size() == 1);
  CHECK_FALSE(shed.grid.stopped);
  CHECK(*shed.run.time_to_train_s.mean > *base.run.time_to_train_s.mean);
  CHECK(*shed.run.lost_s == Approx(*shed.run.time_to_train_s.mean - *base.run.time_to_train_s.mean).epsilon(1e-9));
  CHECK(shed.power.per_node.front().mean_w < base.power.per_node.front().mean_w);

  const std::string trip =
      R"(/run/power_failures=[{"part": "shelf", "unit": 0, "count": 2, "at": "100 s", "policy": "trip"}])";
  const Result dark = result(k8, {trip});
  CHECK(dark.grid.stopped);
  CHECK(dark.run.status == "stopped");
  CHECK(*dark.run.stopped_at_s == Approx(100));
  CHECK_FALSE(dark.run.time_to_train_s.mean);
  CHECK(*dark.run.lost_s == Approx(100));
  // Whole steps of the time since the first, and no energy of a run that goes on.
  CHECK(*dark.run.samples > 0);
  CHECK(*dark.run.samples < *base.run.samples);
  CHECK(std::fmod(*dark.run.samples, 8) == 0);
  CHECK(*dark.energy.nodes_dc_j == Approx(*base.energy.nodes_dc_j * 100 / *base.run.time_to_train_s.mean).epsilon(0.1));
}

TEST_CASE("one shelf carries two nodes: 2N in fact") {
  const std::string shelf = R"(/run/power_failures=[{"part": "shelf", "unit": 0, "at": "100 s"}])";
  const Result base = result(k8), r = result(k8, {shelf});
  CHECK(*r.run.lost_s == 0);
  CHECK(*r.energy.nodes_dc_j == *base.energy.nodes_dc_j);
  CHECK(*r.energy.rectifier_loss_j < *base.energy.rectifier_loss_j);  // four fixed losses fewer
}

TEST_CASE("a load beyond the rating of its rectifiers is refused with place and time") {
  const auto message = [](const std::string& set) -> std::string {
    try {
      result(k8, {set});
    } catch (const DoesNotFit& e) {
      return e.what();
    }
    return "";
  };
  const std::string text = message("/cluster/power_delivery/rectifier/rating=1.5 kW");
  CHECK(text.find("bus 0") != std::string::npos);
  CHECK(text.find(" s from run_start") != std::string::npos);
}

TEST_CASE("queries on the telemetry give the energies of the report") {
  const LoadedScenario scenario = loaded(k8, {});
  const Result r = result(scenario);
  const Scenario& s = scenario.scenario;
  const PowerRun power = integrate_power(s.cluster, r.timeline, r.power_options);
  const Fabric fabric = build_fabric(s.cluster);
  const std::string file = "telemetry_of_a_run.sqlite";
  write_telemetry(file,
                  {{r.scenario, r.seed, &s.cluster, &r.timeline, &power, r.power.network_rule,
                    telemetry_switches(fabric, r.power.switches), 10, 10}},
                  1);
  {
    SQLite::Database db(file);
    const auto query = [&](std::string_view text) {
      SQLite::Statement statement(db, std::string(text));
      statement.bind(1, 1);
      statement.executeStep();
      return statement.getColumn(0).getDouble();
    };
    CHECK(query(kNodesDcQuery) == Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
    CHECK(query(kRectifierLossQuery) == Approx(*r.energy.rectifier_loss_j).epsilon(1e-9));
    CHECK(query("SELECT nodes_dc_j FROM energies WHERE run_id = ?") == Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
    CHECK(query("SELECT rectifier_loss_j + network_j FROM energies WHERE run_id = ?") ==
          Approx(*r.energy.rectifier_loss_j + *r.energy.network_j).epsilon(1e-9));
    CHECK(query(kNetworkQuery) == Approx(*r.energy.network_j).epsilon(1e-9));
  }
  std::remove(file.c_str());
}

TEST_CASE("parts add up to their totals, up to the grid") {
  const Result r = result(k8);
  double parts_j = 0;
  for (const auto& [name, joules] : r.grid.parts_j) parts_j += joules;
  CHECK(parts_j == Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
  double stages_j = 0;
  for (const StageTotals& t : r.grid.stages) stages_j += t.loss_j;
  CHECK(*r.grid.grid_j == Approx(*r.energy.nodes_dc_j + stages_j).epsilon(1e-9));
  CHECK(stages_j == Approx(*r.energy.rectifier_loss_j).epsilon(1e-9));  // the cluster declares no stage above
  CHECK(*r.grid.dc_per_sample_j * *r.run.samples == Approx(*r.energy.total_dc_j));
  CHECK(*r.grid.dc_per_token_j * 8192 == Approx(*r.grid.dc_per_sample_j));
  const PowerSwings& f = r.grid.facility;
  CHECK(f.mean_w * *r.run.time_to_train_s.mean == Approx(*r.energy.facility_j).epsilon(1e-9));
  CHECK(f.least_w <= f.p5_w);
  CHECK(f.p5_w <= f.p50_w);
  CHECK(f.p95_w <= f.peak_w);
  const auto headroom = [&](const std::string& stage) {
    for (const StageTotals& t : r.grid.stages)
      if (t.stage == stage) return t.headroom_w;
    return -1e9;
  };
  CHECK(headroom("bus, n") == Approx(40000 - *r.power.peak_bus_w));
  CHECK(headroom("bus, n+1") == Approx(35000 - *r.power.peak_bus_w));
  CHECK(headroom("bus, 2n") == Approx(20000 - *r.power.peak_bus_w));
  // The steady step is in the run's steady level, and it swings.
  // Noise adds waits to the steps of the run that the quiet step does not have.
  CHECK(r.grid.step.mean_w() == Approx(*r.power.steady).epsilon(0.06));
  CHECK(r.grid.step.mean_w() > 0.99 * *r.power.steady);  // the steady level is a mean over the runs
  CHECK(*r.grid.facility.step_swing_w > 0);
}

TEST_CASE("missing watts are all named at once") {
  Faults faults;
  load_scenario(k8, {"/cluster/node/accelerator/power/gemm_fp8=0 W", "/cluster/node/accelerator/power/collective=0 W"},
                faults);
  CHECK(faults.size() == 2);
}

TEST_CASE("measured traces of the reference cluster, through the simulated meter, event by event") {
  struct Row {
    int nodes;
    double least;
  };
  // What is asked for; seen 0.797, 0.964 and 0.980 (over 8 seeds from 0.772, 0.960, 0.977). One node's trace has stalls
  // of its host in it that fall when they like (six readings between 3.3 and 5.4 kW in steady training), which no mean
  // run has.
  for (const Row& row : {Row{1, 0.78}, Row{8, 0.93}, Row{64, 0.93}}) {
    const std::string name = std::to_string(row.nodes) + "n_llama2_70b_lora";
    const LoadedScenario scenario = loaded("scenarios/smc-llama2-70b-lora-" + std::to_string(row.nodes) + "n.json", {});
    const Result r = result(scenario);
    const PowerRun power = integrate_power(scenario.scenario.cluster, r.timeline, r.power_options);
    const std::string traces = source_folder() + "/reference/smc_v4.0/traces/" + name;
    const double correlation = test::trace_correlation(
        traces, r.timeline, [&](double from_s, double to_s) { return power.group_dc[0].integral(from_s, to_s); });
    INFO(row.nodes << " nodes: " << correlation);
    CHECK(correlation >= row.least);
  }
}

TEST_CASE("an evaluation begins with the pause that its release fixes, at the power of waiting") {
  const LoadedScenario scenario =
      loaded(k1, {"/software/evaluation_fixed=2 s", "/software/first_evaluation_extra=3 s"});
  const Result r = result(scenario);
  const PowerRun power = integrate_power(scenario.scenario.cluster, r.timeline, r.power_options);
  // run_start, ends of two waits, begin and end of each, run_stop
  const std::vector<double> events = test::timeline_events(r.timeline);
  REQUIRE(events.size() == 14);
  for (size_t k = 3; k + 1 < events.size(); k += 2) {
    const double pause_s = k == 3 ? 5 : 2;
    const PiecewiseWatts& dc = power.group_dc[0];
    CHECK(dc.integral(events[k], events[k] + pause_s) == Approx(*r.power.wait * pause_s).epsilon(1e-9));
    CHECK(dc.at(events[k] + pause_s + 0.01) > 2 * *r.power.wait);
    CHECK(dc.at(events[k + 1] - 0.01) > 2 * *r.power.wait);
  }
}

TEST_CASE("hourly carbon: the start that emits least, and the start that was asked for") {
  const std::string file = "hourly_carbon_of_a_test.csv";
  {
    std::ofstream csv(file);
    csv << "time,location_kg_per_kwh\n";
    for (int hour = 0; hour < 24; ++hour)
      csv << "2024-05-16T" << (hour < 10 ? "0" : "") << hour << ":00+08:00," << (hour == 13 ? 0.2 : 0.5) << "\n";
  }
  const std::vector<std::string> set{"/site/carbon_series=" + file, "/run/start=2024-05-16T08:00+08:00"};
  const Result r = result(k8, set);
  REQUIRE(r.grid.hourly.has_value());
  const double kwh = *r.energy.facility_j / 3.6e6;
  CHECK(*r.grid.hourly->kg_co2e == Approx(0.5 * kwh));
  CHECK(r.grid.hourly->least_carbon_start == "2024-05-16T13:00+08:00");
  CHECK(*r.grid.hourly->least_kg_co2e == Approx(0.2 * kwh));
  CHECK(*r.grid.hourly->most_kg_co2e == Approx(0.5 * kwh));
  // A start from which the series does not cover the run.
  CHECK_THROWS_AS(result(k8, {set[0], "/run/start=2024-05-16T23:58+08:00"}), InputError);
  std::remove(file.c_str());
}
