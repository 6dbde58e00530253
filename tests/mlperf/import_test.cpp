// Imported MLPerf logs against what is known of those runs (reference/smc_v4.0).
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/files.hpp"
#include "mlperf/made_logs.hpp"
#include "paths.hpp"

namespace {

using namespace tw;
using made::event;
using made::kStart;
using made::Tree;
namespace fs = std::filesystem;

const std::string kLogs = source_folder() + "/reference/mlperf_logs";

Import imported(const std::string& folder) {
  return import_submission(folder, {}, {});
}

// A run of 100 s that begins `at` and evaluates once.
std::string log_of(int64_t at = kStart, const std::string& status = "success") {
  return "some output\n" + event(at - 30000, "submission_benchmark", "POINT_IN_TIME", "\"bert\"") +
         event(at - 30000, "init_start", "INTERVAL_START") +
         event(at - 29000, "global_batch_size", "POINT_IN_TIME", "8") + event(at, "run_start", "INTERVAL_START") +
         event(at + 90000, "eval_start", "INTERVAL_START", "null", "{\"samples_count\": 800}") +
         event(at + 95000, "eval_stop", "INTERVAL_END", "null", "{\"samples_count\": 800}") +
         event(at + 100000, "run_stop", "INTERVAL_END", "null",
               "{\"samples_count\": 800, \"status\": \"" + status + "\"}");
}

// A meter that reads `watts` every 2 s over the run.
std::string meter_of(int64_t at = kStart, int watts = 5000, int seconds = 100) {
  std::string text = event(at, "power_measurement_start", "INTERVAL_START");
  for (int s = 0; s <= seconds; s += 2)
    text += event(at + s * 1000, "power_reading", "POINT_IN_TIME", std::to_string(watts + s % 7));
  return text + event(at + seconds * 1000, "power_measurement_stop", "INTERVAL_END");
}

const LogFinding* found(const Import& import, const std::string& kind) {
  return made::found(import.findings, kind);
}
size_t count(const Import& import, const std::string& kind) {
  return made::count(import.findings, kind);
}

}  // namespace

TEST_CASE("real logs give the times and energies of the reference table") {
  const Import import = imported(kLogs);
  const CsvTable table = CsvTable::load(source_folder() + "/reference/smc_v4.0/runs.csv");
  REQUIRE(import.benchmarks.size() == 2);
  size_t checked = 0;
  for (const ImportedBenchmark& b : import.benchmarks) {
    CHECK(b.benchmark == "llama2_70b_lora");
    CHECK(b.submitter == "Sustainable Metal Cloud");
    CHECK(b.meter == "dc");
    CHECK(b.scaling_factor == Approx(1.0347222).epsilon(1e-7));
    for (const MeasuredRun& run : b.runs) {
      const ImportedRun& l = run.log;
      for (size_t i = 0; i < table.rows(); ++i) {
        if (table.text(i, "folder") != "smc-dc-power" || table.text(i, "run_id") != l.id) continue;
        CAPTURE(l.id);
        ++checked;
        CHECK(b.nodes == table.value(i, "nodes"));
        CHECK(l.status == table.text(i, "status"));
        // Rounded as the table is: to the millisecond, 5 digits of a step, whole joules.
        const auto same = [&](const std::optional<double>& value, const char* column, double rounding) {
          INFO(column);
          REQUIRE(value.has_value());
          CHECK(std::abs(*value - table.value(i, column)) <= rounding / 2 * 1.0001 + 1e-9);
        };
        same(l.run_s, "run_s", 0);
        same(l.init_s, "init_s", 0);
        same(l.global_batch_size, "global_batch_size", 0);
        same(l.gradient_accumulation, "grad_accum", 0);
        same(l.learning_rate, "learning_rate", 0);
        same(l.samples, "samples_to_converge", 0);
        same(l.steps, "steps_to_converge", 0);
        CHECK(l.evaluations == table.value(i, "n_evals"));
        same(l.eval_s, "eval_s_mean", 1e-3);
        same(l.eval_first_s, "eval_first_s", 1e-3);
        same(l.eval_blocking_s, "eval_blocking_s_mean", 1e-3);
        same(l.step_s, "step_s_mean", 1e-5);
        same(l.step_s_p5, "step_s_p5", 1e-5);
        same(l.step_s_p50, "step_s_p50", 1e-5);
        same(l.step_s_p95, "step_s_p95", 1e-5);
        CHECK(l.step_source == table.text(i, "step_source"));
        CHECK(l.step_observations == table.value(i, "step_obs"));
        same(l.first_step_overhead_s, "first_step_overhead_s", 1e-3);
        same(l.first_gap_s, "first_gap_s", 1e-3);
        same(run.nodes_run_j, "node_energy_window_j", 1);
        same(run.nodes_mlperf_j, "node_energy_official_j", 1);
        same(run.network_w.value_or(0), "net_power_w", 0);
        same(run.total_run_j(), "total_energy_window_j", 1);
        same(run.total_mlperf_j(), "total_energy_official_j", 1);
        same(run.node_w_mean, "node_w_mean", 0.1);
        same(run.node_w_min, "node_w_min", 0.1);
        same(run.node_w_max, "node_w_max", 0.1);
        if (const auto traces = table.number(i, "distinct_node_signals")) CHECK(run.distinct_traces == *traces);
        double gap = 0, before = 1e9, after = 1e9;
        for (const NodeMeter& n : run.nodes) {
          gap = std::max(gap, n.longest_gap_s);
          before = std::min(before, n.before_s);
          after = std::min(after, n.after_s);
          CHECK(n.interval_s == Approx(table.value(i, "power_dt_median_s")).margin(0.0105));
        }
        same(gap, "power_max_gap_in_run_s", 0.01);
        same(before, "power_file_pre_s", 0.1);
        same(after, "power_file_post_s", 0.1);
      }
    }
  }
  CHECK(checked == 3);
  CHECK(count(import, "shared_trace") == 8);  // two nodes on a bus, four buses, two runs
  CHECK(import.benchmarks[0].score.none_because.find("too few") != std::string::npos);
}

