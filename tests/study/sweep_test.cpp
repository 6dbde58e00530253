// Studies and comparisons.
#include "study/sweep.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/files.hpp"
#include "network/process.hpp"
#include "paths.hpp"
#include "study/compare.hpp"
#include "study/sweep_run.hpp"

using namespace tw;

namespace {

struct Written {
  explicit Written(const std::string& text) : path("/tmp/trainwatt_study_" + std::to_string(::getpid()) + ".json") {
    write_file(path, text);
  }
  ~Written() { std::filesystem::remove(path); }
  std::string path;
};

std::string faults_of(const std::string& text) {
  const Written file(text);
  Faults faults;
  load_study(file.path, {}, faults);
  std::string all;
  for (const Fault& f : faults.list()) all += f.text() + "\n";
  return all;
}

LoadedStudy good_study(const std::string& text) {
  const Written file(text);
  Faults faults;
  LoadedStudy loaded = load_study(file.path, {}, faults);
  faults.throw_if_any();
  return loaded;
}

struct Folder {
  Folder() {
    static int number = 0;
    path = "/tmp/trainwatt_sweep_" + std::to_string(::getpid()) + "_" + std::to_string(number++);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

std::vector<StudyRow> rows_of(const std::string& folder) {
  std::vector<StudyRow> rows;
  SweepStore(folder).each([&](const StudyRow& r) { rows.push_back(r); });
  return rows;
}

const std::string kStudy8 = R"("name": "s", "scenario": "scenarios/smc-llama2-70b-lora-8n.json")";

}  // namespace

TEST_CASE("points: columns of one axis in step, axes combined, the last one fastest, seeds faster still") {
  const LoadedStudy loaded =
      good_study("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nodes": [4, 8], "/plan/gbs": [4, 8]}},
      {"set": {"/cluster/node/nic_bandwidth": ["100 Gbit/s", "200 Gbit/s", "400 Gbit/s"]}}], "seeds": [5, 7]})");
  REQUIRE(loaded.points() == 12);
  CHECK(loaded.columns() ==
        std::vector<std::string>{"/plan/gbs", "/plan/nodes", "/cluster/node/nic_bandwidth", "seed"});
  CHECK(loaded.point(0).values.at("/plan/nodes") == "4");
  CHECK(loaded.point(0).values.at("/plan/gbs") == "4");
  CHECK(loaded.point(0).seed == 5);
  CHECK(loaded.point(1).seed == 7);
  CHECK(plain_value(loaded.point(2).values.at("/cluster/node/nic_bandwidth")) == "200 Gbit/s");
  CHECK(loaded.point(11).values.at("/plan/gbs") == "8");
}

TEST_CASE("ranges: steps, counts, factors and logarithms, with the unit they are written in") {
  const auto values = [](const std::string& pointer, const std::string& range) {
    const LoadedStudy loaded =
        good_study("{" + kStudy8 + R"(, "axes": [{"set": {")" + pointer + "\": " + range + "}}]}");
    std::string all;
    for (size_t i = 0; i < loaded.points(); ++i)
      all += (i ? " | " : "") + plain_value(loaded.point(i).values.at(pointer));
    return all;
  };
  const std::string limit = "/cluster/node/accelerator/board_limit";
  CHECK(values(limit, R"({"from": "400 W", "to": "700 W", "step": "100 W"})") == "400 W | 500 W | 600 W | 700 W");
  CHECK(values(limit, R"({"from": "0.4 kW", "to": "700 W", "step": "100 W"})") == "0.4 kW | 0.5 kW | 0.6 kW | 0.7 kW");
  CHECK(values(limit, R"({"from": "700 W", "to": "400 W", "count": 3})") == "700 W | 550 W | 400 W");
  CHECK(values("/site/pue", R"({"from": 1.1, "to": 1.4, "step": 0.1})") == "1.1 | 1.2 | 1.3 | 1.4");
  CHECK(values("/plan/nodes", R"({"from": 1, "to": 128, "factor": 2})") == "1 | 2 | 4 | 8 | 16 | 32 | 64 | 128");
  CHECK(values("/plan/nodes", R"({"from": 1, "to": 100, "count": 3, "log": true})") == "1 | 10 | 100");
}

TEST_CASE("a CSV of cases: an empty cell leaves the scenario's value") {
  const std::string csv = "trainwatt_cases_" + std::to_string(::getpid()) + ".csv";
  write_file("/tmp/" + csv, "/plan/nodes,/plan/gbs,/cluster/node/accelerator/board_limit\n4,4,\n8,,500 W\n");
  const LoadedStudy loaded = good_study("{" + kStudy8 + R"(, "axes": [{"csv": ")" + csv + R"("}]})");
  REQUIRE(loaded.points() == 2);
  CHECK(loaded.point(0).values.size() == 2);
  CHECK(plain_value(loaded.point(1).values.at("/cluster/node/accelerator/board_limit")) == "500 W");
  write_file("/tmp/" + csv, "/plan/nodes\nfour\n");
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"csv": ")" + csv + R"("}]})"),
             Catch::Contains("row 1, column /plan/nodes"));
  write_file("/tmp/" + csv, "/plan/nods\n4\n");
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"csv": ")" + csv + R"("}]})"),
             Catch::Contains("did you mean \"nodes\""));
  std::filesystem::remove("/tmp/" + csv);
}

