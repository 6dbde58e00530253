#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "paths.hpp"
#include "report/accuracy.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"
#include "report/result_json.hpp"
#include "report/schemas.hpp"
#include "report/table.hpp"
#include "report/topology_report.hpp"
#include "report/trace.hpp"
#include "toy_result.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) UNSCOPED_INFO("\"" << part << "\" is not in:\n" << text);
  return found;
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

Outcome failed(const std::string& name) {
  Outcome o;
  o.result.scenario = name;
  o.result.error = "deadlock: all-reduce of stage 3 waits";
  o.exit_code = 4;
  return o;
}

SuiteOutcome toy_suite() {
  SuiteOutcome s;
  s.name = "toy";
  const auto add = [&](const char* id, RowKind kind, double measured, Maybe predicted, std::optional<double> bound,
                       Maybe gap) {
    RowOutcome r;
    r.row.id = id;
    r.row.quantity = "step_s";
    r.row.unit = "s";
    r.row.measured = measured;
    r.row.kind = kind;
    r.row.bound_pct = bound;
    r.predicted = predicted;
    r.error_pct = error_pct(predicted, measured);
    r.known_gap_pct = gap;
    s.rows.push_back(r);
  };
  add("a", RowKind::fitted, 1.0, 1.02, 3.0, std::nullopt);
  add("b", RowKind::predicted, 1.0, 1.10, 8.0, 10.0);
  add("c", RowKind::predicted, 1.0, 0.80, 8.0, 10.0);
  add("d", RowKind::predicted, 2.0, std::nullopt, 8.0, std::nullopt);
  add("e", RowKind::given, 16100, 16100.0, 0.0, std::nullopt);
  add("f", RowKind::predicted, 1.0, 1.06, std::nullopt, std::nullopt);
  return s;
}

}  // namespace

TEST_CASE("result JSON has every key of the contract, in SI units") {
  const json all = json::parse(results_json({{toy::result(), 0}}));
  REQUIRE(all.is_array());
  const json& r = all[0];
  for (const char* pointer : {"/trainwatt",
                              "/scenario",
                              "/seed",
                              "/inputs_sha256",
                              "/plan/nodes",
                              "/plan/gpus",
                              "/plan/tp",
                              "/plan/pp",
                              "/plan/vp",
                              "/plan/cp",
                              "/plan/dp",
                              "/plan/ep",
                              "/plan/mbs",
                              "/plan/gbs",
                              "/plan/ga",
                              "/step/time_s",
                              "/step/tokens_per_s",
                              "/step/samples_per_s",
                              "/step/mfu",
                              "/step/breakdown_s/compute",
                              "/step/breakdown_s/host",
                              "/step/breakdown_s/tp",
                              "/step/breakdown_s/cp",
                              "/step/breakdown_s/pp",
                              "/step/breakdown_s/dp",
                              "/step/breakdown_s/ep",
                              "/step/breakdown_s/bubble",
                              "/step/breakdown_s/optimizer",
                              "/step/breakdown_s/jitter",
                              "/step/breakdown_s/other",
                              "/memory/per_gpu_bytes",
                              "/memory/capacity_bytes",
                              "/memory/parts_bytes",
                              "/run/time_to_train_s/mean",
                              "/run/time_to_train_s/sd",
                              "/run/time_to_train_s/p5",
                              "/run/time_to_train_s/p50",
                              "/run/time_to_train_s/p95",
                              "/run/time_to_train_s/olympic",
                              "/run/time_to_train_s/official",
                              "/run/steps",
                              "/run/samples",
                              "/run/evaluations",
                              "/run/eval_s",
                              "/run/eval_first_s",
                              "/run/init_s",
                              "/run/first_step_s",
                              "/run/wait_s",
                              "/run/checkpoint_s",
                              "/run/lost_s",
                              "/run/days_per_1T_tokens",
                              "/power/node_dc_w/mean",
                              "/power/node_dc_w/min",
                              "/power/node_dc_w/max",
                              "/power/node_dc_w/steady",
                              "/power/node_dc_w/idle",
                              "/power/per_node/0/node",
                              "/power/per_node/0/mean_w",
                              "/power/per_node/0/peak_w",
                              "/power/per_node/0/dc_j",
                              "/power/network_w",
                              "/power/network_w_per_node",
                              "/power/network_rule",
                              "/power/network_w_by_rule/as_published",
                              "/power/network_w_by_rule/whole_switches",
                              "/power/network_w_by_rule/by_load",
                              "/power/peak_bus_w",
                              "/power/shelf_headroom",
                              "/energy/nodes_dc_j",
                              "/energy/network_j",
                              "/energy/total_dc_j",
                              "/energy/rectifier_loss_j",
                              "/energy/total_ac_j",
                              "/energy/facility_j",
                              "/energy/ppue_j",
                              "/energy_mlperf_v4_0/total_dc_j",
                              "/energy_mlperf_v4_0/rcp_factor",
                              "/carbon/kg_co2e",
                              "/carbon/kg_co2e_mlperf_v4_0",
                              "/carbon/intensity_kg_per_kwh",
                              "/cost",
                              "/jobs",
                              "/reference/source",
                              "/reference/rows/0/quantity",
                              "/reference/rows/0/unit",
                              "/reference/rows/0/measured",
                              "/reference/rows/0/predicted",
                              "/reference/rows/0/error_pct",
                              "/reference/rows/0/kind",
                              "/warnings"}) {
    INFO(pointer);
    CHECK(r.contains(json::json_pointer(pointer)));
  }
  CHECK(r["plan"]["tp"] == 4);
  CHECK(r["step"]["time_s"] == 0.65);
  CHECK(r["power"]["node_dc_w"]["steady"] == 6152);
  CHECK(r["power"]["network_w_by_rule"]["by_load"].is_null());
  CHECK(r["run"]["init_s"].is_null());
  CHECK(r["run"]["steps"].is_number_integer());
  CHECK(!r["energy"].contains("rcp_factor"));
}

