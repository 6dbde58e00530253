// What users and other programs do to the program: runs that die, files in strange places, damaged and endless inputs.
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "program.hpp"

using namespace program;
using nlohmann::json;

namespace {

const std::string kTrip =
    R"(/run/power_failures=[{"part":"rectifier","unit":0,"count":8,"at":"2.5 s","policy":"trip"}])";

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("a run that dies has no time to train: null, what it has done, a status, exit code 4") {
  const Run r = run({"run", k8, "--set", kTrip, "--json", "-"});
  CHECK(r.code == 4);
  CHECK(holds(r.err, "stopped before their target"));
  const json result = json::parse(r.out).front();
  CHECK(result["run"]["status"] == "stopped");
  CHECK(result["run"]["stopped_at_s"] == Approx(2.5));
  for (const char* key : {"mean", "p50", "olympic", "official"}) CHECK(result["run"]["time_to_train_s"][key].is_null());
  CHECK(result["run"]["goodput"].is_null());
  CHECK(result["run"]["days"].is_null());
  CHECK(result["run"]["samples"].get<double>() < 100);
  CHECK(result["energy"]["nodes_dc_j"].get<double>() > 0);
  CHECK(result["energy_mlperf_v4_0"]["total_dc_j"].is_null());
  CHECK(holds(run({"run", k8, "--set", kTrip}).out, "stopped"));
}

TEST_CASE("a failure of power after the end of a run changes nothing") {
  const std::string late =
      R"(/run/power_failures=[{"part":"rectifier","unit":0,"count":8,"at":"5 h","policy":"trip"}])";
  const Run r = run({"run", k8, "--set", late, "--json", "-"});
  CHECK(r.code == 0);
  CHECK(json::parse(r.out).front()["run"]["status"] == "finished");
}

TEST_CASE("what fails must feed a node of the job: check says so as run does") {
  const std::string spare =
      R"(/run/power_failures=[{"part":"feed","at":"1 s","lasts":"2 s"},{"part":"shelf","unit":30,"at":"1 s"}])";
  for (const char* command : {"check", "run"}) {
    const Run r = run({command, k8, "--set", spare});
    CHECK(r.code == 2);
    CHECK(holds(r.err, "/run/power_failures/1/unit: bus 30 feeds no node of the job"));
  }
}

TEST_CASE("sweeps and plans do not rank a run that dies") {
  const Folder f;
  const auto study = f.put("study.json", R"({"name": "s", "scenario": ")" + k8 + R"(", "axes": [{"set":
    {"/run/power_failures": [[], [{"part":"rectifier","unit":0,"count":8,"at":"2.5 s","policy":"trip"}]]}}]})");
  const Run sweep = run({"sweep", study, "-o", f / "out"});
  CHECK(sweep.code == 0);
  CHECK(holds(sweep.err, "1 points stopped"));
  CHECK(holds(sweep.out, "stopped: the run stopped before its target"));
  const Run plan = run({"plan", k8, "--set", kTrip, "--simulate", "2", "--top", "1"});
  CHECK(plan.code == 3);
  CHECK(holds(plan.out, "the run stops before its target"));
}

TEST_CASE("outputs keep links and devices, and say when nothing can be written") {
  const Folder f;
  f.put("real.csv", "old");
  fs::create_symlink(f / "real.csv", f / "link.csv");
  CHECK(run({"run", k1, "--telemetry", f / "link.csv", "--telemetry-interval", "60"}).code == 0);
  CHECK(fs::is_symlink(f / "link.csv"));
  CHECK(holds(tw::read_file(f / "real.csv"), "scenario,time_s"));
  fs::create_symlink("new.csv", f / "dangling.csv");
  CHECK(run({"run", k1, "--telemetry", f / "dangling.csv", "--telemetry-interval", "60"}).code == 0);
  CHECK(fs::is_symlink(f / "dangling.csv"));
  CHECK(holds(tw::read_file(f / "new.csv"), "scenario,time_s"));
  fs::create_symlink("round.csv", f / "round.csv");
  CHECK(run({"run", k1, "--telemetry", f / "round.csv"}).code == 2);
  CHECK(run({"run", k1, "--telemetry", "/dev/null", "-q"}).code == 2);
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(run({"run", k1, "--json", "/dev/full"}).code == 2);
  CHECK(run({"--help"}, -1, "/dev/full").code == 2);
  fs::create_directories(f / "out/power-smc-llama2-70b-lora-1n.svg");
  const Run folder = run({"run", k1, "-o", f / "out"});
  CHECK(folder.code == 2);
  CHECK(holds(folder.err, "it is a folder"));
}