TEST_CASE("points run in children, a point that is refused keeps its place, workers change nothing") {
  const LoadedStudy loaded = good_study("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/tp": [4, 3, 8]}}]})");
  const Folder one, three;
  size_t last = 0;
  SweepOptions options;
  options.to_json = [](const Result& r) { return "{\"step\":" + std::to_string(*r.step.time_s) + "}"; };
  options.progress = [&](size_t done, size_t, size_t) { last = done; };
  const SweepTotals totals = run_sweep(loaded, one.path, options);
  CHECK(last == 3);
  CHECK(totals.points == 3);
  CHECK(totals.refused == 1);
  CHECK(totals.code == 0);
  options.jobs = 3;
  run_sweep(loaded, three.path, options);
  const auto a = rows_of(one.path), b = rows_of(three.path);
  REQUIRE(a.size() == 3);
  REQUIRE(b.size() == 3);
  CHECK(a[0].status == "done");
  CHECK(a[1].status == "failed");
  CHECK(a[1].code == 2);
  CHECK_THAT(a[1].error, Catch::Contains("/plan"));
  for (size_t i = 0; i < 3; ++i) CHECK(a[i].result == b[i].result);
}

TEST_CASE("skip and where: what is left out is a row that says why") {
  const LoadedStudy loaded =
      good_study("{" + kStudy8 +
                 R"(, "set": ["/plan/gbs=16"], "axes": [{"set": {"/plan/tp": [4, 3]}}, {"set": {"/plan/cp": [1, 2]}}],
      "skip": ["refused"], "where": ["/plan/tp * /plan/cp <= 6"]})");
  const Folder folder;
  SweepOptions options;
  options.to_json = [](const Result&) { return std::string("{}"); };
  const SweepTotals totals = run_sweep(loaded, folder.path, options);
  CHECK(totals.done == 1);
  CHECK(totals.skipped == 3);
  CHECK(totals.refused == 0);
  const auto rows = rows_of(folder.path);
  CHECK_THAT(rows[1].error, Catch::Contains("left out by"));
  CHECK(rows[1].code == 0);
  CHECK(rows[2].code == 2);
  CHECK(rows[2].status == "skipped");
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/tp": [4]}}], "where": ["/plan/tq <= 6"]})"),
             Catch::Contains("does not change"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/tp": [4]}}], "where": ["/plan/tp"]})"),
             Catch::Contains("no comparison"));
}

TEST_CASE("resume: only what is missing is simulated; another study is refused and what differs is said") {
  const std::string text = "{" + kStudy8 + R"(, "axes": [{"set": {"/plan/tp": [4, 8]}}], "figures": []})";
  const LoadedStudy loaded = good_study(text);
  const Folder folder;
  SweepOptions options;
  options.to_json = [](const Result&) { return std::string("{}"); };
  options.shard = 2, options.shards = 2;
  CHECK(run_sweep(loaded, folder.path, options).points == 1);
  CHECK_THROWS_WITH(run_sweep(loaded, folder.path, options), Catch::Contains("--resume"));
  options.resume = true;
  CHECK(run_sweep(loaded, folder.path, options).before == 1);
  options.shard = options.shards = 1;
  CHECK_THROWS_WITH(run_sweep(loaded, folder.path, options), Catch::Contains("holds shard 2/2"));
  const Folder whole;
  CHECK(merge_sweeps({folder.path}, whole.path, false) == 1);
  const SweepTotals totals = run_sweep(loaded, whole.path, options);
  CHECK(totals.before == 1);
  CHECK(rows_of(whole.path).size() == 2);
  const LoadedStudy other =
      good_study("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/tp": [4, 8]}}], "set": ["/site/pue=1.3"]})");
  CHECK_THROWS_WITH(run_sweep(other, whole.path, options), Catch::Contains("/site/pue is 1.3"));
  const LoadedStudy seeded = good_study("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/tp": [4, 8]}}], "seed": 9})");
  CHECK_THROWS_WITH(run_sweep(seeded, whole.path, options), Catch::Contains("seed is 9, was 1"));
  CHECK_THROWS_WITH(merge_sweeps({whole.path}, folder.path, false), Catch::Contains("--overwrite"));
}

TEST_CASE("a folder belongs to one process, and is free again afterwards") {
  const Folder folder;
  {
    const FolderLock mine(folder.path);
    // Locks are of processes: another one has to ask.
    const ChildResult other = in_child([&] { return FolderLock(folder.path), std::string("locked"); });
    CHECK(other.code == ExitCode::bad_input);
    CHECK_THAT(other.error, Catch::Contains("another trainwatt writes here"));
  }
  CHECK(in_child([&] { return FolderLock(folder.path), std::string("locked"); }).value == "locked");
}

