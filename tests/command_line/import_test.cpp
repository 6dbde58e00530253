// trainwatt import: real logs, damaged ones, and simulated ones that were exported.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.hpp"

using namespace program;
using nlohmann::json;

namespace {

const std::string kLogs = "reference/mlperf_logs";

// Energy of a node file by hand: trapezoids inside the run, the nearest reading beyond the first and last.
struct ByHand {
  double run_j = 0, mlperf_j = 0;
};
ByHand by_hand(const std::string& file, double start_ms, double stop_ms) {
  std::istringstream in(tw::read_file(file));
  std::vector<std::pair<double, double>> r;
  double begin_ms = -1;
  for (std::string line; std::getline(in, line);) {
    const json e = json::parse(line.substr(line.find(":::MLLOG") + 8));
    if (e["key"] == "power_measurement_start") begin_ms = e["time_ms"];
    if (e["key"] == "power_reading") r.emplace_back(e["time_ms"], e["value"]);
  }
  ByHand sum;
  double last_ms = begin_ms;
  for (const auto& [t, w] : r) {
    sum.mlperf_j += w * (t - last_ms) / 1000;
    last_ms = t;
  }
  sum.mlperf_j *= (stop_ms - start_ms) / (last_ms - begin_ms);
  const auto at = [&](double t) {
    if (t <= r.front().first) return r.front().second;
    for (size_t i = 1; i < r.size(); ++i)
      if (t <= r[i].first)
        return r[i - 1].second + (r[i].second - r[i - 1].second) * (t - r[i - 1].first) / (r[i].first - r[i - 1].first);
    return r.back().second;
  };
  std::vector<double> times{start_ms};
  for (const auto& [t, w] : r)
    if (t > start_ms && t < stop_ms) times.push_back(t);
  times.push_back(stop_ms);
  for (size_t i = 1; i < times.size(); ++i)
    sum.run_j += (at(times[i]) + at(times[i - 1])) / 2 * (times[i] - times[i - 1]) / 1000;
  return sum;
}

}  // namespace

TEST_CASE("import: real logs as table, JSON, CSV and files") {
  const Folder f;
  const Run table = run({"import", kLogs});
  CHECK(table.code == 0);
  CHECK(holds(table.out, "Sustainable Metal Cloud / 8xSMC-H100-SXM-80GB / llama2_70b_lora"));
  CHECK(holds(table.out, "318.914"));
  CHECK(holds(table.out, "shared trace (8)"));
  const Run all = run({"import", kLogs, "--system", "8xSMC-H100-SXM-80GB", "-o", f / "out", "--json", "-"});
  REQUIRE(all.code == 0);
  const json j = json::parse(all.out);
  REQUIRE(j["benchmarks"].size() == 1);
  CHECK(j["benchmarks"][0]["runs"][0]["run_s"] == 318.914);
  CHECK(std::round(j["benchmarks"][0]["runs"][0]["nodes_run_j"].get<double>()) == 14658242);
  for (const char* name : {"import.json", "runs.csv", "findings.csv", "table.txt"})
    CHECK(fs::exists(f / (std::string("out/") + name)));
  CHECK(all.out.find(f / "") == std::string::npos);  // no absolute paths in results
}