TEST_CASE("the published scores come out of the run table") {
  const CsvTable table = CsvTable::load(source_folder() + "/reference/smc_v4.0/runs.csv");
  const CsvTable scores = CsvTable::load(source_folder() + "/reference/smc_v4.0/scores.csv");
  std::map<std::string, std::vector<MeasuredRun>> all;
  std::map<std::string, double> factors;
  const auto key = [](const CsvTable& t, size_t i, const std::string& folder) {
    return folder + " " + t.text(i, "nodes") + " " + t.text(i, "benchmark");
  };
  for (size_t i = 0; i < table.rows(); ++i) {
    MeasuredRun run;
    run.log.status = table.text(i, "status");
    run.log.run_s = table.value(i, "run_s");
    run.nodes_mlperf_j = table.number(i, "node_energy_official_j");
    run.nodes_run_j = table.number(i, "node_energy_window_j");
    run.network_w = table.number(i, "net_power_w");
    const std::string k = key(table, i, table.text(i, "folder"));
    all[k].push_back(run);
    factors[k] = table.value(i, "scaling_factor");
  }
  for (size_t i = 0; i < scores.rows(); ++i) {
    const std::string k = key(scores, i, scores.text(i, "folder"));
    CAPTURE(k);
    const ImportedScore s = score_runs(scores.text(i, "benchmark"), all.at(k), factors.at(k));
    CHECK(s.drop == scores.value(i, "dropped_each_side"));
    CHECK(*s.time_s / 60 == Approx(scores.value(i, "score_minutes")).margin(5.1e-6));
    if (const auto j = scores.number(i, "energy_official_j")) {
      CHECK(*s.energy_mlperf_j == Approx(*j).margin(1.1));
      CHECK(*s.energy_run_j * s.factor == Approx(scores.value(i, "energy_window_j")).margin(1.1));
    }
  }
  const auto minutes = [&](const char* k) {
    return std::round(*score_runs("llama2_70b_lora", all.at(k), factors.at(k)).time_s / 60 * 1e5) / 1e5;
  };
  CHECK(minutes("smc 1 llama2_70b_lora") == 29.10069);
  CHECK(minutes("smc 8 llama2_70b_lora") == 5.40279);
  CHECK(minutes("smc 64 llama2_70b_lora") == 2.10304);
  const auto joules = [&](const char* k) {
    return std::round(*score_runs("llama2_70b_lora", all.at(k), factors.at(k)).energy_mlperf_j);
  };
  CHECK(joules("smc-dc-power 1 llama2_70b_lora") == 11769962);
  CHECK(joules("smc-dc-power 8 llama2_70b_lora") == Approx(20381549).margin(1));  // of energies in whole joules
  CHECK(joules("smc-dc-power 64 llama2_70b_lora") == Approx(45837402).margin(1));
}

