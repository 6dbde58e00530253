// trainwatt plan: what it is asked for, and what runs of its plans warn of; the same of timeline.
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace program;

namespace {

const std::string kPlanned = "scenarios/llama3.1-pretraining.json";

// A small network on a torus, with reduction in switches switched on.
std::vector<std::string> on_torus(std::vector<std::string> words) {
  for (const char* set : {"/network=models/networks/qwen3-0.6b.json", "/cluster=topologies/tpu-v4-pod.json",
                          "/software/sharp=true", "/plan/sharding=none", "/plan/nodes=8", "/plan/cp=1"})
    words.insert(words.end(), {"--set", set});
  return words;
}

}  // namespace

TEST_CASE("plan: what no plan can have is refused before any search, by the option's name") {
  const auto refused = [](const std::vector<std::string>& more, const char* what) {
    std::vector<std::string> words{"plan", kPlanned};
    words.insert(words.end(), more.begin(), more.end());
    const Run r = run(words);
    CAPTURE(r.err);
    CHECK(r.code == 2);
    CHECK(r.error_lines() == 1);
    CHECK(holds(r.err, what));
    CHECK(r.out.empty());
  };
  refused({"--offload-layers", "0,200000"}, "--offload-layers: 200000 is out of range");
  refused({"--offload-layers", "33"}, "--offload-layers: 33 of a network of 32 layers; 0 to 32");
  refused({"--offload-layers", "4", "--set", "/cluster/node/host_memory=null"},
          "--offload-layers: the host memory of eos-h100 is not known");
  refused({"--shard-group", "0,3"}, "--shard-group: 3 does not divide the GPUs of any number of nodes (8)");
  refused({"--shard-group", "8", "--sharding", "none"}, "--shard-group: nothing is sharded");
  refused({"--recompute", "none,mla_up"}, "--recompute: Llama 3.1 8B has no layer with mla_up");
  refused({"--recompute", "none+full"}, "none is a way of its own in \"none+full\": modules are joined by +");
  refused({"--recompute", "norms+norms"}, "norms stands twice in \"norms+norms\"");
  refused({"--recompute", "none,full,none"}, "\"none\" stands twice");
}

TEST_CASE("plan and timeline pass on what runs warn of, each once") {
  const Folder f;
  const std::string said = "SHARP is switched on, and all-reduces go another way";
  const auto times = [&](const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find(said); at != std::string::npos; at = text.find(said, at + 1)) ++count;
    return count;
  };
  const Run plan = run(on_torus({"plan", kPlanned, "--simulate", "3", "--top", "3", "--json", f / "plan.json"}));
  REQUIRE(plan.code == 0);
  CHECK(times(plan.out) == 1);
  CHECK(times(nlohmann::json::parse(tw::read_file(f / "plan.json"))["warnings"].dump()) == 1);
  const Run timeline = run(on_torus({"timeline", kPlanned, "-o", f / "step.json"}));
  REQUIRE(timeline.code == 0);
  CHECK(times(timeline.err) == 1);
  CHECK(nlohmann::json::parse(tw::read_file(f / "step.json"))["traceEvents"].size() > 3);
}

TEST_CASE("collective: level 3 says in words and JSON which rounds it plays together") {
  const Run r = run({"collective", kCluster, "--op", "all-reduce", "--size", "1 MiB", "--ranks", "64", "--level", "3",
                     "--algorithm", "ring", "--json", "-"});
  REQUIRE(r.code == 0);
  const std::string said = "level 3 plays the 126 rounds of ring all-reduce over 64 ranks as 64";
  CHECK(holds(r.err, said));
  CHECK(holds(nlohmann::json::parse(r.out)["warnings"].dump(), said));
}
