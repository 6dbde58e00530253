// run --mlperf-logs: against real logs of the same benchmark, and what it refuses.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "mlperf/mllog_lines.hpp"
#include "paths.hpp"
#include "program.hpp"

using namespace program;
using namespace mllog;
using nlohmann::ordered_json;

namespace {

const std::string kReal = source_folder() + "/reference/mlperf_logs/smc-dc-power/results/";

std::vector<ordered_json> log_lines(const std::string& file) {
  return lines_of(tw::read_file(file));
}

std::vector<std::string> forms(const std::vector<ordered_json>& lines) {
  std::vector<std::string> all;
  for (const ordered_json& line : lines) all.push_back(form(line));
  return all;
}

double stamp_ms(const std::vector<ordered_json>& lines, const std::string& key) {
  for (const ordered_json& line : lines)
    if (line["key"] == key) return line["time_ms"].get<double>();
  FAIL("no " << key);
  return 0;
}

// The v4.0 rule: each reading holds since the one before; scaled from the file's span to the run.
double file_energy_j(const std::vector<ordered_json>& lines, double run_s) {
  double joules = 0, first = -1, last = -1;
  for (const ordered_json& line : lines) {
    if (line["key"] != "power_reading") continue;
    const double t = line["time_ms"].get<double>() / 1000;
    if (first < 0)
      first = t;
    else
      joules += line["value"].get<double>() * (t - last);
    last = t;
  }
  return joules * run_s / (last - first);
}

std::string text_of(const std::string& file) {
  return tw::read_file(file);
}

void compare(const std::string& scenario, const std::string& system, const std::string& real_file, int nodes) {
  const Folder folder;
  const std::string dir = folder / "logs";
  const Run r = run({"run", scenario, "--json", "-", "--mlperf-logs", dir});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto result = ordered_json::parse(r.out)[0];
  const std::string results = dir + "/TrainWatt-simulated/results/" + system + "/llama2_70b_lora/";
  const auto lines = log_lines(results + "result_0.txt");
  CHECK(forms(lines) == forms(log_lines(real_file)));

  double before = 0;
  for (const ordered_json& line : lines) {
    CHECK(line["time_ms"].get<double>() >= before);
    before = line["time_ms"].get<double>();
  }
  const double run_s = (stamp_ms(lines, "run_stop") - stamp_ms(lines, "run_start")) / 1000;
  const double time_s = result.at("run").at("time_to_train_s").at("mean").get<double>();
  CHECK(std::abs(run_s - time_s) <= 0.0005 + 1e-9);
  CHECK(lines.back()["metadata"]["samples_count"] == result.at("run").at("samples").get<double>());

  double joules = 0;
  for (int i = 0; i < nodes; ++i) {
    const auto readings = log_lines(results + "power/result_0/node_" + std::to_string(i) + ".txt");
    CHECK(form(readings.front()) ==
          "namespace time_ms event_type key value metadata INTERVAL_START "
          "power_measurement_start null");
    CHECK(form(readings.back()) ==
          "namespace time_ms event_type key value metadata INTERVAL_END "
          "power_measurement_stop null");
    CHECK(readings[1]["value"].is_number_integer());
    joules += file_energy_j(readings, run_s);
  }
  const auto& scored = result.at("energy_mlperf_v4_0");
  const double factor = scored.at("rcp_factor").get<double>();
  CHECK(joules * factor == Approx(scored.at("nodes_dc_j").get<double>()).epsilon(0.005));
  CHECK(ordered_json::parse(text_of(results + "scaling.json"))["scaling_factor"].get<double>() == factor);
}

}  // namespace

TEST_CASE("exported LoRA runs have the keys, order and metadata of real ones") {
  compare(k1, "1xsmc-h100", kReal + "1xSMC-H100-SXM-80GB/llama2_70b_lora/result_4951-240509201759121728742_1.txt", 1);
  compare(k8, "8xsmc-h100", kReal + "8xSMC-H100-SXM-80GB/llama2_70b_lora/result_5740-240517044141819407406_10.txt", 8);
}

