#include "program.hpp"

TEST_CASE("Llama 3.1 8B with plain data parallelism and FP32 states does not fit 80 GB: exit code 3, table, ways out") {
  const std::vector<std::string> plain{"run", "scenarios/llama3.1-pretraining.json", "--quiet", "--set",
                                       "/plan/sharding=none"};
  const auto refused = program::run(plain);
  CHECK(refused.code == 3);
  for (const char* part : {"out of memory", "weights", "gradients", "optimizer", "activations", "workspace"})
    CHECK(refused.err.find(part) != std::string::npos);
  const auto at = refused.err.find("nearest plans that fit:\n  ");
  REQUIRE(at != std::string::npos);
  // The first plan named is taken at its word.
  std::string line = refused.err.substr(refused.err.find('\n', at) + 1);
  line = line.substr(0, line.find("  ("));
  std::vector<std::string> fitting = plain;
  for (size_t begin = line.find("--set "); begin != std::string::npos; begin = line.find("--set ", begin)) {
    begin += 6;
    fitting.push_back("--set");
    fitting.push_back(line.substr(begin, line.find(' ', begin) - begin));
  }
  REQUIRE(fitting.size() > plain.size());
  CHECK(program::run(fitting).code == 0);
}

TEST_CASE("on a single GPU nothing helps, and that is said") {
  const auto refused =
      program::run({"run", "scenarios/llama3.1-pretraining.json", "--quiet", "--set", "/plan/sharding=none", "--set",
                    "/cluster/node/gpus=1", "--set", "/plan/cp=1", "--set", "/cluster/node/host_memory=null"});
  CHECK(refused.code == 3);
  CHECK(refused.err.find("no plan on these GPUs fits") != std::string::npos);
}

TEST_CASE("encoders and mixtures of experts run") {
  for (const char* scenario : {"scenarios/bert-large.json", "scenarios/mixtral-8x7b.json"}) {
    const auto run = program::run({"run", scenario, "--quiet"});
    INFO(run.err);
    CHECK(run.code == 0);
  }
}