TEST_CASE("a failed run counts as the slowest; more than one spoil the score") {
  const auto runs = [](int failed) {
    std::vector<MeasuredRun> all(10);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].log.run_s = 100.0 + static_cast<double>(i);
      all[i].log.status = static_cast<int>(i) < failed ? "aborted" : "success";
    }
    return all;
  };
  auto none = runs(0), one = runs(1), two = runs(2);
  CHECK(*score_runs("bert", none, 1).time_s == Approx(104.5));
  CHECK(*score_runs("bert", one, 1).time_s == Approx(105.5));  // 102 to 109
  CHECK_FALSE(one[0].in_score);
  CHECK_FALSE(score_runs("bert", two, 1).time_s.has_value());
  std::vector<MeasuredRun> pair(none.begin(), none.begin() + 2);
  CHECK(score_runs("bert", pair, 1).none_because == "2 runs are too few, 3 needed to drop 1 at each end");
}

TEST_CASE("lines of a log: rank prefixes, text on both sides, NaN, several events in a line") {
  const Tree t;
  t.put("a.txt",
        "3: rank text :::MLLOG {\"time_ms\": 1, \"key\": \"a\", \"value\": NaN} and more :::MLLOG {\"time_ms\": 2.0, "
        "\"key\": \"b\", \"value\": \"text with } and NaN\", \"metadata\": {\"step\": 3}}");
  std::vector<MllogEvent> events;
  std::vector<LogFinding> findings;
  read_mllog(t / "a.txt", "a.txt", findings, [&](const MllogEvent& e) { events.push_back(e); });
  REQUIRE(events.size() == 2);
  CHECK(findings.empty());
  CHECK_FALSE(events[0].value.number.has_value());
  CHECK(events[1].time_ms == 2);
  CHECK(events[1].value.text == "text with } and NaN");
  CHECK(events[1].number("step") == 3);
}

TEST_CASE("damaged logs are named with their line, and the rest is read") {
  const Tree t;
  const std::string folder = "org/results/sys/bert/";
  t.put(folder + "result_0.txt", log_of());
  std::string broken = log_of(kStart + 1'000'000);
  broken.insert(broken.find('\n') + 1, "0: :::MLLOG {\"time_ms\": 17, \"key\": broken}\n0: :::MLLOG [1]\n");
  t.put(folder + "result_1.txt", broken);
  t.put(folder + "result_2.txt", "");
  const std::string whole = log_of(kStart + 2'000'000);
  t.put(folder + "result_3.txt", whole.substr(0, whole.size() - 30));
  t.put(folder + "result_4.txt", std::string("\x7f"
                                             "ELF\0\0\1",
                                             7) +
                                     std::string(5000, '\0'));
  t.put(folder + "result_5.txt", log_of(kStart + 3'000'000) + log_of(kStart + 4'000'000));
  t.put(folder + "result_6.txt", std::string(3u << 20, 'x') + "\n" + log_of(kStart + 5'000'000));
  t.put(folder + "result_7.txt", log_of());
  t.put(folder + "result_8.txt", log_of(kStart + 6'000'000, "aborted"));
  t.put(folder + "scaling.json", "{\"scaling_factor\": \"big\"}");
  fs::create_directories(t / (folder + "result_9.txt"));
  const Import import = imported(t.root());
  REQUIRE(import.benchmarks.size() == 1);
  const auto at = [&](const char* kind, const std::string& file, size_t line) {
    INFO(kind);
    const LogFinding* f = found(import, kind);
    REQUIRE(f != nullptr);
    CHECK(f->file == folder + file);
    CHECK(f->line == line);
  };
  at("broken_json", "scaling.json", 0);
  at("empty", "result_2.txt", 0);
  at("cut_off", "result_3.txt", 8);
  at("binary", "result_4.txt", 1);
  at("no_events", "result_4.txt", 0);
  at("mixed_runs", "result_5.txt", 11);
  at("long_line", "result_6.txt", 1);
  at("duplicated_run", "result_7.txt", 0);
  at("failed_run", "result_8.txt", 0);
  size_t broken_lines = 0;
  for (const LogFinding& f : import.findings)
    if (f.kind == "broken_json" && f.file == folder + "result_1.txt") {
      ++broken_lines;
      CHECK(f.line == 2);
      CHECK(f.what.find("2 such lines") != std::string::npos);
    }
  CHECK(broken_lines == 1);
  size_t complete = 0;
  for (const MeasuredRun& run : import.benchmarks[0].runs) complete += run.log.run_s == 100.0 ? 1 : 0;
  CHECK(complete == 6);
  CHECK(import.usable());
}

