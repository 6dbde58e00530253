// Configurations of Hugging Face repositories become the networks that the project ships.
#include "workload/hf_config.hpp"

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

using namespace tw;

namespace {

// Keys as the published files have them; those that the reader does not need are left out.
const char* const kLlama = R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "tie_word_embeddings": false, "vocab_size": 128256})";
const char* const kMixtral = R"({"model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "num_experts_per_tok": 2, "num_local_experts": 8, "sliding_window": null, "vocab_size": 32000})";
const char* const kQwen = R"({"model_type": "qwen3_moe", "decoder_sparse_step": 1, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144, "mlp_only_layers": [],
  "moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "sliding_window": null, "vocab_size": 151936})";
const char* const kDeepSeek = R"({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_act": "silu",
  "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048,
  "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280})";
const char* const kOss = R"({"model_type": "gpt_oss", "attention_bias": true, "experts_per_token": 4, "head_dim": 64,
  "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
  "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
  "sliding_window": 128, "vocab_size": 201088})";
const char* const kNemotron = R"({"model_type": "nemotron_h", "attention_head_dim": 128, "conv_kernel": 4,
  "hidden_size": 2688, "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
  "intermediate_size": 1856, "mamba_head_dim": 64, "mamba_num_heads": 64, "mlp_hidden_act": "relu2",
  "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "n_groups": 8, "n_routed_experts": 128,
  "num_attention_heads": 32, "num_experts_per_tok": 6, "num_hidden_layers": 52, "num_key_value_heads": 2,
  "ssm_state_size": 128, "vocab_size": 131072})";
const char* const kScout = R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
  "attention_chunk_size": 8192, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
  "interleave_moe_layer_step": 1, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
  "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
  "num_local_experts": 16, "vocab_size": 202048}})";

Architecture read_network(const std::string& text) {
  Faults faults;
  const Document document = Document::from_text(text, "network", description<Architecture>().info(), {}, faults);
  Architecture n = read<Architecture>(document, faults);
  check_architecture(n, ReadContext{&document, "", &faults, {}});
  faults.throw_if_any();
  return n;
}

std::string fault_of(const std::string& config) {
  Faults faults;
  CHECK(network_of_hf_config(config, "config.json", faults).empty());
  REQUIRE_FALSE(faults.empty());
  return faults.list().front().text();
}

}  // namespace

TEST_CASE("published configurations give the networks that are shipped") {
  const std::pair<const char*, const char*> rows[] = {
      {kLlama, "llama3.1-8b"}, {kMixtral, "mixtral-8x7b"},     {kQwen, "qwen3-30b-a3b"}, {kDeepSeek, "deepseek-v3"},
      {kOss, "gpt-oss-20b"},   {kNemotron, "nemotron-3-nano"}, {kScout, "llama4-scout"}};
  for (const auto& [config, shipped] : rows) {
    INFO(shipped);
    Faults faults;
    const std::string text = network_of_hf_config(config, "config.json", faults);
    faults.throw_if_any();
    const Architecture a = read_network(text),
                       b = load<Architecture>(std::string("models/networks/") + shipped + ".json");
    CHECK(network_parameters(a) == network_parameters(b));
    CHECK(active_parameters(a) == active_parameters(b));
    CHECK(layer_kinds(a) == layer_kinds(b));
    Training t;
    t.sequence = 8192;
    CHECK(model_flops_per_sample(a, t, true) == model_flops_per_sample(b, t, true));
  }
}

TEST_CASE("configurations as Python and later releases write them") {
  const auto read_config = [](const std::string& config) {
    Faults faults;
    const std::string text = network_of_hf_config(config, "config.json", faults);
    faults.throw_if_any();
    return read_network(text);
  };
  const Architecture nano = load<Architecture>("models/networks/nemotron-3-nano.json");
  std::string infinite = kNemotron;
  infinite.insert(1, R"("time_step_limit": [0.0, Infinity, -Infinity, NaN], "comment": "Infinity \" NaN", )");
  CHECK(layer_kinds(read_config(infinite)) == layer_kinds(nano));
  // Layers by name, and those of the next-token heads.
  std::string named = kNemotron, names;
  const size_t begin = named.find("\"hybrid_override_pattern\""), end = named.find("EME\",", begin) + 5;
  for (const char c : named.substr(begin + 28, end - begin - 30))
    names += std::string(names.empty() ? "" : ", ") + (c == 'M' ? "\"mamba\"" : c == 'E' ? "\"moe\"" : "\"attention\"");
  named.replace(begin, end - begin, "\"layers_block_type\": [" + names + R"(], "num_nextn_predict_layers": 1,
    "mtp_layers_block_type": ["attention", "moe"], "chunk_size": 256,)");
  const Architecture later = read_config(named);
  CHECK(layer_kinds(later) == layer_kinds(nano));
  CHECK(later.mamba->chunk == 256);
  CHECK(next_token_kinds(later) ==
        std::vector<LayerKind>{{Mixer::attention, Feed::none}, {Mixer::none, Feed::experts}});
  named.replace(named.find("\"moe\""), 5, "\"rwkv\"");
  CHECK(fault_of(named).find("no layer \"rwkv\"; mamba, attention, moe or mlp") != std::string::npos);
  // Families of the same keys: Kimi K2 as published has 1,026 B parameters, 32.6 B of them active.
  std::string kimi = kDeepSeek;
  for (const auto& [from, to] : {std::pair{"deepseek_v3", "kimi_k2"},
                                 {"\"first_k_dense_replace\": 3", "\"first_k_dense_replace\": 1"},
                                 {"\"n_routed_experts\": 256", "\"n_routed_experts\": 384"},
                                 {"\"num_attention_heads\": 128", "\"num_attention_heads\": 64"},
                                 {"\"num_key_value_heads\": 128", "\"num_key_value_heads\": 64"},
                                 {"\"num_nextn_predict_layers\": 1", "\"num_nextn_predict_layers\": 0"},
                                 {"129280", "163840"}})
    kimi.replace(kimi.find(from), std::string(from).size(), to);
  CHECK(network_parameters(read_config(kimi)) == Approx(1026e9).epsilon(0.005));
  CHECK(active_parameters(read_config(kimi)) == Approx(32.9e9).epsilon(0.01));
}

TEST_CASE("configurations that cannot be read say why in one line") {
  CHECK(fault_of("[]").find("no configuration of a model") != std::string::npos);
  CHECK(fault_of("{").find("config.json") == 0);
  CHECK(fault_of(R"({"model_type": "bert"})").find("unknown family \"bert\"") != std::string::npos);
  CHECK(fault_of(R"({"model_type": "llama"})").find("missing") != std::string::npos);
  std::string odd = kLlama;
  odd.replace(odd.find("\"silu\""), 6, "\"gelu\"");
  CHECK(fault_of(odd).find("no activation \"gelu\"") != std::string::npos);
  odd = kLlama;
  odd.replace(odd.find("4096"), 4, "-4.5");
  CHECK(fault_of(odd).find("no whole number") != std::string::npos);
}