TEST_CASE("a submission folder: its files as in a real one, every folder marked, the same bytes each time") {
  const Folder folder;
  const std::string dir = folder / "logs", results = dir + "/TrainWatt-simulated/results/8xsmc-h100/llama2_70b_lora";
  REQUIRE(run({"run", k8, "--runs", "3", "-q", "--mlperf-logs", dir}).code == 0);
  size_t folders = 1;
  CHECK(fs::exists(dir + "/SIMULATED"));
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (!entry.is_directory()) continue;
    ++folders;
    // The readings' folders too: a copy of one of them still says what it is.
    CHECK(fs::exists(entry.path() / "SIMULATED"));
  }
  CHECK(folders == 10);
  CHECK(holds(text_of(dir + "/SIMULATED"), "no MLPerf results"));
  CHECK(holds(text_of(results + "/SIMULATED"), "Scenario: smc-llama2-70b-lora-8n\n"));
  for (const char* name : {"result_0", "result_1", "result_2"}) {
    CHECK(fs::exists(results + "/" + name + ".txt"));
    CHECK(fs::exists(results + "/power/" + name + "/node_0.txt"));
    CHECK(fs::exists(results + "/power/" + name + "/node_7.txt"));
    CHECK_FALSE(fs::exists(results + "/power/" + name + "/node_8.txt"));
  }
  CHECK_FALSE(fs::exists(results + "/result_3.txt"));
  const auto network = log_lines(results + "/power/result_1/sw_0.txt"),
             real = log_lines(
                 kReal + "8xSMC-H100-SXM-80GB/llama2_70b_lora/power/result_5740-240517044141819407406_10/sw_0.txt");
  CHECK(network[0]["value"] == real[0]["value"]);
  CHECK(network[0]["metadata"] == real[0]["metadata"]);

  // Runs differ, by seed and time.
  const auto first = log_lines(results + "/result_0.txt"), second = log_lines(results + "/result_1.txt");
  CHECK(stamp_ms(second, "init_start") > stamp_ms(first, "run_stop"));
  CHECK(stamp_ms(second, "run_stop") - stamp_ms(second, "run_start") !=
        stamp_ms(first, "run_stop") - stamp_ms(first, "run_start"));
  const std::string log = text_of(results + "/result_0.txt");
  CHECK(holds(log, "\"key\": \"submission_org\", \"value\": \"TrainWatt (simulated)\""));
  CHECK(holds(log, "\"key\": \"submission_status\", \"value\": \"research\""));
  CHECK(holds(log, "\"key\": \"submission_platform\", \"value\": \"8xTrainWatt (simulated)\""));
  CHECK(log.rfind(" 0: TrainWatt (simulated)", 0) == 0);

  const std::string system = text_of(dir + "/TrainWatt-simulated/systems/8xsmc-h100.json");
  std::vector<std::string> keys, real_keys;
  const auto own_system = ordered_json::parse(system);
  for (const auto& [key, value] : own_system.items()) keys.push_back(key);
  const auto real_system = ordered_json::parse(text_of(kReal + "../systems/8xSMC-H100-SXM-80GB.json"));
  for (const auto& [key, value] : real_system.items()) real_keys.push_back(key);
  CHECK(keys == real_keys);
  CHECK(holds(system, "\"submitter\": \"TrainWatt (simulated)\""));
  // What the checker of system descriptions and the summarizer want of it.
  CHECK(own_system["status"] == "Research, Development, or Internal (RDI)");
  for (const char* key : {"host_processors_per_node", "host_processor_core_count", "host_processor_vcpu_count",
                          "accelerators_per_node", "number_of_nodes"})
    CHECK_NOTHROW(std::stoi(own_system[key].get<std::string>()));

  // Fewer runs of the same scenario take the place of the old ones; another system comes beside them.
  REQUIRE(run({"run", k8, "--runs", "2", "-q", "--mlperf-logs", dir}).code == 0);
  CHECK_FALSE(fs::exists(results + "/result_2.txt"));
  CHECK_FALSE(fs::exists(results + "/power/result_2"));
  CHECK(text_of(results + "/result_0.txt") == log);
  REQUIRE(run({"run", k1, "-q", "--mlperf-logs", dir}).code == 0);
  CHECK(fs::exists(results + "/result_1.txt"));
  CHECK(fs::exists(dir + "/TrainWatt-simulated/results/1xsmc-h100/llama2_70b_lora/power/result_0/node_0.txt"));
  CHECK_FALSE(fs::exists(dir + "/TrainWatt-simulated/results/1xsmc-h100/llama2_70b_lora/power/result_0/sw_0.txt"));
}

