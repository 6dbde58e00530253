// trainwatt read: networks from configurations of other tools.
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace program;

TEST_CASE("read: a configuration becomes a network that runs; a bad one says why") {
  const Folder folder;
  const std::string config =
      folder.put("config.json",
                 R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
          "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256})");
  const std::string network = folder / "network.json";
  CHECK(run({"read", config, "-o", network}).code == 0);
  const auto j = nlohmann::json::parse(tw::read_file(network));
  CHECK(j["layers"] == 32);
  CHECK(j["vocabulary"] == 128256);
  CHECK(run({"check", "scenarios/llama3.1-pretraining.json", "--set", "/network=" + network}).code == 0);
  CHECK(run({"read", config}).out == tw::read_file(network));
  const Run odd = run({"read", folder.put("odd.json", R"({"model_type": "bert"})")});
  CHECK(odd.code == 2);
  CHECK(holds(odd.err, "unknown family \"bert\""));
  CHECK(run({"read", folder / "missing.json"}).code == 2);
}