TEST_CASE("an empty result is all nulls, never NaN") {
  Result bare;
  bare.step.time_s = std::numeric_limits<double>::quiet_NaN();
  bare.power.mean = std::numeric_limits<double>::infinity();
  const std::string text = results_json({{bare, 0}});
  CHECK(!holds(text, "nan"));
  CHECK(!holds(text, "inf,"));
  const json r = json::parse(text)[0];
  CHECK(r["step"]["time_s"].is_null());
  CHECK(r["power"]["node_dc_w"]["mean"].is_null());
  CHECK(r["energy"]["facility_j"].is_null());
  CHECK(r["reference"]["rows"] == json::array());
}

TEST_CASE("a failed scenario leaves its name and its error") {
  const json all = json::parse(results_json({{toy::result(), 0}, failed("broken")}));
  REQUIRE(all.size() == 2);
  CHECK(all[1] == json{{"scenario", "broken"}, {"error", "deadlock: all-reduce of stage 3 waits"}});
}

TEST_CASE("same results, same bytes") {
  CHECK(results_json({{toy::result(), 0}}) == results_json({{toy::result(), 0}}));
  CHECK(result_table(toy::result()) == result_table(toy::result()));
}

TEST_CASE("published carbon that does not follow from the site's factor is warned about") {
  const Result r = toy::result();
  const auto warnings = reference_warnings(r);
  REQUIRE(warnings.size() == 1);
  CHECK(holds(warnings[0], "0.417 kg/kWh"));
  CHECK(holds(warnings[0], "2.522 kg"));
  CHECK(json::parse(results_json({{r, 0}}))[0]["warnings"].size() == 1);
  Result follows = r;
  follows.reference.rows[2].measured = 3.596 * 3.6e6;
  follows.reference.rows[3].measured = 1.46;  // within the rounding of the published figures
  CHECK(reference_warnings(follows).empty());
}

TEST_CASE("the table says what the JSON says, in 100 columns") {
  Result r = toy::result();
  r.warnings.push_back(
      "a remark that is long enough to need more than one line of the table, because it says many things about the "
      "inputs");
  const std::string text = result_table(r);
  CHECK(widest_line(text) <= 80);
  CHECK(holds(text, "8 nodes, 64 GPUs: TP 4, CP 2, DP 8"));
  CHECK(holds(text, "0.6500 s"));
  CHECK(holds(text, "318.3 s (5 min 18 s)"));
  CHECK(holds(text, "5,713 W"));
  CHECK(holds(text, "16.10 kW, 2,012 W per node, rule as_published"));
  CHECK(holds(text, "as_stated"));
  CHECK(holds(text, "20.40 MJ"));
  CHECK(holds(text, "6.222 kWh"));
  CHECK(holds(text, "Warnings"));
  // Predicted rows stand apart from fitted ones.
  CHECK(text.find("predicted         ") < text.find("fitted         "));
  CHECK(widest_line(result_table(failed("x").result)) <= 80);
}

TEST_CASE("scenarios side by side: simulated, measured, error") {
  CHECK(side_by_side({{toy::result(), 0}}).empty());
  const std::string text = side_by_side({{toy::result(), 0}, failed("broken"), {toy::result(), 0}});
  CHECK(widest_line(text) <= 80);
  CHECK(holds(text, "318.30"));
  CHECK(holds(text, "broken"));
  CHECK(holds(text, "deadlock"));
  CHECK(holds(text, "+0.23 %"));
}