TEST_CASE("studies that cannot be are refused and the place is named") {
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nodes": [4, 8], "/plan/gbs": [4]}}]})"),
             Catch::Contains("values beside"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"plan/nodes": [4]}}]})"),
             Catch::Contains("JSON pointer"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nodes": [4]}}, {"set": {"/plan/nodes": [8]}}]})"),
             Catch::Contains("two axes"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nodes": []}}]})"),
             Catch::Contains("has no values"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nodes": [4]}}], "figures": [{"x": "/plan/tp"}]})"),
             Catch::Contains("does not change"));
  CHECK_THAT(faults_of(R"({"name": "s", "scenario": "scenarios/nowhere.json", "axes": []})"),
             Catch::Contains("nowhere.json"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": []})"), Catch::Contains("an empty study"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nods": [4]}}]})"),
             Catch::Contains("did you mean \"nodes\""));
  const auto limits = [](const std::string& values) {
    return faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/cluster/node/accelerator/board_limit": )" + values +
                     "}}]}");
  };
  CHECK_THAT(limits(R"(["400 W", "500 GB"])"), Catch::Contains("wrong dimension; a power"));
  CHECK_THAT(limits(R"(["400 W", 500])"), Catch::Contains("has no unit"));
  CHECK_THAT(limits(R"({"from": "400 W", "to": "700 GB", "step": "50 W"})"), Catch::Contains("wrong dimension"));
  CHECK_THAT(limits(R"({"from": "400 W", "to": "700 W"})"), Catch::Contains("one of step, count or factor"));
  CHECK_THAT(limits(R"({"from": "400 W", "to": "700 W", "step": "1 W", "step": "2 W"})"), Catch::Contains("duplicate"));
  CHECK_THAT(limits(R"({"from": "0 W", "to": "1 GW", "step": "1 W"})"), Catch::Contains("million"));
  CHECK_THAT(faults_of("{" + kStudy8 + R"(, "axes": [{"set": {"/plan/nodes": {"from": 1, "to": 2, "step": 0.5}}}]})"),
             Catch::Contains("no whole number"));
}

TEST_CASE("the studies that come along are right") {
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/scenarios/studies")) {
    Faults faults;
    load_study(entry.path().string(), {}, faults);
    faults.throw_if_any();
  }
}

TEST_CASE("differences of results: what is the same is left out, changes are of the last against the first") {
  Faults faults;
  const auto a = comparands_of_results(R"([{"trainwatt": "1", "scenario": "a", "plan": {"tp": 4, "pp": 1},
      "step": {"time_s": 2, "mfu": null}}])",
                                       "a.json", faults);
  const auto b = comparands_of_results(R"([{"trainwatt": "1", "scenario": "b", "plan": {"tp": 8, "pp": 1},
      "step": {"time_s": 1.5, "mfu": 0.4}}])",
                                       "b.json", faults);
  REQUIRE(a);
  REQUIRE(b);
  const auto inputs = differences({a->front().inputs, b->front().inputs});
  REQUIRE(inputs.size() == 1);
  CHECK(inputs[0].path == "plan.tp");
  CHECK(*inputs[0].changes_pct[1] == Approx(100));
  const auto outputs = differences({a->front().outputs, b->front().outputs});
  REQUIRE(outputs.size() == 2);
  CHECK(*outputs[0].changes_pct[1] == Approx(-25));
  CHECK(!outputs[1].changes_pct[1]);
  CHECK(!comparands_of_results("{\"name\": \"a scenario\"}", "c.json", faults));
  CHECK(faults.empty());
}

TEST_CASE("what is left of parts that cancel is no difference") {
  Faults faults;
  const auto with = [&](const char* idle, const char* left) {
    const std::string text = std::string(R"([{"trainwatt": "1", "scenario": "a", "step": {"time_s": )") + idle +
                             R"(, "breakdown_s": {"bubble": )" + left + "}}}]";
    return comparands_of_results(text, "a.json", faults)->front().outputs;
  };
  CHECK(differences({with("2", "4.8e-13"), with("2", "-3.9e-13")}).empty());
  CHECK(differences({with("2", "4.8e-9"), with("2", "-3.9e-9")}).size() == 1);
  CHECK(differences({with("2", "0"), with("2.5", "0")}).size() == 1);
}

TEST_CASE("the parts of two steps that differ are sorted and add up") {
  const auto with = [](const std::string& breakdown) {
    Faults faults;
    return comparands_of_results(R"([{"trainwatt": "1", "scenario": "a", "step": {"breakdown_s": )" + breakdown + "}}]",
                                 "a.json", faults)
        ->front();
  };
  double change_s = 0;
  const auto parts = step_parts(with(R"({"compute": 3, "tp": 1, "pp": 0, "dp": 0.5})"),
                                with(R"({"compute": 2.5, "tp": 1, "pp": 0.25, "dp": 1.5})"), change_s);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].name == "dp");
  CHECK(parts[1].name == "compute");
  CHECK(parts[2].name == "pp");
  CHECK(change_s == Approx(0.75));
  CHECK(parts[0].change_s() + parts[1].change_s() + parts[2].change_s() == Approx(change_s));
}
