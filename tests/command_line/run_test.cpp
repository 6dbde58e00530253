// Runs that succeed, runs that fail late, and what they leave behind.
#include <nlohmann/json.hpp>

#include "core/csv.hpp"
#include "program.hpp"

using namespace program;
using nlohmann::json;

namespace {

json result_of(const std::vector<std::string>& more, const std::string& scenario = k8) {
  std::vector<std::string> all{"run", scenario, "--json", "-"};
  all.insert(all.end(), more.begin(), more.end());
  const Run r = run(all);
  INFO(r.err);
  REQUIRE(r.code == 0);
  return json::parse(r.out)[0];
}

double at(const json& j, const char* pointer) {
  return j.at(json::json_pointer(pointer)).get<double>();
}

}  // namespace

TEST_CASE("run prints a table, or JSON in place of it") {
  const Run table = run({"run", k8});
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK(holds(table.out, "smc-llama2-70b-lora-8n"));
  CHECK(holds(table.out, "time to train"));
  const json r = result_of({});
  CHECK(r["scenario"] == "smc-llama2-70b-lora-8n");
  CHECK(r["plan"]["gpus"] == 64);
  // Measured figures stay in view of a what-if, with a warning.
  CHECK(holds(result_of({"--set", "/plan/gbs=16"})["warnings"].dump(), "overridden by --set"));
  const Folder folder;
  const auto mine = folder.put("mine.json", "{\"use\": \"" + k8 + "\", \"name\": \"mine\", \"reference\": null}");
  CHECK(result_of({}, mine)["reference"]["rows"].empty());
  CHECK(result_of({}, mine)["step"] == r["step"]);
}

TEST_CASE("results come in argument order and parts add up") {
  const Run r = run({"run", k64, k1, k8, "--json", "-"});
  REQUIRE(r.code == 0);
  const json all = json::parse(r.out);
  REQUIRE(all.size() == 3);
  CHECK(all[0]["plan"]["nodes"] == 64);
  CHECK(all[1]["plan"]["nodes"] == 1);
  CHECK(all[2]["plan"]["nodes"] == 8);
  for (const json& one : all) {
    double sum = 0;
    for (const auto& [name, seconds] : one["step"]["breakdown_s"].items()) sum += seconds.get<double>();
    CHECK(sum == Approx(at(one, "/step/time_s")).epsilon(1e-9));
    for (const char* window : {"energy", "energy_mlperf_v4_0"}) {
      const json& e = one[window];
      CHECK(at(e, "/total_dc_j") == Approx(at(e, "/nodes_dc_j") + at(e, "/network_j")).epsilon(1e-9));
      CHECK(at(e, "/total_ac_j") == Approx(at(e, "/total_dc_j") + at(e, "/rectifier_loss_j")).epsilon(1e-9));
    }
    double nodes = 0;
    for (const json& node : one["power"]["per_node"]) nodes += node["dc_j"].get<double>();
    CHECK(nodes == Approx(at(one, "/energy/nodes_dc_j")).epsilon(1e-9));
    double parts = 0;
    for (const auto& [name, bytes] : one["memory"]["parts_bytes"].items()) parts += bytes.get<double>();
    CHECK(parts == Approx(at(one, "/memory/per_gpu_bytes")).epsilon(1e-9));
  }
  CHECK(r.out.find("NaN") == std::string::npos);
}

TEST_CASE("same inputs and seed, same bytes, whatever the number of workers") {
  const auto bytes = [](const std::vector<std::string>& more) {
    std::vector<std::string> all{"run", k8, k9, k64, "--json", "-"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all).out;
  };
  const std::string once = bytes({"--jobs", "1"});
  CHECK(once == bytes({"--jobs", "3"}));
  CHECK(once == bytes({}));
  CHECK(once != bytes({"--seed", "2"}));
}

