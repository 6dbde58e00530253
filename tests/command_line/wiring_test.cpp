// topology, collective, sweep and compare as a user calls them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace program;
using nlohmann::json;

TEST_CASE("topology: summary, routes and drawings") {
  const json j = json::parse(run({"topology", kCluster, "--json", "-"}).out);
  CHECK(j["switches"][0]["ports_used"] == 960);  // 24 leaves, 24 NICs and 16 uplinks each
  CHECK(j["bisection_share"].get<double>() == 1.0);
  CHECK(j["diameter"] == 4);
  const auto nvlink = [](const std::string& cluster, std::vector<std::string> set) {
    set.insert(set.begin(), {"topology", cluster});
    return run(set).out;
  };
  CHECK(holds(nvlink(kCluster, {}), "72 NVLink domains of 8 accelerators"));
  CHECK(holds(nvlink(kCluster, {"--set", "/node/nvlink/island=2"}), "288 NVLink islands of 2 accelerators"));
  CHECK(holds(nvlink("topologies/tpu-v4-pod.json", {}), "no NVLink"));
  const Run route = run({"topology", kCluster, "--route", "node-0 nic 2", "node-7 nic 2", "--json", "-"});
  const json steps = json::parse(route.out)[0]["steps"];
  CHECK(steps[0]["at"] == "leaf-0-A");
  CHECK(steps[0]["equal_cost"].size() == 16);
  CHECK(holds(run({"topology", kCluster, "--svg", "-"}).out, "</svg>"));
  CHECK(run({"topology", kCluster, "--svg", "-", "--dot", "-"}).code == 2);
  const Run failed =
      run({"topology", kCluster, "--set", R"(/fabric/failed=["leaf-0-A"])", "--route", "node-0 nic 2", "node-7 nic 2"});
  CHECK(failed.code == 2);
  CHECK(holds(failed.err, "leaf-0-A, which has failed"));
}

TEST_CASE("collective: a table of sizes, forced algorithms, levels, a figure") {
  const Folder folder;
  const Run table = run({"collective", kCluster, "--op", "all-reduce", "--ranks", "64", "-o", folder / "out"});
  CHECK(table.code == 0);
  CHECK(std::count(table.out.begin(), table.out.end(), '\n') == 3 + 25);  // 1 KiB to 16 GiB by doubling
  CHECK(fs::exists(folder / "out/collective.csv"));
  const auto one = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"collective", kCluster,      "--op", "all-reduce", "--size", "64 MiB", "--ranks",
                                   "16",         "--algorithm", "ring", "--protocol", "simple", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run(words).out)["time_s"].get<double>();
  };
  CHECK(one({"--level", "2"}) == Approx(one({})).epsilon(1e-9));
  // Message by message: rounds wait for one another, which costs latency but no bandwidth.
  CHECK(one({"--level", "3"}) >= 0.9 * one({}));
  CHECK(one({"--level", "3"}) <= 1.6 * one({}));
  CHECK(one({"--placement", "spread"}) >= one({}));
  const Run refused = run({"collective", kCluster, "--op", "broadcast", "--algorithm", "sharp"});
  CHECK(refused.code == 2);
  CHECK(holds(refused.err, "broadcast cannot run as sharp"));
  CHECK(holds(run({"collective", kCluster, "--op", "all-reduce", "--level", "3"}).err, "--level"));
}

TEST_CASE("sweep: a row a point, failed ones with their error; compare: what differs") {
  const Folder folder;
  const std::string study = folder.put(
      "study.json", R"({"name": "tp", "scenario": ")" + k8 + R"(", "axes": [{"set": {"/plan/tp": [4, 3]}}]})");
  const Run r = run({"sweep", study, "-o", folder / "out"});
  CHECK(r.code == 0);  // the row says that it was refused
  CHECK(holds(r.err, "1 points were refused or do not fit"));
  const std::string csv = tw::read_file(folder / "out/sweep.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(holds(csv, "point,/plan/tp,error,"));
  CHECK(holds(csv, ",step.time_s,"));
  CHECK(run({"sweep", folder / "nowhere.json", "-o", folder / "out"}).code == 2);

  REQUIRE(run({"run", k8, "--json", folder / "a.json"}).code == 0);
  REQUIRE(run({"run", k8, "--set", "/site/pue=1.3", "--json", folder / "b.json"}).code == 0);
  const Run same = run({"compare", folder / "a.json", folder / "a.json"});
  CHECK(holds(same.out, "Inputs: the same"));
  CHECK(holds(same.out, "Outputs (SI units): the same"));
  const Run other = run({"compare", folder / "a.json", folder / "b.json"});
  CHECK(other.code == 0);
  CHECK(holds(other.out, "energy.facility_j"));
  CHECK(other.out.find("step.time_s") == std::string::npos);
  CHECK(holds(run({"compare", k8, folder / "c.json"}).err, "there is no such file"));
}