TEST_CASE("the results CSV reads back") {
  const auto t = CsvTable::parse(results_csv({{toy::result(), 0}, failed("say \"no\", twice")}), "results.csv");
  REQUIRE(t.rows() == 2);
  CHECK(t.value(0, "step_s") == 0.65);
  CHECK(t.value(0, "dc_mlperf_j") == 20.4e6);
  CHECK(t.text(1, "scenario") == "say \"no\", twice");
  CHECK(!t.number(1, "step_s"));
}

TEST_CASE("suites: errors, bounds, groups") {
  const SuiteOutcome s = toy_suite();
  CHECK(s.rows[0].met() == true);
  CHECK(s.rows[1].met() == false);
  CHECK(!s.rows[1].worse_than_known());
  CHECK(s.rows[2].worse_than_known());
  CHECK(s.rows[3].met() == false);
  CHECK(s.rows[3].worse_than_known());
  CHECK(s.rows[4].met() == true);
  CHECK(!s.rows[5].met().has_value());
  CHECK(!s.rows[5].worse_than_known());
  CHECK(*s.mape_pct(RowKind::fitted) == Approx(2));
  CHECK(*s.mape_pct(RowKind::predicted) == Approx((10.0 + 20 + 6) / 3));
  CHECK(*error_pct(0.0, 0) == 0);
  CHECK(!error_pct(1.0, 0));
  const std::string text = suite_table(s);
  CHECK(widest_line(text) <= 80);
  CHECK(holds(text, "NOT MET, known"));
  CHECK(holds(text, "exact"));
  CHECK(holds(text, "mean absolute error of the predicted rows: 12.00 %"));
  const json j = json::parse(suites_json({s}));
  const json& suite = j["suites"][0];
  CHECK(suite["name"] == "toy");
  CHECK(suite["mape_pct"]["fitted"] == Approx(2).epsilon(1e-9));
  for (const char* key : {"id", "quantity", "unit", "measured", "predicted", "error_pct", "kind"})
    CHECK(suite["rows"][0].contains(key));
  CHECK(suite["rows"][3]["predicted"].is_null());
  CHECK(suite["rows"][1]["kind"] == "predicted");
}

TEST_CASE("the accuracy table groups rows by run and marks what is not met") {
  SuiteOutcome s = toy_suite();
  s.rows[0].row.id = "1n/step_s";
  s.rows[1].row.id = "8n/step_s";
  s.rows.resize(2);
  const std::string text = accuracy_markdown({s});
  CHECK(holds(text, "| toy | 1n | 8n |"));
  CHECK(holds(text, "| step_s | +2.0 f (3) | +10.0 (8) ! |"));
  CHECK(holds(text, "fitted rows 2.0 %, predicted rows 10.0 %"));
}

TEST_CASE("an exact row allows the last bits and no more") {
  RowOutcome r;
  r.row.measured = 30590;
  r.row.bound_pct = 0;
  r.error_pct = error_pct(30590.000000000004, 30590);
  CHECK(r.met() == true);
  r.error_pct = error_pct(30590.01, 30590);
  CHECK(r.met() == false);
}

TEST_CASE("quantities have one name and one unit, and read the result") {
  const Result r = toy::result();
  CHECK(*result_quantity(r, "step_s") == 0.65);
  CHECK(*result_quantity(r, "network_w") == 16100);
  CHECK(*result_quantity(r, "network_w", "as_stated") == 4830);
  CHECK(!result_quantity(r, "network_w", "by_load"));
  CHECK(!result_quantity(r, "network_w", "no_such_rule"));
  CHECK(!result_quantity(r, "nonsense"));
  std::set<std::string> names;
  for (const auto& [name, unit] : quantity_units()) CHECK(names.insert(name).second);
}

TEST_CASE("numbers for people") {
  CHECK(plain(0.6497) == "0.6497");
  CHECK(plain(12345.6) == "12,346");
  CHECK(plain(-1234567) == "-1,234,567");
  CHECK(plain(0) == "0");
  CHECK(power_text(5713.4) == "5,713 W");
  CHECK(power_text(59570) == "59.57 kW");
  CHECK(energy_text(20381549) == "20.38 MJ");
  CHECK(time_text(1687.4) == "1,687 s (28 min 7 s)");
  CHECK(time_text(1.2e-6) == "1.200 us");
  CHECK(time_text(90000) == "90,000 s (1 d 1 h)");
  CHECK(percent_text(0.001) == "0.00 %");
  CHECK(percent_text(-3.456) == "-3.46 %");
  CHECK(in_unit(3072, "samples") == "3,072 samples");
}

