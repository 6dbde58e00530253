// Files of other tools (tests/files, each with its source named in it): what they become, and how damaged ones are
// refused.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/csv.hpp"
#include "program.hpp"

using namespace program;
using json = nlohmann::json;

namespace {

const std::string kFiles = "tests/files/";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Words as they follow one another, wherever lines break.
std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string content(const std::string& name) {
  return tw::read_file(source_folder() + "/" + kFiles + name);
}

}  // namespace

TEST_CASE("read: wirings of other tools become clusters that hold together") {
  struct Expected {
    std::string file;
    std::vector<std::string> options;
    int nodes, gpus, nics;
    std::string kind, said;
  };
  const std::vector<Expected> all{
      {"nccl_h100.xml", {"--nodes", "4"}, 4, 8, 8, "scalable_units", "18 NVLinks a GPU"},
      {"nccl_pcie.xml", {"--nodes", "2"}, 2, 4, 1, "scalable_units", "2 PCIe switches below 2 processors"},
      {"nccl_ndv4.xml", {}, 1, 8, 8, "scalable_units", "by their PCIe classes"},
      {"slurm_tree.conf", {}, 16, 8, 8, "scalable_units", "4 leaf switches of 4 nodes"},
      {"slurm_three_levels.conf", {}, 8, 8, 8, "graph", "4 in tier 1, 2 in tier 2, 1 in tier 3"},
      {"astra_switches.yml", {}, 64, 8, 8, "scalable_units", "8 rails of 16 nodes"},
      {"astra_torus.yml", {}, 32, 1, 1, "torus", "a torus"},
      {"astra_v1.json", {}, 8, 4, 4, "scalable_units", "dimension 1 (FullyConnected) is a node of 4 NPUs, 300 GB/s"},
      {"cables_rails.csv",
       {},
       8,
       8,
       8,
       "scalable_units",
       "recognised: scalable units, wiring rails, 8 leaves a unit, 4 spines"},
      {"cables_tors.csv", {}, 6, 8, 2, "graph", "an explicit graph"}};
  for (const Expected& e : all) {
    const Folder folder;
    INFO(e.file);
    std::vector<std::string> words{"read", kFiles + e.file, "-o", folder / "cluster.json"};
    words.insert(words.end(), e.options.begin(), e.options.end());
    const Run r = run(words);
    INFO(r.err);
    REQUIRE(r.code == 0);
    CHECK(holds(unwrapped(r.out), e.said));
    const json cluster = json::parse(tw::read_file(folder / "cluster.json"), nullptr, true, true);
    CHECK(cluster["fabric"]["kind"] == e.kind);
    CHECK(cluster["node"]["gpus"] == e.gpus);
    CHECK(cluster["node"]["nics"] == e.nics);
    const Run shown = run({"topology", folder / "cluster.json", "--json", "-"});
    INFO(shown.err);
    REQUIRE(shown.code == 0);
    CHECK(json::parse(shown.out)["nodes"] == e.nodes);
  }
}

TEST_CASE("read: meters of other tools become power series") {
  struct Expected {
    std::string file;
    std::vector<std::string> options, columns;
    double mean_w, tolerance_w;
  };
  const std::vector<Expected> all{
      {"dcgm.prom", {}, {"time_s", "gpu_dgx-01_0", "gpu_dgx-01_1", "gpu_dgx-01_2", "gpu_dgx-01_3"}, 521, 8},
      {"nvidia_smi.csv", {}, {"time_s", "gpu_0", "gpu_1"}, 452, 8},
      {"kepler_range.json", {}, {"time_s", "node_node-0", "node_node-1"}, 5373, 8},
      {"rapl.csv", {}, {"time_s", "node_0"}, 182, 4},
      {"pdu.csv", {"--map", "time=When,watts=Load (kW),source=Outlet"}, {"time_s", "node_1", "node_2"}, 6308, 50}};
  for (const Expected& e : all) {
    INFO(e.file);
    std::vector<std::string> words{"read", kFiles + e.file};
    words.insert(words.end(), e.options.begin(), e.options.end());
    const Run r = run(words);
    INFO(r.err);
    REQUIRE(r.code == 0);
    const auto table = tw::CsvTable::parse(r.out, e.file);
    CHECK(table.columns() == e.columns);
    CHECK(table.value(0, "time_s") == 0);
    double sum = 0, count = 0;
    for (size_t row = 0; row < table.rows(); ++row)
      for (size_t c = 1; c < e.columns.size(); ++c)
        if (const auto w = table.number(row, e.columns[c])) sum += *w, ++count;
    CHECK(sum / count == Approx(e.mean_w).margin(e.tolerance_w));
  }
}