TEST_CASE("import: figures of a submitter's DC and AC sets stand beside each other") {
  const Folder f;
  fs::create_directories(f / "round");
  for (const char* set : {"smc-dc-power", "smc-ac-power"})
    fs::copy(source_folder() + "/" + kLogs + "/smc-dc-power", f / ("round/" + std::string(set)),
             fs::copy_options::recursive);
  REQUIRE(run({"import", f / "round", "--benchmark", "llama2_70b_lora", "-o", f / "out", "-q"}).code == 0);
  for (const char* name : {"imported-smc-dc-power-1xSMC-H100-SXM-80GB-llama2_70b_lora.csv",
                           "imported-smc-dc-power-8xSMC-H100-SXM-80GB-llama2_70b_lora.csv",
                           "imported-smc-ac-power-1xSMC-H100-SXM-80GB-llama2_70b_lora.csv",
                           "imported-smc-ac-power-8xSMC-H100-SXM-80GB-llama2_70b_lora.csv"})
    CHECK(fs::exists(f / (std::string("out/") + name)));
  // The folder makes a page.
  const Run page = run({"report", f / "out", "-o", "-"});
  CHECK(page.code == 0);
  for (const char* part : {"smc-ac-power", "data-key=\"/benchmarks/0/runs/0/run_s\"", "shared_trace", "<figure>"})
    CHECK(holds(page.out, part));
  f.put("bad/import.json", "[{}]");
  const Run bad = run({"report", f / "bad"});
  CHECK(bad.code == 2);
  CHECK(holds(bad.err, "is not what trainwatt import wrote"));
}

TEST_CASE("import: power files in a folder of no run are those of the only run") {
  const Folder f;
  const std::string one = source_folder() + "/" + kLogs + "/smc-dc-power/results/1xSMC-H100-SXM-80GB/llama2_70b_lora/",
                    run_id = "result_4951-240509201759121728742_1";
  fs::create_directories(f / "job/power");
  fs::copy(one + run_id + ".txt", f / "job/result_0.txt");
  fs::copy(one + "power/" + run_id + "/node_0.txt", f / "job/power/node_0.txt");
  const json alone = json::parse(run({"import", f / "job", "--json", "-"}).out)["benchmarks"][0]["runs"][0];
  const json submitted = json::parse(
      run({"import", kLogs, "--system", "1xSMC-H100-SXM-80GB", "--json", "-"}).out)["benchmarks"][0]["runs"][0];
  CHECK(alone["nodes_run_j"].is_number());
  CHECK(alone["nodes_run_j"] == submitted["nodes_run_j"]);
  fs::copy(one + run_id + ".txt", f / "job/result_1.txt");
  const Run two = run({"import", f / "job"});
  CHECK(holds(two.out, "no run (1)"));
  CHECK(holds(two.out, "power files that name no run"));
}

TEST_CASE("import: refusals") {
  const Folder f;
  const auto refused = [&](const std::vector<std::string>& words) {
    std::vector<std::string> line{"import"};
    line.insert(line.end(), words.begin(), words.end());
    const Run r = run(line);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    return r.err;
  };
  CHECK(holds(refused({f / "none"}), "there is no such folder"));
  CHECK(holds(refused({f / ""}), "holds no result file"));
  CHECK(holds(refused({kLogs, "--benchmark", "bert"}), "there are: 1xSMC-H100-SXM-80GB llama2_70b_lora"));
  CHECK(holds(refused({kLogs, "--profile", f / "p.json"}), "--compare SCENARIO"));
  CHECK(holds(refused({kLogs, "--compare", k64}), "0 imported benchmarks ran on the 64 nodes"));
  f.put("results/sys/bert/result_0.txt", "no events here\n");
  CHECK(holds(refused({f / "results"}), "no run is complete"));
}

