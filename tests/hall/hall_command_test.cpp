// trainwatt hall as a user runs it: refusals in one line with nothing written, results that add up.
#include <nlohmann/json.hpp>

#include "command_line/program.hpp"
#include "core/csv.hpp"

using namespace program;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Two kinds of given jobs on one small cluster; `over` replaces or adds keys.
std::string hall(const std::string& over = "{}") {
  nlohmann::json h = nlohmann::json::parse(R"({
    "name": "toy",
    "site": {"name": "here", "pue": 1.2, "carbon_intensity": "0.4 kg/kWh", "price": "0.1 USD/kWh"},
    "clusters": [{"name": "smc", "cluster": {"use": "topologies/smc-h100.json", "fabric": {"units": 2}}}],
    "jobs": [
      {"name": "a", "nodes": 4, "duration": "1 h", "node_power": "7 kW", "every": "30 min", "count": 3,
       "points": [{"cap": "500 W", "slowdown": 1.2, "node_power": "5.5 kW"}]},
      {"name": "b", "nodes": 8, "duration": "2 h", "node_power": "6 kW", "priority": 1}
    ],
    "budget": {"power": "130 kW", "keep": ["cap"]}
  })");
  h.merge_patch(nlohmann::json::parse(over));
  return h.dump();
}

std::string refused(const std::string& over, int code) {
  const Folder f;
  const std::string file = f.put("hall.json", hall(over));
  const Run r = run({"hall", file, "-o", f / "out"});
  INFO(r.err);
  CHECK(r.code == code);
  CHECK(r.error_lines() == 1);
  CHECK(r.out.empty());
  CHECK(f.files() == 1);
  return r.err;
}

}  // namespace

TEST_CASE("hall: what can never work is refused in one line, and nothing is written") {
  CHECK(contains(refused(R"({"jobs": [{"name": "big", "nodes": 13, "duration": "1 h", "node_power": "7 kW"}]})", 3),
                 "big can never start: it wants 13 nodes, smc has 12"));
  CHECK(contains(refused(R"({"budget": {"power": "20 kW"}})", 3), "takes with every node idle"));
  CHECK(contains(refused(R"({"battery": {"capacity": "1 MWh", "power": "0 W", "recharge": "1 kW"}})", 2),
                 "/battery/power"));
  CHECK(contains(refused(R"({"battery": {"capacity": "1 MWh", "recharge": "1 kW"}})", 2), "power"));
  CHECK(contains(
      refused(R"({"jobs": [{"name": "a", "cluster": "smd", "nodes": 1, "duration": "1 h", "node_power": "7 kW"}]})", 2),
      "no cluster \"smd\" in the hall; did you mean \"smc\"?"));
  CHECK(contains(refused(R"({"budget": {"power": null}})", 2), "/budget: one of"));
  // Two nodes of 30 kW on a bus of 40 kW.
  CHECK(contains(refused(R"({"budget": null, "jobs": [{"name": "hot", "nodes": 2, "duration": "1 h",
                             "node_power": "30 kW"}]})",
                         3),
                 "bus-0 of smc is asked for 60000 W at 0.000 s; it gives 40000 W (hot)"));
}

TEST_CASE("hall: one currency, prices to go by, caps that a board can hold, a hall's own cluster") {
  CHECK(contains(refused(R"({"money": {"node": {"smc": "100000 EUR"}}})", 2),
                 "/money/node/smc: an amount in EUR beside others in USD"));
  CHECK(contains(refused(R"({"money": {"demand_charge": "1000 JPY"}})", 2), "/money/demand_charge: an amount in JPY"));
  CHECK(contains(refused(R"({"site": {"price": null}, "money": {"switch": "10000 CHF", "cable": "500 USD"}})", 2),
                 "an amount in"));
  const std::string waits = R"([{"name": "a", "nodes": 4, "duration": "1 h", "node_power": "7 kW", "price_below": )";
  CHECK(contains(refused(R"({"jobs": )" + waits + R"("0.1 EUR/kWh"}]})", 2), "/jobs/0/price_below: an amount in EUR"));
  CHECK(contains(refused(R"({"site": {"price": null}, "jobs": )" + waits + R"("0.1 USD/kWh"}]})", 2),
                 "/jobs/0/price_below: the site has no price to go by"));
  const std::string lora = R"({"jobs": [{"name": "l", "scenario": "scenarios/smc-llama2-70b-lora-1n.json", )";
  CHECK(contains(refused(lora + R"("caps": ["500 W", "100 W"]}]})", 2),
                 "/jobs/0/caps/1: 100 W is not above what the board draws with a job loaded"));
  CHECK(contains(refused(lora + R"("set": ["/cluster=\"topologies/superpod-b200.json\""]}]})", 2),
                 "/jobs/0/set/0: /cluster is the hall's to say"));
  CHECK(contains(refused(lora + R"("set": ["/cluster/node/gpus=4"]}]})", 2), "/cluster is the hall's to say"));
}