TEST_CASE("power files: whose they are, and which clock they have") {
  const Tree t;
  const std::string folder = "org/results/sys/bert/";
  constexpr int64_t hour = 3'600'000;
  for (int i = 0; i < 4; ++i) t.put(folder + "result_" + std::to_string(i) + ".txt", log_of(kStart + i * 500'000));
  const auto meter = [&](int run, int node, const std::string& text) {
    t.put(folder + "power/result_" + std::to_string(run) + "/node_" + std::to_string(node) + ".txt", text);
  };
  meter(0, 0, meter_of(kStart));
  meter(0, 1, meter_of(kStart + hour + 1000, 6000, 98));     // an hour ahead
  meter(1, 0, meter_of(kStart + 500'000 - 5 * hour, 4000));  // five hours behind
  meter(1, 1, meter_of(kStart + 500'000, 4500));
  meter(2, 0, meter_of(kStart + 1'000'000, 5500));
  meter(2, 1, meter_of(kStart + 1'500'000, 5600));   // of run 3
  meter(3, 0, meter_of(kStart + 90'000'000, 5700));  // of nobody
  meter(3, 1, event(kStart + 1'500'000, "power_measurement_start", "INTERVAL_START"));
  meter(9, 0, meter_of(kStart));
  const Import import = imported(t.root());
  const auto& runs = import.benchmarks.at(0).runs;
  REQUIRE(runs.size() == 4);
  CHECK(count(import, "clock_offset") == 2);
  CHECK(runs[0].nodes[1].shift_h == 1);
  CHECK(runs[1].nodes[0].shift_h == -5);
  REQUIRE(runs[0].nodes_run_j.has_value());
  CHECK(*runs[0].nodes_run_j == Approx(1.1e6).epsilon(2e-3));
  CHECK(*runs[1].nodes_run_j == Approx(8.5e5).epsilon(2e-3));
  REQUIRE(found(import, "other_run") != nullptr);
  CHECK(found(import, "other_run")->what.find("result_3") != std::string::npos);
  CHECK(count(import, "other_run") == 1);
  CHECK(count(import, "other_time") == 1);
  CHECK(found(import, "no_readings")->file == folder + "power/result_3/node_1.txt");
  CHECK(found(import, "no_result")->file == folder + "power/result_9/node_0.txt");
  CHECK_FALSE(runs[2].nodes_run_j.has_value());  // half of the nodes is no energy of the run
  CHECK_FALSE(runs[3].nodes_run_j.has_value());
}

TEST_CASE("power files: late starts, gaps, repeated and backward stamps, wrong stops, shared traces") {
  const Tree t;
  const std::string folder = "results/sys/bert/";
  t.put(folder + "result_0.txt", log_of());
  const std::string power = folder + "power/result_0/";
  t.put(power + "node_0.txt", meter_of(kStart + 40'000, 5000, 60));
  std::string odd = event(kStart, "power_measurement_start", "INTERVAL_START");
  for (const int s : {0, 2, 4, 4, 6, 5, 8, 30, 32, 34, 36, 98, 100})
    odd += event(kStart + s * 1000, "power_reading", "POINT_IN_TIME", "1000");
  t.put(power + "node_1.txt", odd + event(kStart, "power_measurement_stop", "INTERVAL_END"));
  t.put(power + "node_2.txt", meter_of());
  t.put(power + "node_3.txt", meter_of());
  t.put(power + "node_4.txt", meter_of(kStart, 3000, 100).substr(0, 2000));
  const Import import = imported(t.root());
  const auto at = [&](const char* kind, const char* node, size_t line) {
    INFO(kind);
    const LogFinding* f = found(import, kind);
    REQUIRE(f != nullptr);
    CHECK(f->file == power + node);
    CHECK(f->line == line);
  };
  at("late_start", "node_0.txt", 0);
  at("repeated_stamp", "node_1.txt", 5);
  at("backward_stamp", "node_1.txt", 7);
  at("wrong_stop", "node_1.txt", 15);
  at("gap", "node_1.txt", 0);
  at("shared_trace", "node_3.txt", 0);
  CHECK(found(import, "gap")->what.find("2 gaps") != std::string::npos);
  REQUIRE(found(import, "cut_off") != nullptr);
  CHECK(found(import, "cut_off")->file == power + "node_4.txt");
  CHECK(found(import, "no_switch_estimate") != nullptr);
  const MeasuredRun& run = import.benchmarks.at(0).runs.at(0);
  CHECK(run.nodes[1].run_j == Approx(1000 * 100));
  CHECK(run.nodes[1].mlperf_j == Approx(1000 * 100));
  CHECK(run.nodes[0].before_s == Approx(-40));
}

TEST_CASE("what cannot be imported at all is refused") {
  const Tree t;
  CHECK_THROWS_AS(imported(t / "missing"), InputError);
  CHECK_THROWS_AS(imported(t.root()), InputError);
  t.put("results/sys/bert/result_0.txt", "nothing of interest\n");
  CHECK_FALSE(imported(t.root()).usable());
}