TEST_CASE("run --mlperf-logs refuses before anything is simulated or written") {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const size_t files = folder.files();
    const Run r = run(arguments);
    CHECK(r.code == 2);
    CHECK(holds(r.err, why));
    CHECK(r.out.empty());
    CHECK(folder.files() == files);
  };
  const std::string dir = folder / "logs";
  refused({"run", "scenarios/mixtral-8x7b.json", "--mlperf-logs", dir},
          "scenarios/mixtral-8x7b.json: /benchmark: is missing, but --mlperf-logs needs it; ");
  refused({"run", "scenarios/llama3.1-70b-1t-tokens.json", "--set", "/benchmark=gpt3", "--mlperf-logs", dir},
          "/run/reliability: interrupts the run");
  refused({"run", k8, "--set", "/benchmark=lora", "--mlperf-logs", dir}, "/benchmark");
  refused({"run", k8, "scenarios/smc-llama2-70b-lora-8n-rectifiers-fail.json", "--mlperf-logs", dir},
          "are both llama2_70b_lora on 8xsmc-h100");
  const std::string file = folder.put("file", "x");
  refused({"run", k8, "--mlperf-logs", file}, "is not a folder");
  refused({"run", k8, "--mlperf-logs", file + "/logs"}, "is not a folder");
  folder.put("real/smc/results/notes.txt", "x");
  refused({"run", k8, "--mlperf-logs", folder / "real"}, "is not empty and holds no simulated submission");

  REQUIRE(run({"run", k8, "-q", "--mlperf-logs", dir}).code == 0);
  refused({"run", "scenarios/smc-llama2-70b-lora-8n-rectifiers-fail.json", "--mlperf-logs", dir},
          "holds runs of smc-llama2-70b-lora-8n, not of smc-llama2-70b-lora-8n-rectifiers-fail");
  refused({"run", k8, "--set", "/cluster/node/nic_bandwidth=400 Gbit/s", "--mlperf-logs", dir},
          "describes another system of that name");
}

TEST_CASE("a run that its supply stops is logged as aborted; evaluations beside training keep their order") {
  const Folder folder;
  const std::string dir = folder / "logs";
  const Run r = run({"run", kUnet, "-q", "--mlperf-logs", dir});
  REQUIRE(r.code == 0);
  const auto lines = log_lines(dir + "/TrainWatt-simulated/results/9xsmc-h100/unet3d/result_0.txt");
  double before = 0;
  int evaluations = 0;
  for (const ordered_json& line : lines) {
    CHECK(line["time_ms"].get<double>() >= before);
    before = line["time_ms"].get<double>();
    if (line["key"] == "eval_accuracy") ++evaluations;
  }
  CHECK(evaluations > 10);
  CHECK(lines.back()["key"] == "run_stop");
  CHECK(lines.back()["metadata"]["status"] == "success");

  // Training for a number of steps reaches no target.
  REQUIRE(
      run({"run", "scenarios/mlperf-gpt3.json", "-q", "--mlperf-logs", dir, "--set", R"(/run={"steps": 20})"}).code ==
      0);
  const std::string gpt3 = text_of(dir + "/TrainWatt-simulated/results/64xeos-h100/gpt3/result_0.txt");
  CHECK(holds(gpt3, "\"status\": \"aborted\""));
}

TEST_CASE("two writers of one folder wait for each other and lose nothing") {
  const Folder folder;
  const std::string dir = folder / "logs", program = "cd " + source_folder() + "; " + program_folder() + "/trainwatt";
  const auto command = [&](const std::string& scenario) {
    return "(" + program + " run " + scenario + " -q --runs 3 --mlperf-logs " + dir + " > /dev/null; echo $? >> " +
           (folder / "codes") + ") & ";
  };
  REQUIRE(std::system((command(k1) + command(k8) + command(k8) + "wait").c_str()) == 0);
  CHECK(text_of(folder / "codes") == "0\n0\n0\n");
  const Run r = run({"import", dir, "--json", "-"});
  REQUIRE(r.code == 0);
  const auto j = ordered_json::parse(r.out);
  REQUIRE(j["benchmarks"].size() == 2);
  for (const auto& b : j["benchmarks"]) CHECK(b["runs"].size() == 3);
  for (const auto& f : j["findings"]) UNSCOPED_INFO(f.dump());
  CHECK(j["findings"].empty());
}