TEST_CASE("hall: files, sums and seeds") {
  const Folder f;
  const std::string file = f.put("hall.json", hall());
  const Run r = run({"hall", file, "-o", f / "out", "--json", f / "a.json", "--runs", "3"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  for (const char* name : {"hall.json", "jobs.csv", "power.csv", "hall.csv", "table.txt"})
    CHECK(fs::exists(f / (std::string("out/") + name)));
  const std::string text = tw::read_file(f / "a.json");
  CHECK(text == tw::read_file(f / "out/hall.json"));
  const auto h = nlohmann::json::parse(text);
  double sum = 0;
  for (const auto& job : h["jobs"]) sum += job["energy_j"].get<double>();
  CHECK(sum == Approx(h["feed_j"].get<double>()).epsilon(1e-9));
  CHECK(std::abs(h["books_error"].get<double>()) < 1e-9);
  CHECK(h["peak_w"].get<double>() <= 130e3 * (1 + 1e-9));
  CHECK(h["finished"] == 4);
  CHECK(h["cost_energy"].get<double>() == Approx(h["feed_j"].get<double>() / 3.6e6 * 0.1));
  CHECK(h["embodied_kg_co2e"].is_null());
  CHECK(h["series_of_runs"]["feed_j"]["sd"] == 0);
  run({"hall", file, "--json", f / "b.json", "--runs", "3"});
  CHECK(tw::read_file(f / "b.json") == text);
}

TEST_CASE("hall: capital is nodes, switches and cables, by node-seconds held") {
  const Folder f;
  const std::string file = f.put("hall.json", hall(R"({"money": {"node": {"smc": "100000 USD"}, "switch": "10000 USD",
    "cable": "500 USD", "years": 4}})"));
  const Run r = run({"hall", file, "--json", f / "a.json"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto h = nlohmann::json::parse(tw::read_file(f / "a.json"));
  // Two units: 12 nodes of 8 adapters, 4 leaves of 16 uplinks, 16 spines.
  const double all = 12 * 100e3 + 20 * 10e3 + (12 * 8 + 4 * 16) * 500.0;
  const double capital = all * h["end_s"].get<double>() / (4 * 365.25 * 86400);
  CHECK(h["cost_capital"].get<double>() == Approx(capital).epsilon(1e-9));
  double sum = 0, held_s = 0;
  for (const auto& job : h["jobs"]) sum += job["cost_capital"].get<double>(), held_s += job["node_s"].get<double>();
  CHECK(sum == Approx(capital).epsilon(1e-9));
  const auto& job = h["jobs"][0];
  CHECK(job["cost_capital"].get<double>() == Approx(capital * job["node_s"].get<double>() / held_s).epsilon(1e-9));
}

TEST_CASE("sweep: a study of a hall has a row for each hall") {
  const Folder f;
  f.put("hall.json", hall());
  const std::string study = f.put("study.json", R"({
    "name": "budgets", "hall": "hall.json", "skip": ["does_not_fit"],
    "axes": [{"set": {"/budget/power": ["20 kW", "110 kW", "130 kW"]}}],
    "figures": [{"x": "/budget/power", "y": "wait_mean_s", "label": "mean wait"}]
  })");
  const Run r = run({"sweep", study, "-o", f / "out", "-q"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const tw::CsvTable table = tw::CsvTable::load(f / "out/sweep.csv");
  REQUIRE(table.rows() == 3);
  CHECK(table.text(0, "status") == "skipped");
  CHECK(contains(table.text(0, "error"), "takes with every node idle"));
  CHECK(table.value(1, "peak_w") <= 110e3 * (1 + 1e-9));
  CHECK(table.value(1, "wait_mean_s") > table.value(2, "wait_mean_s"));
  run({"hall", f / "hall.json", "--json", f / "one.json"});
  const auto one = nlohmann::json::parse(tw::read_file(f / "one.json"));
  CHECK(table.value(2, "feed_j") == Approx(one["feed_j"].get<double>()).epsilon(1e-12));
  const std::string both = f.put("both.json", R"({"name": "x", "hall": "hall.json", "scenario": "a.json"})");
  CHECK(contains(run({"sweep", both, "-o", f / "no"}).err, "exactly one"));
}

TEST_CASE("hall: caps slow a simulated job as a lower limit slows its run, also on a chip that is transferred") {
  const Folder f;
  const std::string plan = R"({"nodes": 8, "mbs": 1, "cp": 2, "gbs": 512, "sharding": "zero1"})";
  nlohmann::json h = nlohmann::json::parse(hall());
  h["clusters"] = {{{"name", "b200"}, {"cluster", "topologies/superpod-b200.json"}}};
  h["budget"] = nullptr;
  h["jobs"] = {{{"name", "a"},
                {"scenario", "scenarios/llama3.1-pretraining.json"},
                {"set", {"/plan=" + plan}},
                {"caps", {"710 W"}}}};
  h.erase("budget");
  const std::string file = f.put("hall.json", h.dump());
  Run r = run({"hall", file, "--json", "-", "-q"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto caps = nlohmann::json::parse(r.out)["kinds"][0]["caps"];
  REQUIRE(caps.size() == 2);
  r = run({"run", "scenarios/llama3.1-pretraining.json", "--set", "/cluster=topologies/superpod-b200.json", "--set",
           "/plan=" + plan, "--set", "/cluster/node/accelerator/board_limit=710 W", "--json", "-", "-q"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto one = nlohmann::json::parse(r.out)[0];
  CHECK(caps[1]["slowdown"].get<double>() > 1.05);
  CHECK(caps[1]["work_s"].get<double>() == Approx(one["run"]["time_to_train_s"]["mean"].get<double>()).epsilon(1e-9));
  CHECK(caps[1]["node_w"].get<double>() == Approx(one["power"]["node_dc_w"]["mean"].get<double>()).epsilon(1e-9));
}

TEST_CASE("hall: the grid view is of a moment with steps, through all stages; what nobody looked at is not kept") {
  const Folder f;
  nlohmann::json h = nlohmann::json::parse(hall(R"({"budget": null, "money": {"demand_charge": "10 USD"}})"));
  h["jobs"] = nlohmann::json::parse(R"([
    {"name": "steps", "scenario": "scenarios/smc-llama2-70b-lora-1n.json"},
    {"name": "more", "nodes": 8, "duration": "1 h", "node_power": "7 kW", "arrival": "10 h"}])");
  const auto answer = [&](const nlohmann::json& input, const char* name) {
    const Run r = run({"hall", f.put(std::string(name) + ".json", input.dump()), "-o", f / name, "--runs", "2"});
    INFO(r.err);
    REQUIRE(r.code == 0);
    return nlohmann::json::parse(tw::read_file(f / (std::string(name) + "/hall.json")));
  };
  const auto plain = answer(h, "plain");
  CHECK(plain["grid"]["at_s"].get<double>() < 3600);  // not the highest moment, which is without steps
  const double range_w = plain["grid"]["before"]["dynamic_range"]["value"].get<double>();
  h["clusters"][0]["cluster"]["power_delivery"] = nlohmann::json::parse(
      R"({"upstream": [{"kind": "UPS", "feeds": 6, "rating": "1 MW", "proportional_loss": 0.1}]})");
  h["grid_limits"] = {{"ramp", "1 W"}, {"ramp_over", "2 min"}, {"dynamic_range", "1 W"}};
  const auto staged = answer(h, "staged");
  const auto& seen = staged["grid"]["before"];
  CHECK(seen["dynamic_range"]["value"].get<double>() == Approx(1.1 * range_w).epsilon(1e-9));
  CHECK(seen["dynamic_range"]["kept"] == false);
  CHECK(seen["ramp"]["limit"] == 1);
  for (const char* key : {"value", "at", "kept"}) CHECK(seen["ramp"][key].is_null());
  CHECK(contains(staged["warnings"].dump(), "no ramp over 120 s was looked at"));
  // The page says what the table says.
  REQUIRE(run({"report", f / "staged", "-o", f / "page.html"}).code == 0);
  const std::string page = tw::read_file(f / "page.html");
  for (const char* text : {"not looked at", "NOT KEPT", "PUE", "demand charge", "over 2 seeds"})
    CHECK(contains(page, text));
}

TEST_CASE("hall: the shipped halls are read") {
  for (const auto& entry : fs::directory_iterator(source_folder() + "/scenarios/halls")) {
    if (entry.path().extension() != ".json") continue;
    const Run r = run({"hall", entry.path().string(), "--set", "/no_such_key=1"});
    CAPTURE(entry.path().string(), r.err);
    CHECK(r.code == 2);
    CHECK(r.error_lines() == 1);
  }
}

TEST_CASE("hall: a daily budget repeats beyond a year, and a job that never fits into it is refused") {
  const std::string day =
      R"({"hourly": ["80 kW","80 kW","80 kW","80 kW","80 kW","80 kW","80 kW","80 kW","200 kW","200 kW",
    "200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW","200 kW",
    "200 kW"], "power": null, "keep": []})";
  const auto with = [&](const char* job) { return R"({"budget": )" + day + R"(, "jobs": [)" + job + "]}"; };
  CHECK(contains(refused(with(R"({"name": "long", "nodes": 8, "duration": "30 h", "node_power": "7 kW"})"), 3),
                 "long can never start: it takes 30 h, there is power for it for 16 h at a time"));
  CHECK(contains(refused(with(R"({"name": "dirty", "nodes": 8, "duration": "3 h", "node_power": "7 kW",
                                  "carbon_below": "0.3 kg/kWh"})"),
                         3),
                 "dirty waits for ever (carbon)"));
  const Folder f;
  const std::string file = f.put("hall.json", hall(with(R"({"name": "late", "nodes": 8, "duration": "16 h",
    "node_power": "7 kW", "arrival": "10000 h"})")));
  const Run r = run({"hall", file, "--json", "-", "-q"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(nlohmann::json::parse(r.out)["jobs"][0]["start_s"] == 10016 * 3600.0);
}

TEST_CASE("hall: a series that ends before the last job is a fault, or its last value is held") {
  const std::string series = R"("site": {"carbon_series": "scenarios/halls/week-carbon.csv"},
    "start": "2025-06-02T00:00+00:00", "jobs": [{"name": "a", "nodes": 4, "duration": "400 h", "node_power": "7 kW"}])";
  CHECK(contains(refused("{" + series + "}", 2), "the hall begins at 2025-06-02T00:00+00:00 and lasts 400 h"));
  const Folder f;
  const std::string file = f.put("hall.json", hall("{" + series + "}"));
  const Run r = run({"hall", file, "--set", "/site/series_gaps=hold", "--json", "-", "-q"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "its nearest value is held"));
}

TEST_CASE("hall: random arrivals go by the name of the entry, not by its place in the file") {
  const std::string series = R"({"name": "r", "nodes": 1, "duration": "1 h", "node_power": "7 kW", "random": true,
    "every": "1 h", "count": 3})";
  const std::string other = R"({"name": "x", "nodes": 1, "duration": "1 h", "node_power": "7 kW"})";
  const auto arrivals = [&](const std::string& jobs) {
    const Folder f;
    const Run r = run({"hall", f.put("hall.json", hall(R"({"jobs": [)" + jobs + "]}")), "--json", "-", "-q"});
    std::vector<double> list;
    const auto h = nlohmann::json::parse(r.out);
    for (const auto& job : h["jobs"])
      if (job["kind"] == "r") list.push_back(job["arrival_s"].get<double>());
    return list;
  };
  CHECK(arrivals(series).size() == 3);
  CHECK(arrivals(series + "," + other) == arrivals(series));
  CHECK(arrivals(other + "," + series) == arrivals(series));
}

TEST_CASE("hall: caps that rise, names that collide and times that are none are refused") {
  const std::string job = R"("nodes": 1, "duration": "1 h", "node_power": "7 kW")";
  CHECK(contains(refused(R"({"jobs": [{"name": "a", )" + job + R"(, "points": [
    {"cap": "400 W", "slowdown": 1.2, "node_power": "5 kW"}, {"cap": "500 W", "slowdown": 1.3, "node_power": "4 kW"}]}]})",
                         2),
                 "a cap that is no lower than the one before"));
  CHECK(contains(
      refused(R"({"jobs": [{"name": "a", "count": 2, "every": "1 h", )" + job + R"(}, {"name": "a-1", )" + job + "}]}",
              2),
      "one of the series \"a\" is called \"a-1\", too"));
  CHECK(contains(refused(R"({"start": "yesterday"})", 2), "\"yesterday\" is no time with its offset from UTC"));
}

TEST_CASE("hall: a job without checkpoints that keeps nodes due for maintenance is told of") {
  const Folder f;
  const std::string file =
      f.put("hall.json", hall(R"({"budget": {"power": "120 kW"}, "jobs": [{"name": "m", "nodes": 12,
    "duration": "4 h", "node_power": "7 kW", "points": [{"cap": "300 W", "slowdown": 2.5, "node_power": "3 kW"}]}],
    "maintenance": [{"first": 0, "count": 12, "at": "5 h", "lasts": "4 h"}]})"));
  const Run r = run({"hall", file, "--json", "-", "-q"});
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "m ran on while nodes were due for maintenance: no checkpoint to stop at"));
}
