// Figures of studies and the list of outputs.
#include "report/study_figures.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "report/output_keys.hpp"
#include "report/result_json.hpp"
#include "toy_result.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("trainwatt_study_figures_" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

const char* kTable =
    "point,/plan/nodes,/site,error,step.time_s,energy.facility_j,step.breakdown_s.compute,step.breakdown_s.dp\n"
    "0,1,models/sites/a.json,,4,100,3,1\n"
    "1,2,models/sites/a.json,,2.5,120,1.5,1\n"
    "2,4,models/sites/a.json,,2,130,1,1\n"
    "3,8,models/sites/a.json,out of memory,,,,\n"
    "4,1,models/sites/b.json,,4,90,3,1\n"
    "5,2,models/sites/b.json,,2,140,1,1\n";

StudyFigure figure(FigureKind kind, const std::string& x, const std::string& y, const std::string& series = "") {
  StudyFigure f;
  f.kind = kind, f.x = x, f.y = y, f.series = series;
  return f;
}

void check_paths(const json& node, const std::string& path) {
  if (node.is_object()) {
    if (node.empty()) return;
    for (const auto& [key, value] : node.items()) check_paths(value, path.empty() ? key : path + "." + key);
  } else if (node.is_array()) {
    for (size_t i = 0; i < node.size(); ++i) check_paths(node[i], path + "." + std::to_string(i));
  } else {
    INFO(path << " is not described");
    CHECK(find_output_key(path) != nullptr);
  }
}

}  // namespace

TEST_CASE("every kind of figure is drawn from a table, with its data beside it") {
  const Folder folder;
  Study study;
  study.name = "toy";
  study.figures = {figure(FigureKind::line, "/plan/nodes", "step.time_s", "/site"),
                   figure(FigureKind::line, "/site", "step.time_s", "/plan/nodes"),
                   figure(FigureKind::scaling, "/plan/nodes", "step.time_s", "/site"),
                   figure(FigureKind::heatmap, "/plan/nodes", "energy.facility_j", "/site"),
                   figure(FigureKind::pareto, "step.time_s", "energy.facility_j"),
                   figure(FigureKind::breakdown, "/plan/nodes", "step.breakdown_s", "/site"),
                   figure(FigureKind::line, "/plan/nodes", "no.such_key")};
  study.figures[0].title = "It's a \"title\" with 'quotes', commas; and `more`";
  const auto notes = draw(study_figures(folder.path.string(), study, CsvTable::parse(kTable, "sweep.csv")));
  for (const std::string& note : notes) UNSCOPED_INFO(note);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::Contains("figure 7"));
  for (int k = 1; k <= 6; ++k)
    for (const char* kind : {"csv", "svg", "png"}) {
      INFO(k << kind);
      REQUIRE(fs::exists(folder / ("toy-" + std::to_string(k) + "." + kind)));
    }
  CHECK_THAT(read_file(folder / "toy-1.svg"), Catch::Contains("quotes"));
  const CsvTable lines = CsvTable::load(folder / "toy-1.csv");
  CHECK(lines.value(1, "site a") == 2.5);
  CHECK(!lines.number(2, "site b"));
  const CsvTable scaling = CsvTable::load(folder / "toy-3.csv");
  CHECK(scaling.value(1, "efficiency of site a") == Approx(4 / (2.5 * 2)));
  CHECK(scaling.value(1, "efficiency of site b") == Approx(1));
  const CsvTable front = CsvTable::load(folder / "toy-5.csv");
  int best = 0;
  for (size_t i = 0; i < front.rows(); ++i) best += front.value(i, "front") > 0 ? 1 : 0;
  CHECK(best == 3);  // (4, 90), (2.5, 120), (2, 130); the others are beaten
}

TEST_CASE("axes read times and units; columns are shown in units that fit") {
  CHECK(input_name("/plan/gbs") == "GBS");
  CHECK(input_name("/cluster/node/accelerator/board_limit") == "board limit");
  CHECK(input_value("models/accelerators/h100-sxm.json") == "h100-sxm");
  CHECK(shown_unit("step.time_s", 0.02).name == "ms");
  CHECK(shown_unit("run.time_to_train_s.mean", 1700).name == "min");
  CHECK(shown_unit("energy.facility_j", 3e7).name == "MJ");
  CHECK(shown_unit("step.mfu", 0.4).scale == 100);
  CHECK(shown_unit("nothing", 5).scale == 1);
  const Folder folder;
  Study study;
  study.name = "hours";
  study.figures = {figure(FigureKind::line, "/run/start", "carbon.kg_co2e")};
  CHECK(draw(study_figures(folder.path.string(), study,
                           CsvTable::parse("point,/run/start,carbon.kg_co2e\n0,2025-06-02T22:00+02:00,5\n"
                                           "1,2025-06-03T01:00+02:00,4\n",
                                           "sweep.csv")))
            .empty());
  const CsvTable data = CsvTable::load(folder / "hours-1.csv");
  CHECK(data.value(0, "x") == 22);
  CHECK(data.value(1, "x") == 25);
}

TEST_CASE("every key of a result is in the list of outputs, once") {
  const json all = json::parse(results_json({{toy::result(), 0}}));
  check_paths(all[0], "");
  for (const OutputKey& key : output_keys()) {
    int count = 0;
    for (const OutputKey& other : output_keys()) count += std::string(key.path) == other.path ? 1 : 0;
    INFO(key.path);
    CHECK(count == 1);
    CHECK(std::string(key.meaning).size() > 3);
  }
  CHECK(find_output_key("power.per_node.12.mean_w") != nullptr);
  CHECK(find_output_key("memory.parts_bytes.weights") != nullptr);
  CHECK(find_output_key("step.nonsense") == nullptr);
  CHECK(unit_of("cost.energy_usd") == "USD");
  CHECK(unit_of("cost.hourly_least_eur") == "EUR");
}

TEST_CASE("a new output is one line where it is described: it is written, listed, and found by its path") {
  Outputs<Result> described;
  Result::describe(described);
  described.computed(
      "step.toy_ms", [](const Result& r) { return 1e3 * r.step.time_s.value_or(0); }, "ms", "a toy");

  const Result r = toy::result();
  nlohmann::ordered_json written;
  described.write(&r, written);
  CHECK(written["step"]["toy_ms"] == 650.0);
  CHECK(described.number(&r, "step.toy_ms") == 650.0);
  const auto keys = described.keys();
  CHECK(std::any_of(keys.begin(), keys.end(), [](const OutputKey& key) {
    return key.path == "step.toy_ms" && key.unit == "ms" && key.meaning == "a toy";
  }));
  // Everything else stays as it was, and columns of sweeps and rows of comparisons are made from what is written.
  written["step"].erase("toy_ms");
  CHECK(written.dump() == nlohmann::ordered_json::parse(results_json({{r, 0}})).front().dump());
}

TEST_CASE("rows of measurements may name any number of a result") {
  Result r = toy::result();
  r.power.train = 6000;
  CHECK(result_quantity(r, "run_s") == 318.3);
  CHECK(result_quantity(r, "train_w") == 6000.0);
  CHECK(result_quantity(r, "power.facility.peak_w") == 0.0);
  CHECK(result_quantity(r, "network_w", "as_stated") == 4830.0);
  CHECK(!result_quantity(r, "network_w", "by_load"));
  CHECK(!result_quantity(r, "run.checkpoints.bytes"));
  CHECK(quantity_unit("run.days") == "d");
  CHECK(quantity_unit("dc_mlperf_j") == "J");
  CHECK(!quantity_unit("step.nonsense"));
  CHECK(quantity_units().size() == 27);
}

}  // namespace tw::report
