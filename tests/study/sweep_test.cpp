// Studies and comparisons.
#include "study/sweep.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/files.hpp"
#include "study/compare.hpp"

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

const std::string k8 = R"("name": "s", "scenario": "scenarios/smc-llama2-70b-lora-8n.json")";

}  // namespace

TEST_CASE("points: columns of one axis in step, axes combined, the last one fastest") {
  const Written file("{" + k8 + R"(, "axes": [{"set": {"/plan/nodes": [4, 8], "/plan/gbs": [4, 8]}},
      {"set": {"/cluster/node/nic_bandwidth": ["100 Gbit/s", "200 Gbit/s", "400 Gbit/s"]}}]})");
  Faults faults;
  const LoadedStudy loaded = load_study(file.path, {}, faults);
  faults.throw_if_any();
  const auto points = points_of(loaded.study);
  REQUIRE(points.size() == 6);
  CHECK(points[0].values.at("/plan/nodes") == "4");
  CHECK(points[0].values.at("/plan/gbs") == "4");
  CHECK(plain_value(points[1].values.at("/cluster/node/nic_bandwidth")) == "200 Gbit/s");
  CHECK(points[5].values.at("/plan/gbs") == "8");
}

TEST_CASE("points run in children, a point that is refused keeps its place, workers change nothing") {
  const Written file("{" + k8 + R"(, "axes": [{"set": {"/plan/tp": [4, 3, 8]}}]})");
  Faults faults;
  const LoadedStudy loaded = load_study(file.path, {}, faults);
  faults.throw_if_any();
  size_t last = 0;
  const auto one = run_study(loaded, points_of(loaded.study), 1, 100, [&](size_t done, size_t) { last = done; });
  const auto three = run_study(loaded, points_of(loaded.study), 3, 100, {});
  CHECK(last == 3);
  REQUIRE(one.size() == 3);
  CHECK(one[0].result.error.empty());
  CHECK(one[1].exit_code == 2);
  CHECK_THAT(one[1].result.error, Catch::Contains("/plan"));
  CHECK(one[2].exit_code != 2);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(one[i].exit_code == three[i].exit_code);
    CHECK(one[i].result.step.time_s == three[i].result.step.time_s);
  }
}

TEST_CASE("studies that cannot be are refused and the place is named") {
  CHECK_THAT(faults_of("{" + k8 + R"(, "axes": [{"set": {"/plan/nodes": [4, 8], "/plan/gbs": [4]}}]})"),
             Catch::Contains("values beside"));
  CHECK_THAT(faults_of("{" + k8 + R"(, "axes": [{"set": {"plan/nodes": [4]}}]})"), Catch::Contains("JSON pointer"));
  CHECK_THAT(faults_of("{" + k8 + R"(, "axes": [{"set": {"/plan/nodes": [4]}}, {"set": {"/plan/nodes": [8]}}]})"),
             Catch::Contains("two axes"));
  CHECK_THAT(faults_of("{" + k8 + R"(, "axes": [{"set": {"/plan/nodes": []}}]})"), Catch::Contains("has no values"));
  CHECK_THAT(faults_of("{" + k8 + R"(, "axes": [{"set": {"/plan/nodes": [4]}}], "figures": [{"x": "/plan/tp"}]})"),
             Catch::Contains("does not change"));
  CHECK_THAT(faults_of(R"({"name": "s", "scenario": "scenarios/nowhere.json", "axes": []})"),
             Catch::Contains("nowhere.json"));
}

TEST_CASE("the studies that come along are right") {
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TW_SOURCE) + "/scenarios/studies")) {
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
  CHECK(*inputs[0].change_pct == Approx(100));
  const auto outputs = differences({a->front().outputs, b->front().outputs});
  REQUIRE(outputs.size() == 2);
  CHECK(*outputs[0].change_pct == Approx(-25));
  CHECK(!outputs[1].change_pct);
  CHECK(!comparands_of_results("{\"name\": \"a scenario\"}", "c.json", faults));
  CHECK(faults.empty());
}