TEST_CASE("answers move the right way with their inputs") {
  const json base = result_of({});
  const auto moved = [&](const std::vector<std::string>& sets, const char* pointer) {
    std::vector<std::string> more;
    for (const std::string& s : sets) more.insert(more.end(), {"--set", s});
    return at(result_of(more), pointer) / at(base, pointer);
  };
  SECTION("a larger global batch makes longer steps and more samples a second") {
    CHECK(moved({"/plan/gbs=16"}, "/step/time_s") > 1.5);
    CHECK(moved({"/plan/gbs=16"}, "/step/samples_per_s") > 1);
  }
  SECTION("twice the tensor parallelism at half the context parallelism changes the step") {
    CHECK(moved({"/plan/tp=8", "/plan/cp=1"}, "/step/time_s") != 1);
  }
  SECTION("fewer nodes at the same batch take longer") {
    CHECK(moved({"/plan/nodes=4", "/plan/dp=4"}, "/run/time_to_train_s/mean") > 1.2);
  }
  SECTION("slower adapters and uplinks never speed a run up") {
    const double slow =
        moved({"/cluster/node/nic_bandwidth=2 Gbit/s", "/cluster/fabric/uplink_bandwidth=4 Gbit/s"}, "/step/time_s");
    CHECK(slow > 1.01);
    CHECK(moved({"/cluster/node/nic_bandwidth=400 Gbit/s"}, "/step/time_s") <= 1 + 1e-9);
  }
  SECTION("a lossier rectifier costs AC energy and nothing else") {
    const auto sets = std::vector<std::string>{"/cluster/power_delivery/rectifier/proportional_loss=0.05"};
    CHECK(moved(sets, "/energy/total_ac_j") > 1.001);
    CHECK(moved(sets, "/energy/total_dc_j") == Approx(1).epsilon(1e-12));
  }
  SECTION("PUE and carbon intensity scale what they are meant to scale") {
    CHECK(moved({"/site/pue=1.21"}, "/energy/facility_j") == Approx(1.1).epsilon(1e-6));
    CHECK(moved({"/site/pue=1.21"}, "/energy/total_ac_j") == Approx(1).epsilon(1e-12));
    CHECK(moved({"/site/carbon_intensity=0.81 kg/kWh"}, "/carbon/kg_co2e") == Approx(2).epsilon(1e-9));
  }
}

TEST_CASE("a new accelerator is one file of its data sheet: its kernels and watts are transferred") {
  const Folder f;
  const std::string board = f.put("toy.json", R"({"name": "Toy", "memory": "192 GiB", "board_limit": "800 W",
    "peak_bf16": "1979 TFLOP/s", "peak_fp8": "3958 TFLOP/s", "peak_fp32": "989 TFLOP/s", "memory_bandwidth": "6.7 TB/s",
    "transfer_from": ")" + source_folder() + R"(/models/accelerators/h100-sxm.json", "source": "made up"})");
  const json toy = result_of({"--set", "/cluster/node/accelerator=" + board}), h100 = result_of({});
  // Twice the H100's peaks and bandwidth.
  CHECK(at(toy, "/step/breakdown_s/compute") < 0.7 * at(h100, "/step/breakdown_s/compute"));
  CHECK(at(toy, "/step/breakdown_s/compute") >= 0.5 * at(h100, "/step/breakdown_s/compute"));
  CHECK(at(toy, "/power/node_dc_w/mean") > 0);
  CHECK(holds(toy["warnings"].dump(), "efficiencies are transferred from"));
}