TEST_CASE("read: damaged files are refused with the line at fault") {
  struct Damage {
    std::string file, from, to, place, what;
  };
  const std::vector<Damage> all{
      {"nccl_h100.xml", "speed=\"400000\"", "speed=\"fast\"", "line 15", "is no count"},
      {"nccl_h100.xml", "sm=\"90\" rank=\"1\"", "sm=\"80\" rank=\"1\"", "line", "a GPU of sm 80"},
      {"nccl_h100.xml", "</system>", "", "line", "is not closed"},
      {"slurm_tree.conf", "tux[4-7]", "tux[4-", "line 5", "no list of names"},
      {"slurm_tree.conf", "tux[4-7]", "tux[3-6]", "line 5", "tux3 is below s0 already"},
      {"slurm_tree.conf", "s[0-3]", "s[0-4]", "line 8", "s4 stands above itself"},
      {"slurm_tree.conf", "s[0-3]", "s[0-2],s7", "line 8", "there is no switch \"s7\""},
      {"astra_switches.yml", "Switch, Switch, Switch", "Switch, Mesh, Switch", "line 2",
       "unknown building block \"Mesh\""},
      {"astra_switches.yml", "8, 16, 4", "8, 16", "line 2", "3 values of topology for 2 dimensions"},
      {"cables_rails.csv", "dgx-02,ibp3,leaf-1-4,2,400 Gbit/s", "dgx-02,ibp3,leaf-1-4,2,fast", "line 14",
       "\"fast\" is no speed"},
      {"cables_rails.csv", "dgx-02,ibp3,leaf-1-4,2,400 Gbit/s\n", "", "line 17",
       "dgx-02 has 7 cables where most nodes have 8"},
      {"cables_rails.csv", "dgx-02,ibp3,leaf-1-4,2", "dgx-\xff,ibp3,leaf-1-4,2", "line 14", "is not UTF-8 text"},
      {"dcgm.prom", "gpu=\"2\",UUID", "gpu=\"2,UUID", "line 6", "a label has no quoted value"},
      {"nvidia_smi.csv", "2024/05/17 04:41:45.000", "soon", "line 5", "\"soon\" is no time"},
      {"rapl.csv", "time_s,energy_uj", "time_s,energy_uj,more", "line 3", "2 fields where the first line has 3"}};
  for (const Damage& d : all) {
    const Folder folder;
    INFO(d.file << ": " << d.to);
    const Run r = run({"read", folder.put(d.file, replaced(content(d.file), d.from, d.to)), "-o", folder / "out"});
    CHECK(r.code == 2);
    CHECK(holds(r.err, d.place));
    CHECK(holds(r.err, d.what));
    CHECK_FALSE(fs::exists(folder / "out"));
  }
  const Folder folder;
  const Run odd = run({"read", folder.put("notes.txt", "Dear all,\nsee below\n")});
  CHECK(odd.code == 2);
  CHECK(odd.error_lines() == 1);
  CHECK(holds(
      odd.err,
      "is a file of no kind that can be read; known: config.json of a Hugging Face repository, NCCL topology XML"));
  const Run test = run({"read", kFiles + "nccl_tests_8.txt"});
  CHECK(test.code == 2);
  CHECK(holds(test.err, "calibrate --nccl-tests"));
}