TEST_CASE("runs of one system from several commands: the first stay, the others are told why they are not there") {
  const Folder folder;
  const std::string dir = folder / "logs", program = "cd " + source_folder() + "; " + program_folder() + "/trainwatt";
  std::string all;
  for (const char* other : {"--seed 1", "--seed 2", "--seed 3", "--set /plan/gbs=16"})
    all += "(" + program + " run " + k8 + " -q --mlperf-logs " + dir + " " + other + " > /dev/null 2>> " +
           (folder / "errors") + "; echo $? >> " + (folder / "codes") + ") & ";
  REQUIRE(std::system((all + "wait").c_str()) == 0);
  std::vector<std::string> codes;
  for (const std::string& code : tw::split(text_of(folder / "codes"), '\n'))
    if (!code.empty()) codes.push_back(code);
  std::sort(codes.begin(), codes.end());
  CHECK(codes == std::vector<std::string>{"0", "2", "2", "2"});
  CHECK(holds(text_of(folder / "errors"), "; another folder"));

  // One after the other: refused before anything is simulated, and the runs that are there stay to the byte.
  const std::string one = folder / "one",
                    log = one + "/TrainWatt-simulated/results/8xsmc-h100/llama2_70b_lora/result_0.txt";
  REQUIRE(run({"run", k8, "-q", "--mlperf-logs", one}).code == 0);
  const std::string before = text_of(log);
  const Run seed = run({"run", k8, "-q", "--seed", "2", "--mlperf-logs", one});
  CHECK(seed.code == 2);
  CHECK(seed.out.empty());
  CHECK(holds(seed.err, "holds runs of seed 1, not of seed 2"));
  const Run inputs = run({"run", k8, "-q", "--set", "/plan/gbs=16", "--mlperf-logs", one});
  CHECK(inputs.code == 2);
  CHECK(holds(inputs.err, "holds runs of inputs of sha256 "));
  CHECK(text_of(log) == before);
}

// Score of a folder as result_summarizer computes it: olympic mean of run_stop - run_start, times scaling.json.
double summarized_s(const std::string& results, int runs) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto lines = log_lines(results + "/result_" + std::to_string(i) + ".txt");
    times.push_back((stamp_ms(lines, "run_stop") - stamp_ms(lines, "run_start")) / 1000);
  }
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (size_t i = 1; i + 1 < times.size(); ++i) sum += times[i];
  return sum / static_cast<double>(times.size() - 2) *
         ordered_json::parse(text_of(results + "/scaling.json"))["scaling_factor"].get<double>();
}

TEST_CASE("exported folders score what the program says, with the factor of the reference convergence") {
  struct Case {
    const char *scenario, *folder;
    double factor, margin;
  };
  // By the reference convergence points of mlcommons/logging: reference samples over those of the scenario.
  for (const Case& c :
       {Case{"mlperf-lora", "1xeos-h100/llama2_70b_lora", 1.0347, 5.1e-5},
        Case{"mlperf-gnn", "1xeos-h100/gnn", 1.0037, 5.1e-5}, Case{"mlperf-bert", "1xeos-h100/bert", 1.0099, 2e-4},
        Case{"mlperf-stable-diffusion", "1xeos-h100/stable_diffusion", 0, 0}}) {
    CAPTURE(c.scenario);
    const Folder folder;
    const Run r = run({"run", "scenarios/" + std::string(c.scenario) + ".json", "--runs", "4", "--json", "-", "-q",
                       "--mlperf-logs", folder / "logs"});
    INFO(r.err);
    REQUIRE(r.code == 0);
    const auto result = ordered_json::parse(r.out)[0];
    const std::string results = folder / ("logs/TrainWatt-simulated/results/" + std::string(c.folder));
    const double official = result["run"]["time_to_train_s"]["official"].get<double>();
    CHECK(summarized_s(results, 4) == Approx(official).margin(1.1e-3));
    if (c.factor > 0) CHECK(result["runs"]["rcp_factor"].get<double>() == Approx(c.factor).margin(c.margin));
    const Run imported = run({"import", folder / "logs", "--json", "-"});
    const auto j = ordered_json::parse(imported.out);
    CHECK(j["benchmarks"][0]["score"]["time_s"].get<double>() == Approx(official).margin(1.1e-3));
    for (const auto& f : j["findings"]) UNSCOPED_INFO(f.dump());
    CHECK(j["findings"].empty());
  }
}