TEST_CASE("a new precision is data of an accelerator: peak, bytes, kernels, watts, and its name in a plan") {
  const Folder f;
  // An H100 that multiplies in six bits, beside `more`, and a run on it whose board never throttles.
  const auto board = [&](const std::string& more) {
    return f.put("six_bits.json", R"({"use": ")" + source_folder() +
                                      R"(/models/accelerators/h100-sxm.json", "board_limit": "2 kW",
      "precisions": {"fp6_toy": {"operand_bytes": 0.78125, "like": "fp8"}}, )" +
                                      more + "}");
  };
  const auto on = [&](const std::string& more, const std::string& precision) {
    return result_of({"--set", "/cluster/node/accelerator=" + board(more), "--set", "/training/precision=" + precision,
                      "--set", "/plan/gbs=64"});
  };
  const auto peak = [](const char* rate) { return R"("peaks": {"fp6_toy": ")" + std::string(rate) + " TFLOP/s\"}"; };
  const json once = on(peak("1979"), "fp6_toy"), twice = on(peak("3958"), "fp6_toy"),
             four = on(peak("7916"), "fp6_toy");
  const auto compute_s = [](const json& j) { return at(j, "/step/breakdown_s/compute"); };
  // Time is what does not follow the peak plus products over it.
  const double saved = compute_s(once) - compute_s(twice);
  CHECK(saved > 0.2 * compute_s(once));
  CHECK(saved / (compute_s(twice) - compute_s(four)) == Approx(2).epsilon(0.02));
  CHECK(at(once, "/step/mfu") * at(once, "/step/time_s") ==
        Approx(2 * at(twice, "/step/mfu") * at(twice, "/step/time_s")).epsilon(1e-9));
  // Half of what the kernels reach takes as long as half the peak; a table of its own is what counts where there is
  // one.
  CHECK(compute_s(on(peak("3958") + R"(, "efficiency": {"fp6_toy": 0.5})", "fp6_toy")) ==
        Approx(compute_s(once)).epsilon(1e-9));
  CHECK(compute_s(on(peak("3958") + R"(, "gemm": [{"m": 8192, "n": 8192, "k": 8192, "times": {"fp6_toy": "1 s"}}])",
                     "fp6_toy")) > 10 * compute_s(once));
  // As hot as FP8 unless the accelerator says otherwise.
  const auto hot = [&](const char* watts) {
    return at(on(peak("1979") + R"(, "power": {"gemm_other": {"fp6_toy": ")" + watts + "\"}}", "fp6_toy"),
              "/power/node_dc_w/mean");
  };
  CHECK(hot("1200 W") > 1.1 * at(once, "/power/node_dc_w/mean"));
  CHECK(hot("400 W") < 0.95 * at(once, "/power/node_dc_w/mean"));

  const auto refusal = [&](const std::string& more, const std::string& precision) {
    const Run r = run({"check", k8, "--set", "/cluster/node/accelerator=" + board(more), "--set",
                       "/training/precision=" + precision});
    CHECK(r.code == 2);
    return r.err;
  };
  CHECK(holds(refusal(peak("1979"), "fp5_toy"),
              "/training/precision: unknown choice \"fp5_toy\"; allowed: fp32, bf16, fp8, mxfp8, nvfp4 or fp6_toy"));
  CHECK(holds(refusal(R"("peaks": {})", "fp6_toy"), "has no peak for fp6_toy"));
  CHECK(holds(refusal(R"("peaks": {"fp5_toy": "1 TFLOP/s"})", "bf16"), "nothing is called fp5_toy"));
  CHECK(holds(refusal(R"("power": {"gemm_other": {"fp8": "500 W"}})", "bf16"), "nothing is called fp8"));
  CHECK(holds(refusal(R"("gemm": [{"m": 1, "n": 1, "k": 1, "times": {"fp5_toy": "1 s"}}])", "bf16"),
              "/gemm/0/times/fp5_toy: nothing is called fp5_toy"));
}

TEST_CASE("run -o leaves results, tables and figures, each whole") {
  const Folder folder;
  const Run r = run({"run", k8, k64, "-o", folder / "out"});
  REQUIRE(r.code == 0);
  CHECK(r.err.empty());  // what gnuplot grumbles about is not for the user's terminal
  CHECK(json::parse(tw::read_file(folder / "out/result.json")).size() == 2);
  CHECK(tw::read_file(folder / "out/table.txt") == r.out);
  for (const char* name : {"results.csv", "power-smc-llama2-70b-lora-8n.svg", "power-smc-llama2-70b-lora-8n.png",
                           "power-smc-llama2-70b-lora-64n.csv", "power-smc-llama2-70b-lora-64n-measured.csv"}) {
    INFO(name);
    CHECK(fs::exists(fs::path(folder / "out") / name));
  }
  for (const auto& entry : fs::directory_iterator(folder / "out")) {
    CHECK(entry.path().extension() != ".part");
    // Its parts carry no names that the drawing program gave them.
    if (entry.path().extension() == ".svg") CHECK_FALSE(holds(tw::read_file(entry.path().string()), "gnuplot_plot_"));
  }
}