// Limits of the shell that starts the program.
TEST_CASE("few descriptors and short files are no bugs of ours, and leave no halves") {
  const Folder f;
  const auto limited = [&](const std::string& limit, const std::string& words) {
    const std::string line = "cd " + source_folder() + "; exec > /dev/null 2> " + (f / "err") + "; ulimit " + limit +
                             "; exec " + program_folder() + "/trainwatt " + words;
    const int status = std::system(("/bin/sh -c '" + line + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
#ifndef __SANITIZE_ADDRESS__  // sanitizers look through a pipe, which takes two
  CHECK(limited("-n 5", "run " + k8) == 4);
  CHECK(holds(tw::read_file(f / "err"), "Too many open files"));
#endif
  CHECK(limited("-f 20", "run " + k8 + " -o " + (f / "out")) == 2);
  CHECK(holds(tw::read_file(f / "err"), "cannot be written (File too large)"));
  for (const auto& entry : fs::directory_iterator(f / "out")) {
    CAPTURE(entry.path().string());
    CHECK(entry.path().filename().string().find(".part") == std::string::npos);
    CHECK(fs::file_size(entry.path()) > 0);
  }
}

TEST_CASE("two runs write one file of telemetry: each as a whole, the last one stays") {
  const Folder f;
  const std::string one = "cd " + source_folder() + "; " + program_folder() + "/trainwatt run " + k1 +
                          " -q --telemetry-interval 60 --telemetry " + (f / "power.csv") +
                          " > /dev/null && echo done >> " + (f / "ends");
  REQUIRE(std::system(("(" + one + ") & (" + one + ") & (" + one + ") & wait").c_str()) == 0);
  CHECK(tw::read_file(f / "ends") == "done\ndone\ndone\n");
  REQUIRE(run({"run", k1, "-q", "--telemetry-interval", "60", "--telemetry", f / "alone.csv"}).code == 0);
  CHECK(tw::read_file(f / "power.csv") == tw::read_file(f / "alone.csv"));
  CHECK(f.files() == 3);
}

TEST_CASE("a transferred profile holds numbers alone") {
  const Run r = run({"calibrate", "--transfer", "models/accelerators/h100-sxm.json", "--datasheet",
                     "models/accelerators/a100-sxm-80gb.json", "-o", "-"});
  REQUIRE(r.code == 0);
  for (const char* word : {"inf ", "nan ", "-"}) CHECK(r.out.find(std::string("\": \"") + word) == std::string::npos);
}

TEST_CASE("damaged results are bad input") {
  const Folder f;
  const auto deep = f.put("deep.json", "[{\"scenario\":\"a\",\"x\":" + std::string(1000000, '[') + "}]");
  const auto good = f.put("good.json", R"([{"scenario": "a", "step": {"time_s": 1}}])");
  for (const auto& bad : {deep, f.put("number.json", R"([{"scenario": 5}])"), f.put("empty.json", "[]"),
                          f.put("cut.json", R"([{"scenario": "a")")}) {
    const Run r = run({"compare", good, bad});
    INFO(bad << r.err.substr(0, 300));
    CHECK(r.code == 2);
  }
  for (const auto& [file, text] : {std::pair{"result.json", "[{}]"}, std::pair{"result.json", "{\"a\": 1}"},
                                   std::pair{"validate.json", "{}"}, std::pair{"result.json", "[1]"}}) {
    const Folder one;
    one.put(file, text);
    const Run r = run({"report", one / ""});
    INFO(file << text << r.err);
    CHECK(r.code == 2);
  }
  const Folder pipe;
  ::mkfifo((pipe / "result.json").c_str(), 0600);
  CHECK(run({"report", pipe / ""}).code == 2);
  f.put("shard/sweep.sqlite", "no database");
  CHECK(run({"merge", f / "shard", "-o", f / "whole"}).code == 2);
}

TEST_CASE("merge --overwrite keeps what is there until the whole can take its place") {
  const Folder f;
  const auto study = f.put("study.json", R"({"name": "s", "scenario": ")" + k1 + R"(", "seeds": [1, 2]})");
  CHECK(run({"sweep", study, "-o", f / "whole"}).code == 0);
  CHECK(run({"sweep", study, "-o", f / "part"}).code == 0);
  const std::string before = tw::read_file(f / "whole/sweep.sqlite");
  tw::write_file(f / "part/sweep.sqlite", tw::read_file(f / "part/sweep.sqlite").substr(0, 6000));
  CHECK(run({"merge", f / "part", "-o", f / "whole", "--overwrite"}).code == 2);
  CHECK(tw::read_file(f / "whole/sweep.sqlite") == before);
}

TEST_CASE("inputs that would take for ever are refused before work starts") {
  const auto refused = [](const std::vector<std::string>& set, int code, const std::string& why) {
    std::vector<std::string> words{"run", k8};
    for (const std::string& one : set) words.insert(words.end(), {"--set", one});
    Run r;
    CHECK(seconds_of([&] { r = run(words); }) < 60);  // less than one, on a machine of its own
    INFO(r.err);
    CHECK(r.code == code);
    CHECK(holds(r.err, why));
  };
  refused({"/software/init=1e30 s"}, 2, "is beyond what there is");
  refused({"/run/evaluation_interval=1e-9"}, 3, "at most");
  refused({"/run/evaluation_interval=1e-300"}, 3, "a longer evaluation_interval");
  refused({R"(/run/reliability={"name": "bad", "gpu_mtbf": "60 s"})", "/run/samples=1e7"}, 3, "failures");
  refused({R"(/run/reliability={"name": "bad", "gpu_mtbf": "60 s"})"}, 3, "failures; at most");
  refused({"/plan/gbs=1000000000"}, 3, "visits of stages");
  refused({"/cluster/power_delivery/shelves_per_bus=4096", "/cluster/power_delivery/rectifiers_per_shelf=256"}, 2,
          "rectifiers; at most");
  std::string many = "/run/samples_by_run=[";
  for (int i = 0; i < 20000; ++i) many += std::string(i ? "," : "") + "-" + std::to_string(i + 1);
  refused({many + "]", "/run/samples=null"}, 2, "more faults like these");
  refused({"/cluster/fabric/failed=[\"node-0\"]"}, 2, "is a node, no switch or cable");
}

// Steps of milliseconds, and failures that cost nothing but the work since the last checkpoint: years of it, step by
// step, where nothing bounds them.
TEST_CASE("a failure a minute ends in an answer, however short the steps and the way back are") {
  const std::string way_back = R"("software_mtbf": "MTBF", "detect": "0 s", "reschedule": "0 s", "repair": "0 s")";
  for (const auto& [mtbf, code] : {std::pair{"60 s", 3}, std::pair{"1 h", 0}}) {
    std::string reliability = way_back;
    reliability.replace(reliability.find("MTBF"), 4, mtbf);
    const Run r = run({"run", "scenarios/mlperf-dlrm.json", "--set", "/software/init=0 s", "--set", "/run/samples=1e11",
                       "--set", R"(/run/reliability={"name": "bad", )" + reliability + "}"});
    CAPTURE(mtbf, r.err);
    CHECK(r.code == code);
    CHECK(r.cpu_s < 60);
    CHECK(r.peak_bytes < 500e6);
  }
}

TEST_CASE("bytes beyond what there is are bad input, wherever they stand") {
  std::istringstream inputs(run({"run", k8, "--explain-inputs"}).out);
  int tried = 0;
  for (std::string line; std::getline(inputs, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, std::regex(R"re(^(/\S+) = "[0-9.e+]+ ([KMGT]i?)?B")re"))) continue;
    ++tried;
    const Run r = run({"check", k8, "--set", match[1].str() + "=1e300 B"});
    CAPTURE(line);
    CHECK(r.code == 2);
    CHECK(r.error_lines() == 1);
    CHECK(holds(r.err, match[1].str() + ": \"1e300 B\" is beyond what there is"));
  }
  CHECK(tried > 4);
}

TEST_CASE("a cluster whose cores stand above no spines is refused; a missing file names inputs alone") {
  const Run r = run({"check", "scenarios/mlperf-dlrm.json", "--set", "/cluster/fabric/spines=0"});
  CHECK(r.code == 2);
  CHECK(holds(r.err, "cores above no spines"));
  const Run missing = run({"run", "smc-resnt-8n.json"});
  CHECK(missing.code == 2);
  CHECK_FALSE(holds(missing.err, "CMakePresets"));
}

TEST_CASE("a scenario may come from a pipe") {
  const Folder f;
  ::mkfifo((f / "pipe").c_str(), 0600);
  std::thread writer([&] {
    const int fd = ::open((f / "pipe").c_str(), O_WRONLY);
    const std::string text = R"({"use": ")" + source_folder() + "/" + k1 + R"("})";
    (void)!::write(fd, text.data(), text.size());
    ::close(fd);
  });
  const Run r = run({"check", f / "pipe"});
  writer.join();
  INFO(r.err);
  CHECK(r.code == 0);
}

TEST_CASE("check holds results to what has to add up") {
  const Folder f;
  CHECK(run({"run", k1, "--json", f / "r.json", "-q"}).code == 0);
  CHECK(run({"check", f / "r.json"}).code == 0);
  json wrong = json::parse(tw::read_file(f / "r.json"));
  wrong[0]["energy"]["nodes_dc_j"] = wrong[0]["energy"]["nodes_dc_j"].get<double>() * 1.01;
  wrong[0]["step"]["breakdown_s"]["host"] = -1.0;
  const Run r = run({"check", f.put("w.json", wrong.dump())});
  CHECK(r.code == 2);
  CHECK(holds(r.err, "/0/energy/nodes_dc_j"));
  CHECK(holds(r.err, "/0/step/breakdown_s/host: -1 is below 0"));
  wrong = json::parse(tw::read_file(f / "r.json"));
  wrong[0]["energy"]["total_ac_j"] = 1;
  wrong[0]["energy"]["facility_j"] = 2;
  wrong[0]["step"]["interval"]["low"] = 1e9;
  const Run more = run({"check", f.put("w.json", wrong.dump())});
  for (const char* place : {"/0/energy/total_ac_j", "/0/energy/facility_j", "/0/step/interval"})
    CHECK(holds(more.err, place));
}

TEST_CASE("a result on one line is no table of power") {
  const Folder f;
  REQUIRE(run({"run", k1, "--json", f / "r.json", "-q"}).code == 0);
  const std::string line = f.put("line.json", json::parse(tw::read_file(f / "r.json")).dump());
  CHECK(run({"compare", f / "r.json", line}).code == 0);
  // And a step that does not react to what changed says what it is made of.
  REQUIRE(
      run({"run", k1, "--set", "/cluster/fabric/uplink_bandwidth=200 Gbit/s", "--json", f / "slow.json", "-q"}).code ==
      0);
  CHECK(holds(run({"compare", f / "r.json", f / "slow.json"}).out, "stays as it was: "));
}

TEST_CASE("a difference that seeds alone make is told as such") {
  const Folder f;
  for (const char* seed : {"1", "11"})
    REQUIRE(run({"run", k8, "--runs", "6", "--seed", seed, "--json", f / (seed + std::string(".json")), "-q"}).code ==
            0);
  CHECK(holds(run({"compare", f / "1.json", f / "11.json"}).out, "that the seeds of these runs leave open"));
}

TEST_CASE("plan: how many nodes a hall carries, with and without nameplate and derating") {
  const Run r = run({"plan", k8, "--fit", "--facility-power", "200 kW", "--json", "-"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json fit = json::parse(r.out)["fit"];
  REQUIRE(fit.size() == 4);
  for (const json& a : fit) {
    if (a["nodes"] > 0) CHECK(a["facility_peak_w"].get<double>() <= a["limit_w"].get<double>());
    CHECK(a["nodes"].get<int>() <= fit[0]["nodes"].get<int>());
  }
  CHECK(fit[0]["nodes"].get<int>() > 8);
  CHECK(fit[1]["nodes"].get<int>() < fit[0]["nodes"].get<int>());
  CHECK(fit[2]["limit_w"].get<double>() == Approx(160e3));
}
