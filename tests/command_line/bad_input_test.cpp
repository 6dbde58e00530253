// Bad inputs: exit code 2, one line a fault with file, place and what is allowed; nothing simulated, nothing written.
#include "program.hpp"

using namespace program;

namespace {

// Runs a scenario file and checks the refusal; returns what was said.
std::string refusal(const std::vector<std::string>& arguments, size_t lines = 1) {  // 0: any number
  const Folder folder;
  std::vector<std::string> all{"run"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (const std::string& word : {std::string("-o"), folder / "out", std::string("--json"), folder / "result.json"})
    all.push_back(word);
  const Run r = run(all);
  INFO(r.err);
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK((lines == 0 ? r.error_lines() > 0 : r.error_lines() == lines));
  CHECK(folder.files() == 0);
  return r.err;
}

std::string with(const std::string& over) {
  return "{\"use\": \"" + k8 + "\"" + (over.empty() ? "" : ", ") + over + "}";
}

}  // namespace

TEST_CASE("bad input: unknown key, with the nearest one") {
  const Folder f;
  const auto file = f.put("s.json", with(R"("plan": {"tpp": 4})"));
  CHECK(holds(refusal({file}), file + ": /plan/tpp: unknown key \"tpp\" in a plan; did you mean \"tp\"?"));
}

TEST_CASE("bad input: missing unit, wrong dimension, negative latency, NaN") {
  const auto set = [](const std::string& what) { return refusal({k8, "--set", what}); };
  CHECK(holds(set("/cluster/fabric/hop_latency=5"),
              "--set: /cluster/fabric/hop_latency: \"5\" has no unit; a time such as \"1.2 us\" is due"));
  CHECK(holds(set("/cluster/fabric/hop_latency=5 GB"), "has the wrong dimension; a time such as"));
  CHECK(holds(set("/cluster/fabric/hop_latency=-1 us"), "out of range; allowed: at least 0 s"));
  CHECK(holds(set("/cluster/fabric/hop_latency=nan us"), "finite number"));
  CHECK(holds(set("/cluster/fabric/uplink_bandwidth=1e999 GB/s"), "finite number"));
  const Folder f;
  CHECK(holds(refusal({f.put("n.json", with(R"("site": {"use": "models/sites/singapore-sin02.json", "pue": NaN})"))}),
              "line 1, column"));
  const auto file = f.put("u.json", with(R"("cluster": {"fabric": {"hop_latency": 5}})"));
  CHECK(holds(refusal({file}), file + ": /cluster/fabric/hop_latency: 5 has no unit"));
}

TEST_CASE("bad input: duplicate key, cut-off file, empty file, 10,000 brackets, a folder, no file") {
  const Folder f;
  CHECK(holds(refusal({f.put("d.json", R"({"name": "a", "name": "b"})")}), f / "d.json" + ": /name: duplicate key"));
  CHECK(holds(refusal({f.put("c.json", "{\n  \"name\": \"a\",\n  \"pl")}), f / "c.json" + ": line 3, column"));
  CHECK(holds(refusal({f.put("e.json", "")}), "the file is empty"));
  CHECK(holds(refusal({f.put("b.json", std::string(10000, '['))}), "nested deeper than 64"));
  CHECK(holds(refusal({f / ""}), "there is no such file"));
  CHECK(holds(refusal({"scenarios/smc-llama2-70b-lora-8.json"}),
              "did you mean \"scenarios/smc-llama2-70b-lora-8n.json\"?"));
}

TEST_CASE("bad input: a plan that does not divide the GPUs") {
  const std::string text = refusal({k8, "--set", "/plan/tp=3"}, 0);
  CHECK(holds(text, "/plan"));
  CHECK(holds(text, "does not divide the 64 GPUs of 8 nodes; nearest valid: 2, 4 or 8"));
  CHECK(holds(refusal({k8, "--set", "/plan/gbs=9"}), "nearest valid: 8 or 16"));
  // What is named as nearest is valid: no tensor parallelism makes 14 stages of 8 GPUs, no expert parallelism thirds.
  CHECK(holds(refusal({"scenarios/llama3.1-pretraining.json", "--set", "/plan/pp=7"}),
              "the 8 GPUs of 1 node; nearest valid: 2, 4 or 8"));
  CHECK(refusal({"scenarios/mixtral-8x7b.json", "--set", "/plan/etp=3"}, 2).find("/plan/ep:") == std::string::npos);
  CHECK(holds(refusal({k8, "--set", "/plan/dp=7"}), "leave dp out, or write 8"));
}

TEST_CASE("bad input: more nodes than the cluster has") {
  const std::string text = refusal({k64, "--set", "/plan/nodes=6400"}, 0);
  CHECK(holds(text, "/plan/nodes"));
  CHECK(holds(text, "6400"));
}

TEST_CASE("bad input: a switch with too many cables, a node that cannot be reached") {
  const std::string ports = refusal({k8, "--set", "/cluster/fabric/switch/ports=32"});
  CHECK(holds(ports, "/cluster/fabric"));
  CHECK(holds(ports, "32"));
  const std::string alone = refusal({k8, "--set", "/cluster/fabric/uplinks_per_leaf=0"});
  CHECK(holds(alone, "node-"));
}

TEST_CASE("bad input: values out of range, wrong choices, overrides that name nothing") {
  CHECK(holds(refusal({k8, "--set", "/plan/nodes=0"}), "allowed: at least 1"));
  CHECK(holds(refusal({k8, "--set", "/plan/nodes=-3"}), "out of range"));
  CHECK(holds(refusal({k8, "--set", "/training/precision=fp7"}), "unknown choice \"fp7\"; allowed:"));
  CHECK(holds(refusal({k8, "--set", "/plan/tq=3"}), "\"tq\" names nothing; did you mean \"tp\"?"));
  CHECK(holds(refusal({k8, "--set", "plan.tp=3"}), "example: --set /plan/tp=8"));
  CHECK(holds(refusal({k8, "--set", "/site/pue=0.9"}), "allowed: at least 1"));
}

TEST_CASE("bad input: modules to compute again that the network has not") {
  const auto modules = [](const char* list) {
    return refusal({"scenarios/llama3.1-pretraining.json", "--set", "/training/recompute=selective", "--set",
                    std::string("/training/recompute_modules=") + list});
  };
  CHECK(
      holds(modules(R"(["norms", "mla_up"])"), "/training/recompute_modules/1: Llama 3.1 8B has no layer with mla_up"));
  CHECK(holds(modules(R"(["experts"])"), "has no layer with experts"));
  CHECK(holds(program::run({"plan", "scenarios/llama3.1-pretraining.json", "--recompute", "none,norms+fool"}).err,
              "unknown choice \"fool\""));
}

TEST_CASE("bad input: a file of another kind is told by its kind") {
  const Run scenario = program::run({"topology", k8});
  CHECK(scenario.code == 2);
  CHECK(scenario.err == k8 + ": all of its keys are those of another kind: scenario; a cluster is due\n");
  CHECK(refusal({kCluster}) == kCluster + ": all of its keys are those of another kind: cluster; a scenario is due\n");
  const Folder f;
  const std::string network = f.put("n.json", R"({"name": "n", "layers": 2, "hidden": 64, "heads": 2, "node": {}})");
  CHECK(holds(refusal({network}, 0), "unknown key \"layers\" in a scenario"));
}

TEST_CASE("bad input: all faults of all inputs at once") {
  const Folder f;
  const auto a = f.put("a.json", with(R"("plan": {"tpp": 4}, "site": "nowhere.json")"));
  const auto b = f.put("b.json", R"({"name": "b", "name": "c"})");
  const std::string text = refusal({a, b, "--set", "/zzz=1"}, 4);
  CHECK(holds(text, a + ": /plan/tpp"));
  CHECK(holds(text, a + ": /site: there is no file \"nowhere.json\""));
  CHECK(holds(text, b + ": /name: duplicate key"));
  CHECK(holds(text, "--set: /zzz"));
}

TEST_CASE("bad input: outputs that cannot be written are refused before anything is simulated") {
  const Folder f;
  const auto file = f.put("taken", "x");
  const Run a = run({"run", k8, "-o", file});
  CHECK(a.code == 2);
  CHECK(holds(a.err, "-o: "));
  const Run b = run({"run", k8, "--json", file + "/x.json"});
  CHECK(b.code == 2);
  const Run c = run({"run", k8, "--json", f / ""});
  CHECK(c.code == 2);
  CHECK(tw::read_file(file) == "x");
}

TEST_CASE("check says what is right and refuses what is wrong") {
  const Run good = run({"check", k1, k8, k9, k64, kUnet});
  CHECK(good.code == 0);
  CHECK(good.err.empty());
  CHECK(std::count(good.out.begin(), good.out.end(), '\n') == 5);
  const Run bad = run({"check", k8, "--set", "/plan/tp=3"});
  CHECK(bad.code == 2);
  CHECK(bad.out.empty());
  CHECK(!bad.err.empty());
}

TEST_CASE("bad input of topology, collective, validate and timeline") {
  CHECK(holds(run({"topology", "topologies/smc-h10.json"}).err, "did you mean \"topologies/smc-h100.json\"?"));
  CHECK(run({"topology", kCluster, "--route", "node-0", "node-9999"}).code == 2);
  CHECK(run({"topology", kCluster, "--set", "/fabric/switch/ports=32"}).code == 2);
  CHECK(
      holds(run({"collective", kCluster, "--op", "all-reduc", "--size", "1 GiB"}).err, "did you mean \"all-reduce\"?"));
  CHECK(holds(run({"collective", kCluster, "--op", "all-reduce", "--size", "1"}).err, "has no unit"));
  CHECK(holds(run({"collective", kCluster, "--op", "all-reduce", "--size", "0 B"}).err, "out of range"));
  CHECK(holds(run({"collective", kCluster, "--op", "all-reduce", "--size", "1 GB", "--ranks", "99999999"}).err,
              "more than the cluster has"));
  CHECK(holds(run({"validate", "smcc"}).err, "did you mean \"smc\"?"));
  CHECK(run({"validate", "smcc"}).code == 2);
  CHECK(run({"timeline", k8, "-o", "/nonexistent-root-folder/x/y.json"}).code != 1);
}

TEST_CASE("bad input: a suite with a wrong quantity, a wrong unit, an id twice, a scenario that is not there") {
  const Folder f;
  const auto suite = f.put("suite.json", R"({"name": "mine", "cases": [{"scenario": "scenarios/nowhere.json", "rows": [
    {"id": "a", "quantity": "step", "unit": "s", "measured": 1, "kind": "fitted", "source": "me"},
    {"id": "a", "quantity": "run_s", "unit": "h", "measured": 1, "kind": "fitted", "source": "me"}]}]})");
  const Run r = run({"validate", suite, "-o", f / "out"});
  INFO(r.err);
  CHECK(r.code == 2);
  CHECK(r.error_lines() == 4);
  CHECK(holds(r.err, suite + ": /cases/0/rows/0/quantity: unknown quantity \"step\"; did you mean \"step_s\"?"));
  CHECK(holds(r.err, suite + ": /cases/0/rows/1/unit: \"h\" is not the unit of run_s; allowed: s"));
  CHECK(holds(r.err, suite + ": /cases/0/rows/1/id: \"a\" stands twice"));
  CHECK(holds(r.err, "scenarios/nowhere.json"));
  CHECK(f.files() == 1);
}