TEST_CASE("a run that is no benchmark has no column of a benchmark's energy window") {
  CHECK(holds(run({"run", k8, "-q"}).out, "mlperf_v4_0"));
  for (const char* scenario : {"scenarios/mixtral-8x7b.json", "scenarios/bert-large.json"})
    CHECK(run({"run", scenario, "-q"}).out.find("mlperf_v4_0") == std::string::npos);
}

TEST_CASE("memory over a step: table, CSV and counters agree with the need") {
  const Folder folder;
  const Run table = run({"run", k8, "--memory", "-", "-q"});
  CHECK(table.code == 0);
  CHECK(holds(table.out, "Memory of a GPU through one step (GiB)"));
  CHECK(holds(table.out, " peak"));
  REQUIRE(run({"run", k8, "--memory", folder / "m.csv", "--json", folder / "r.json", "-q"}).code == 0);
  const auto moments = tw::CsvTable::load(folder / "m.csv");
  double most = 0;
  for (size_t row = 0; row < moments.rows(); ++row) {
    double sum = 0;
    for (size_t c = 1; c < moments.columns().size(); ++c) sum += moments.value(row, moments.columns()[c]);
    most = std::max(most, sum);
  }
  const json result = json::parse(tw::read_file(folder / "r.json"));
  CHECK(most == Approx(result[0]["memory"]["per_gpu_bytes"].get<double>()).epsilon(1e-6));
  REQUIRE(run({"run", k8, "--memory", folder / "m.json", "-q"}).code == 0);
  size_t counters = 0;
  const json trace = json::parse(tw::read_file(folder / "m.json"));
  for (const json& e : trace["traceEvents"]) counters += e["ph"] == "C";
  CHECK(counters == moments.rows());
  const Run two = run({"run", k8, k9, "--memory", "-"});
  CHECK(two.code == 2);
  CHECK(holds(two.err, "--memory: several scenarios"));
}

TEST_CASE("out of memory: exit code 3, the table says why, the others are still run") {
  const Run r = run({"run", k1, k8, "--set", "/cluster/node/accelerator/memory=40 GiB", "--json", "-"});
  INFO(r.err);
  CHECK(r.code == 3);
  CHECK(holds(r.err, "memory"));
  const json all = json::parse(r.out);
  REQUIRE(all.size() == 2);
  CHECK(all[0].contains("error"));
  CHECK(all[0].size() == 2);
}

TEST_CASE("explain-inputs names every value and its origin, and simulates nothing") {
  const Run r = run({"run", k8, "--explain-inputs", "--set", "/plan/gbs=16"});
  CHECK(r.code == 0);
  CHECK(holds(r.out, "/plan/gbs = 16    (--set)"));
  CHECK(holds(r.out, "topologies/smc-h100.json"));
  CHECK(holds(r.out, "(default)"));
  CHECK(r.out.find("time to train") == std::string::npos);
}

TEST_CASE("a full standard output is an error, an interruption is 130") {
  if (fs::is_character_file("/dev/full")) CHECK(run({"run", k8}, -1, "/dev/full").code == 2);
  const Folder folder;
  // A program that had not begun when it was interrupted is ended by the signal itself.
  constexpr int kEnded = 1000 + SIGINT;
  int code = kEnded;
  for (int after_ms = 300; code == kEnded && after_ms < 30000; after_ms *= 3)
    code = run({"run", k64, "--runs", "1000000", "--json", folder / "x.json"}, after_ms).code;
  CHECK(code == 130);
  CHECK(folder.files() == 0);
}