TEST_CASE("calibrate: nccl-tests give the efficiency of links, and the speed of a domain") {
  const Folder folder;
  const Run across = run({"calibrate", "--nccl-tests", kFiles + "nccl_tests_16.txt", "--cluster",
                          "topologies/lambda-1cc-64.json", "-o", folder / "across.json"});
  INFO(across.err);
  REQUIRE(across.code == 0);
  const json cluster = json::parse(tw::read_file(folder / "across.json"), nullptr, true, true);
  const double efficiency = cluster["fabric"]["link_efficiency"];
  CHECK(efficiency > 0.8);
  CHECK(efficiency < 1);
  CHECK(holds(across.out, "all-to-all on 16 ranks"));
  CHECK(run({"check", "scenarios/llama3.1-pretraining.json", "--set", "/cluster=" + folder / "across.json"}).code == 0);
  const Run inside = run({"calibrate", "--nccl-tests", kFiles + "nccl_tests_8.txt", "--cluster",
                          "topologies/lambda-1cc-64.json", "-o", folder / "inside.json"});
  INFO(inside.err);
  REQUIRE(inside.code == 0);
  const json domain = json::parse(tw::read_file(folder / "inside.json"), nullptr, true, true)["node"]["nvlink"];
  CHECK(domain["collectives"].back()["ranks"] == 8);
  CHECK(domain["collectives"].back()["operation"] == "all-reduce");
  CHECK(run({"calibrate", "--nccl-tests", kFiles + "nccl_tests_16.txt", "-o", folder / "x"}).code == 2);
  // An all-reduce over two nodes hides their links behind NVLink.
  std::string hidden = replaced(content("nccl_tests_16.txt"), "starting: alltoall_perf", "starting: all_reduce_perf");
  const Run nothing = run({"calibrate", "--nccl-tests", folder.put("hidden.txt", hidden), "--cluster",
                           "topologies/lambda-1cc-64.json", "-o", folder / "x"});
  CHECK(nothing.code == 2);
  CHECK(holds(nothing.err, "is bound by NVLink"));
}

TEST_CASE("calibrate: a measured series gives a node's power profile, which a scenario takes") {
  const Folder folder;
  const std::string profile = folder / "power.json";
  const Run r = run({"calibrate", "--power", "reference/smc_v4.0/traces/1n_llama2_70b_lora_dc.csv", "--scenario",
                     "scenarios/smc-llama2-70b-lora-1n.json", "-o", profile});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(holds(unwrapped(r.out), "the series cannot tell it from host_base"));
  CHECK(holds(tw::read_file(profile), "fitted on 1n_llama2_70b_lora_dc.csv"));
  CHECK(run({"check", k8, "--set", "/cluster/node/power=" + profile}).code == 0);
  CHECK(run({"calibrate", "--power", kFiles + "pdu.csv", "-o", folder / "x"}).code == 2);
  const Run none = run({"calibrate", "--power", "README.md", "--scenario", k8, "-o", folder / "x"});
  CHECK(none.code == 2);
  CHECK(holds(none.err, "is no power series"));
}

TEST_CASE("compare: measured power beside a simulation") {
  const Folder folder;
  REQUIRE(run({"read", kFiles + "kepler_range.json", "-o", folder / "measured.csv"}).code == 0);
  const Run r = run({"compare", k8, folder / "measured.csv", "--offset", "45", "-o", folder / "out"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(holds(r.out, "Power of a node"));
  CHECK(holds(r.out, "simulated"));
  CHECK(fs::exists(folder / "out/measured.csv"));
  const Run gpus = run({"compare", k8, kFiles + "dcgm.prom", "--json", "-"});
  REQUIRE(gpus.code == 0);
  const json rows = json::parse(gpus.out);
  CHECK(rows[0]["measured"].get<double>() == Approx(655).margin(10));
  CHECK(rows[0]["simulated"].get<double>() > 500);
  CHECK(run({"compare", k8, k9, folder / "measured.csv"}).code == 2);
}

TEST_CASE("rows of a command as CSV, JSON and SQLite") {
  const Folder folder;
  const std::vector<std::string> words{"collective", kCluster, "--op",   "all-reduce",
                                       "--size",     "1 MiB",  "--size", "1 GiB"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const Run csv = with({"--format", "csv"});
  REQUIRE(csv.code == 0);
  const auto table = tw::CsvTable::parse(csv.out, "rows");
  CHECK(table.rows() == 2);
  CHECK(table.value(1, "bytes") == 1073741824.0);
  CHECK(with({"--format", "json"}).out == with({"--json", "-"}).out);
  REQUIRE(with({"--format", "sqlite", "--rows", folder / "rows.sqlite"}).code == 0);
  CHECK(tw::read_file(folder / "rows.sqlite").rfind("SQLite format 3", 0) == 0);
  CHECK(with({"--format", "sqlite"}).code == 2);
  CHECK(with({"--format", "tables"}).code == 2);
  CHECK(with({"--format", "csv", "--json", "-"}).code == 2);
}