TEST_CASE("import: an exported simulation comes back") {
  const Folder f;
  REQUIRE(run({"run", k8, "--runs", "3", "--mlperf-logs", f / "logs", "--quiet"}).code == 0);
  const Run r = run({"import", f / "logs", "--json", "-"});
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  REQUIRE(j["benchmarks"].size() == 1);
  const json& b = j["benchmarks"][0];
  CHECK(b["simulated"] == true);
  CHECK(b["submitter"].get<std::string>().find("simulated") != std::string::npos);
  REQUIRE(b["runs"].size() == 3);
  CHECK(b["score"]["time_s"].is_number());
  CHECK(b["score"]["energy_mlperf_v4_0_j"].is_number());
  for (const json& run : b["runs"]) {
    CAPTURE(run["run"]);
    CHECK(run["status"] == "success");
    CHECK(run["samples"] == 3072);
    CHECK(run["evaluations"] == 5);
    CHECK(run["nodes"].size() == 8);
    ByHand sum;
    const std::string power = fs::path(run["file"].get<std::string>()).parent_path() / "power" / run["run"];
    for (const json& node : run["nodes"]) {
      const ByHand one = by_hand(f / ("logs/" + power + "/" + node["node"].get<std::string>() + ".txt"),
                                 run["run_start_ms"], run["run_stop_ms"]);
      sum.run_j += one.run_j;
      sum.mlperf_j += one.mlperf_j;
    }
    CHECK(run["nodes_run_j"].get<double>() == Approx(sum.run_j).epsilon(1e-12));
    CHECK(run["nodes_mlperf_v4_0_j"].get<double>() == Approx(sum.mlperf_j).epsilon(1e-12));
  }
  // The first run is the one that run --json tells of.
  const Run plain = run({"run", k8, "--runs", "1", "--json", "-", "--quiet"});
  REQUIRE(plain.code == 0);
  const json simulated = json::parse(plain.out)[0];
  const json& first = b["runs"][0];
  CHECK(std::abs(first["run_s"].get<double>() - simulated["run"]["time_to_train_s"]["mean"].get<double>()) <= 1.01e-3);
  CHECK(std::abs(first["init_s"].get<double>() - simulated["run"]["init_s"].get<double>()) <= 1.01e-3);
  CHECK(std::abs(first["eval_first_s"].get<double>() - simulated["run"]["eval_first_s"].get<double>()) <= 1.01e-3);
  CHECK(first["nodes_run_j"].get<double>() == Approx(simulated["energy"]["nodes_dc_j"].get<double>()).epsilon(0.005));
}

TEST_CASE("import: meters of many nodes read at moments of their own, so that a short run's energies agree") {
  const Folder f;
  const Run run64 = run({"run", k64, "--seed", "3", "--mlperf-logs", f / "logs", "--json", "-", "-q"});
  REQUIRE(run64.code == 0);
  const Run imported = run({"import", f / "logs", "--json", "-"});
  REQUIRE(imported.code == 0);
  const json own = json::parse(run64.out)[0], log = json::parse(imported.out)["benchmarks"][0]["runs"][0];
  CHECK(log["nodes_run_j"].get<double>() == Approx(own["energy"]["nodes_dc_j"].get<double>()).epsilon(0.005));
  const json& scored = own["energy_mlperf_v4_0"];
  CHECK(log["nodes_mlperf_v4_0_j"].get<double>() * scored["rcp_factor"].get<double>() ==
        Approx(scored["nodes_dc_j"].get<double>()).epsilon(0.005));
}

TEST_CASE("import: a simulation beside real runs, and constants fitted to them") {
  const Folder f;
  const Run r =
      run({"import", kLogs, "--compare", k8, "--profile", f / "fitted.json", "--json", f / "i.json", "-o", f / "out"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(holds(r.out, "beside the simulation smc-llama2-70b-lora-8n"));
  const json rows = json::parse(tw::read_file(f / "i.json"))["comparison"]["rows"];
  const auto row = [](const json& all, const std::string& quantity) {
    for (const json& one : all)
      if (one["quantity"] == quantity) return one;
    return json();
  };
  CHECK(std::abs(row(rows, "run_s")["error_pct"].get<double>()) < 5);
  CHECK(row(rows, "nodes_run_j")["error_pct"].is_number());
  const std::string fitted = tw::read_file(f / "fitted.json");
  CHECK(holds(fitted, "fitted on 2 runs"));
  CHECK(holds(fitted, "device_speed"));
  const Run again = run({"import", kLogs, "--compare", f / "fitted.json", "--json", "-"});
  INFO(again.err);
  REQUIRE(again.code == 0);
  const json better = json::parse(again.out)["comparison"]["rows"];
  CHECK(std::abs(row(better, "step_s")["error_pct"].get<double>()) < 0.5);
  CHECK(std::abs(row(better, "init_s")["error_pct"].get<double>()) < 0.1);
}