TEST_CASE("topology, collective and timeline answer") {
  const Run table = run({"topology", kCluster});
  CHECK(table.code == 0);
  CHECK(holds(table.out, "leaf"));
  CHECK(holds(run({"topology", kCluster, "--route", "node-0", "node-7"}).out, "nic 7"));
  CHECK(holds(run({"topology", kCluster, "--dot", "-"}).out, "graph G {"));
  const Run one =
      run({"collective", kCluster, "--op", "all-reduce", "--size", "1 GiB", "--ranks", "64", "--json", "-"});
  REQUIRE(one.code == 0);
  const json j = json::parse(one.out);
  for (const char* key : {"op", "bytes", "ranks", "algorithm", "time_s", "busbw_Bps", "bound_s", "bottleneck"})
    CHECK(j.contains(key));
  CHECK(j["bytes"] == 1073741824.0);
  CHECK(j["time_s"].get<double>() >= j["bound_s"].get<double>());
  const auto late = [&](const char* text) {
    return run({"collective", kCluster, "--op", "all-reduce", "--size", "1 GiB", "--ranks", "64", "--json", "-",
                "--late", text});
  };
  const json after = json::parse(late("63=2 ms").out);
  CHECK(after["late_s"] == 2e-3);
  CHECK(after["time_s"].get<double>() == Approx(j["time_s"].get<double>() + 2e-3).epsilon(1e-12));
  for (const char* bad : {"64=2 ms", "-1=2 ms", "3", "x=2 ms", "3=2 MB"}) CHECK(late(bad).code == 2);
  const Run why =
      run({"collective", kCluster, "--op", "all-reduce", "--size", "256 KiB", "--ranks", "64", "--explain"});
  CHECK(holds(why.out, "assumed: at most 20.4 GB/s"));
  CHECK(holds(why.out, "of its bandwidth at this size"));
  CHECK(holds(why.out, "it is not offered without being named"));
  const auto named = run({"collective", kCluster, "--op", "all-reduce", "--size", "1 MiB", "--ranks", "64", "--explain",
                          "--algorithm", "ring"});
  CHECK(holds(named.out, "tree                        no: ring is named"));
  CHECK(!holds(named.out, "without being named"));
  // A tree of LL that the library leaves too late.
  const auto late_turn = run({"collective", "topologies/internlm-a100.json", "--op", "all-reduce", "--size", "128 KiB",
                              "--ranks", "1024", "--explain"});
  CHECK(holds(late_turn.out, "the library takes tree ll for faster than it is: tree ll128 would take"));
  const Folder folder;
  CHECK(run({"timeline", k8, "-o", folder / "t.json"}).code == 0);
  CHECK(json::parse(tw::read_file(folder / "t.json"))["traceEvents"].size() > 3);
}

TEST_CASE("compare: beside a result a scenario has what results hold, and is the same as its own") {
  const Folder f;
  REQUIRE(run({"run", k8, "-q", "--json", f / "r.json"}).code == 0);
  const Run same = run({"compare", k8, f / "r.json"});
  CHECK(same.code == 0);
  CHECK(holds(same.out, "Inputs: the same\nOutputs (SI units): the same\n"));
}

TEST_CASE("validate: JSON by contract") {
  const Run r = run({"validate", "smc", "smc-calibrated", "--json", "-"});
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  REQUIRE(j["suites"].size() == 2);
  CHECK(j["suites"][0]["name"] == "smc");
  CHECK(j["suites"][0]["mape_pct"].contains("fitted"));
  CHECK(j["suites"][0]["mape_pct"].contains("predicted"));
  for (const json& suite : j["suites"])
    for (const json& row : suite["rows"]) {
      INFO(row.dump());
      CHECK(row["predicted"].is_number());
      CHECK(row["error_pct"].is_number());
    }
}