TEST_CASE("figures come with their data, in SVG and PNG") {
  const fs::path folder = fs::temp_directory_path() / ("trainwatt_figures_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  Scenario scenario;
  scenario.reference.trace = "reference/smc_v4.0/traces/8n_llama2_70b_lora_dc.csv";
  Figures figures = power_figure(folder.string(), scenario, toy::result());
  figures.add(error_figure(folder.string(), "errors", "Toy \"suite\"", error_points(toy_suite())));
  CHECK(draw(figures).empty());
  for (const char* name : {"power-toy-8n.csv", "power-toy-8n-measured.csv", "power-toy-8n.svg", "power-toy-8n.png",
                           "errors.csv", "errors.svg", "errors.png"}) {
    INFO(name);
    CHECK(fs::exists(folder / name));
    CHECK(fs::file_size(folder / name) > 100);
  }
  CHECK(holds(read_file((folder / "power-toy-8n.svg").string()), "<svg"));
  CHECK(read_file((folder / "power-toy-8n.png").string()).compare(1, 3, "PNG") == 0);
  const auto measured = CsvTable::load((folder / "power-toy-8n-measured.csv").string());
  CHECK(measured.rows() > 100);
  const std::string once = read_file((folder / "errors.svg").string());
  // A figure that cannot be drawn spoils no other, and the others come out as before.
  fs::remove(folder / "errors.svg");
  figures.drawings.insert(figures.drawings.begin(),
                          Drawing{"power.gp", (folder / "it's not there").string(), {"none", ""}});
  const auto notes = draw(figures);
  REQUIRE(notes.size() == 1);
  CHECK(holds(notes[0], "gnuplot failed on power.gp; the figure was not drawn ("));
  CHECK(read_file((folder / "errors.svg").string()) == once);
  for (const auto& entry : fs::directory_iterator(folder)) CHECK(entry.path().extension() != ".part");
  fs::remove_all(folder);
}

TEST_CASE("without gnuplot, or with one that is killed, the data stay and a note says why there is no figure") {
  const fs::path folder = fs::temp_directory_path() / ("trainwatt_gnuplot_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  const Figures figures = error_figure((folder / "out").string(), "errors", "toy", error_points(toy_suite()));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.c_str(), 1);
  CHECK(draw(figures) ==
        std::vector<std::string>{"gnuplot is not installed: figures were not drawn; their data are in the CSV files"});
  write_file((folder / "gnuplot").string(), "#!/bin/sh\necho sulks >&2\nkill -9 $$\n");
  fs::permissions(folder / "gnuplot", fs::perms::owner_all);
  const auto notes = draw(figures);
  ::setenv("PATH", path.c_str(), 1);
  CHECK(notes == std::vector<std::string>{"gnuplot failed on errors.gp; the figure was not drawn (sulks)"});
  CHECK(fs::exists(folder / "out/errors.csv"));
  CHECK(std::distance(fs::directory_iterator(folder / "out"), {}) == 1);
  fs::remove_all(folder);
}

TEST_CASE("a step trace is what trace viewers read") {
  std::vector<Span> spans(2);
  spans[0] = {0, Span::Stream::device, 0, 0.01, {false, 0, 0}, "forward", 0};
  spans[1] = {1, Span::Stream::network, 0.01, 0.02, {true, 0, 3}, "hand over", 1e6};
  const json trace = json::parse(chrome_trace("toy", 0.02, spans));
  int complete = 0;
  for (const json& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++complete;
    CHECK(e["dur"] == Approx(10000));
  }
  CHECK(complete == 2);
}

TEST_CASE("the schemas in schemas/ are those of this program") {
  const fs::path folder = fs::path(source_folder()) / "schemas";
  std::set<std::string> names;
  for (const auto& [kind, text] : schemas()) {
    const std::string name = schema_file_name(kind);
    names.insert(name);
    INFO(name << ": run build/release/bin/trainwatt schema -o schemas");
    REQUIRE(fs::exists(folder / name));
    CHECK(read_file((folder / name).string()) == text);
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    INFO(entry.path() << " belongs to no kind of input");
    CHECK(names.count(entry.path().filename().string()) == 1);
  }
}

TEST_CASE("the topology of the reference cluster") {
  const auto cluster = load<Cluster>("topologies/smc-h100.json");
  const Fabric fabric = build_fabric(cluster);
  const json j = json::parse(topology_json(cluster, fabric, topology_summary(fabric)));
  CHECK(j["nodes"].get<int>() >= 64);
  CHECK(j["switches"][0]["tier"] == "leaf");
  CHECK(j["switches"][1]["count"] == 16);
  CHECK(j["switches"][0]["oversubscription"].get<double>() == Approx(4800.0 / 6400));
  CHECK(widest_line(topology_table(cluster, fabric, topology_summary(fabric))) <= 80);
  CHECK(holds(topology_dot(fabric), "graph G {"));
  CHECK_THROWS_AS(route_table(fabric, "node-0", "nowhere"), InputError);
}

}  // namespace tw::report
