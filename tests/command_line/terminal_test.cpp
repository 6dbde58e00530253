// What people see on a terminal: help that fits 80 columns.
#include <sstream>

#include "program.hpp"

using namespace program;

TEST_CASE("help keeps to 80 columns, wrapped at words") {
  for (const char* command : {"", "run", "check", "validate", "topology", "collective", "timeline", "calibrate",
                              "sweep", "merge", "plan", "compare", "report", "import", "read", "schema"}) {
    std::vector<std::string> words{"--help"};
    if (*command != '\0') words.insert(words.begin(), command);
    const Run r = run(words);
    REQUIRE(r.code == 0);
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(command << ": " << line);
      CHECK(line.size() <= 80);
    }
    CHECK(r.out.find("\x1b[") == std::string::npos);  // no colour where nobody looks
  }
}

TEST_CASE("tables keep to 80 columns") {
  const Folder folder;
  const std::string k8 = "scenarios/smc-llama2-70b-lora-8n.json", k9 = "scenarios/smc-llama2-70b-lora-9n.json",
                    k1 = "scenarios/smc-llama2-70b-lora-1n.json";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"run", k8, "-q", "--memory", "-"},
           {"run", k8, k9, "-q"},
           {"compare", k8, k9, "--all"},
           {"compare", k8, k9, k1},
           {"compare", k8, k9, k1, "scenarios/smc-llama2-70b-lora-64n.json", k8},
           {"import", "reference/mlperf_logs", "--compare", k8},
           {"validate", "smc", "mlperf-v2.0"},
           {"read", "tests/files/slurm_tree.conf", "-o", folder / "cluster.json"},
           {"topology", "topologies/smc-h100.json", "--route", "node-0", "node-9"},
           {"sweep", "scenarios/studies/equal-power.json", "-o", folder / "power", "-q"},
           {"sweep", "scenarios/studies/half-the-spines.json", "-o", folder / "spines", "-q"},
           {"run", "scenarios/llama3.1-pretraining.json", "-q", "--set", "/training/offload_states=1"},
           {"plan", k8, "--nodes", "8,16", "--gbs-per-node", "1", "--simulate", "4", "-q"},
           {"plan", k8, "--fit", "--facility-power", "100 kW", "--gbs-per-node", "1", "-q"},
           {"collective", "topologies/smc-h100.json", "--op", "all-reduce"},
           {"topology", "topologies/superpod-h100-4096.json"},
           {"hall", "scenarios/halls/smc-week.json", "-q"}}) {
    const Run r = run(words);
    INFO(r.err);
    REQUIRE((r.code == 0 || words.front() == "import"));  // 1: its findings
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(words.front() << ": " << line);
      CHECK(line.size() <= 80);
    }
  }
}
