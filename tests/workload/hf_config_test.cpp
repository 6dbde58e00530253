// Configurations of Hugging Face repositories become the networks that the project ships.
#include "workload/hf_config.hpp"

#include <algorithm>
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

const char* const kNext = R"({"model_type": "qwen3_next", "decoder_sparse_step": 1, "full_attention_interval": 4,
  "head_dim": 256, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5120, "linear_conv_kernel_dim": 4,
  "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
  "mlp_only_layers": [], "moe_intermediate_size": 512, "num_attention_heads": 16, "num_experts": 512,
  "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2, "shared_expert_intermediate_size": 512,
  "vocab_size": 151936})";
const char* const kQwen35 = R"({"model_type": "qwen3_5_moe", "text_config": {"model_type": "qwen3_5_moe_text",
  "attn_output_gate": true, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", "hidden_size": 2048,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
  "linear_value_head_dim": 128, "moe_intermediate_size": 512, "mtp_num_hidden_layers": 1, "num_attention_heads": 16,
  "num_experts": 256, "num_experts_per_tok": 8, "num_hidden_layers": 40, "num_key_value_heads": 2,
  "shared_expert_intermediate_size": 512, "vocab_size": 248320}})";

const char* const kGlm = R"({"model_type": "glm4_moe", "attention_bias": true, "first_k_dense_replace": 3,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
  "n_routed_experts": 160, "n_shared_experts": 1, "num_attention_heads": 96, "num_experts_per_tok": 8,
  "num_hidden_layers": 92, "num_key_value_heads": 8, "num_nextn_predict_layers": 1, "use_qk_norm": true,
  "vocab_size": 151552})";
const char* const kMiniMax = R"({"model_type": "minimax_m2", "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072,
  "intermediate_size": 1536, "num_attention_heads": 48, "num_experts_per_tok": 8, "num_hidden_layers": 62,
  "num_key_value_heads": 8, "num_local_experts": 256, "use_qk_norm": true, "vocab_size": 200064})";
const char* const kGemma = R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "head_dim": 128,
  "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32, "num_hidden_layers": 62,
  "num_key_value_heads": 16, "sliding_window": 1024}, "vision_config": {"model_type": "siglip_vision_model"}})";

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

Architecture network_of(const std::string& config, std::vector<std::string>* said = nullptr) {
  Faults faults;
  const std::string text = network_of_hf_config(config, "config.json", faults, said);
  faults.throw_if_any();
  return read_network(text);
}

// A published file with further keys in front.
std::string and_keys(std::string config, const std::string& keys) {
  return config.insert(1, keys + ", ");
}

// A configuration gives the network that is shipped, in parameters, layers and FLOPs.
void gives(const std::string& config, const std::string& shipped) {
  INFO(shipped);
  Faults faults;
  const std::string text = network_of_hf_config(config, "config.json", faults);
  faults.throw_if_any();
  const Architecture a = read_network(text), b = load<Architecture>("models/networks/" + shipped + ".json");
  CHECK(network_parameters(a) == network_parameters(b));
  CHECK(active_parameters(a) == active_parameters(b));
  CHECK(layer_kinds(a) == layer_kinds(b));
  Training t;
  t.sequence = 8192;
  CHECK(model_flops_per_sample(a, t, true) == model_flops_per_sample(b, t, true));
}

}  // namespace

TEST_CASE("published configurations give the networks that are shipped") {
  const std::pair<const char*, const char*> rows[] = {{kLlama, "llama3.1-8b"},       {kMixtral, "mixtral-8x7b"},
                                                      {kQwen, "qwen3-30b-a3b"},      {kDeepSeek, "deepseek-v3"},
                                                      {kOss, "gpt-oss-20b"},         {kNemotron, "nemotron-3-nano"},
                                                      {kScout, "llama4-scout"},      {kGlm, "glm-4.5"},
                                                      {kMiniMax, "minimax-m2"},      {kGemma, "gemma-3-27b"},
                                                      {kNext, "qwen3-next-80b-a3b"}, {kQwen35, "qwen3.5-35b-a3b"}};
  for (const auto& [config, shipped] : rows) gives(config, shipped);
}

TEST_CASE("texts, lists and parts of a configuration are what they should be") {
  std::string odd = kQwen;
  odd.replace(odd.find("\"silu\""), 6, "-1");
  CHECK(fault_of(odd).find("/hidden_act: no text; a text") != std::string::npos);
  CHECK(fault_of(and_keys(kQwen, R"("layer_types": "x")")).find("/layer_types: no list") != std::string::npos);
  CHECK(fault_of(and_keys(kLlama, R"("vision_config": "x")")).find("/vision_config: no part") != std::string::npos);
  Faults faults;
  const auto phi = [&](const std::string& window) {
    return read_network(
        network_of_hf_config(and_keys(std::string(kLlama).replace(std::string(kLlama).find("llama"), 5, "phi3"),
                                      "\"max_position_embeddings\": 4096, \"sliding_window\": " + window),
                             "config.json", faults));
  };
  CHECK(phi("2047").window == 2047);
  CHECK(phi("262144").window == 0);
}

TEST_CASE("a Gemma that says only what differs has its class's heads") {
  Faults faults;
  const Architecture n = read_network(network_of_hf_config(
      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
          "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}})",
      "config.json", faults));
  CHECK(faults.empty());
  CHECK(n.heads == 8);
  CHECK(n.kv() == 4);
  CHECK(n.head_size() == 256);
  CHECK(network_parameters(n) == Approx(3.88e9).epsilon(0.01));  // Gemma 3 4B without its tower
}

TEST_CASE("layers of linear attention stand where a configuration lists them") {
  std::string listed = kNext;
  listed.replace(listed.find("\"full_attention_interval\": 4"), 28,
                 R"("layer_types": ["linear_attention", "full_attention"])");
  listed.replace(listed.find("\"num_hidden_layers\": 48"), 23, "\"num_hidden_layers\": 2");
  Faults faults;
  const Architecture n = read_network(network_of_hf_config(listed, "config.json", faults));
  CHECK(layer_kinds(n) == std::vector<LayerKind>{{Mixer::delta, Feed::experts}, {Mixer::attention, Feed::experts}});
  listed.replace(listed.find("linear_attention"), 16, "sliding_attention");
  CHECK(fault_of(listed).find("no layer \"sliding_attention\"; linear_attention or full_attention") !=
        std::string::npos);
}

TEST_CASE("configurations of models that see give their towers") {
  const std::string scout = std::string(kScout, std::string(kScout).size() - 1) + R"(, "vision_config": {
    "model_type": "llama4_vision_model", "hidden_size": 1408, "image_size": 336, "intermediate_size": 5632,
    "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 34, "patch_size": 14, "pixel_shuffle_ratio": 0.5,
    "projector_input_dim": 4096, "projector_output_dim": 4096}})";
  const std::string qwen3 = R"({"model_type": "qwen3_vl_moe", "text_config": )" +
                            std::string(kQwen).replace(16, 9, "qwen3_vl_moe_text") + R"(, "vision_config": {
    "deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_size": 1152, "in_channels": 3,
    "intermediate_size": 4304, "num_heads": 16, "num_position_embeddings": 2304, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2}})";
  const std::string qwen2 = R"({"model_type": "qwen2_5_vl", "hidden_act": "silu", "hidden_size": 3584,
    "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "vocab_size": 152064, "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
    "num_heads": 16, "in_chans": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
    "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}})";
  const std::pair<std::string, const char*> rows[] = {
      {scout, "llama4-scout-vision"}, {qwen3, "qwen3-vl-30b-a3b"}, {qwen2, "qwen2.5-vl-7b"}};
  for (const auto& [config, shipped] : rows) gives(config, shipped);
  // LLaVA 1.5: CLIP's 303.5 M parameters (without a norm that it has and a bias of its patches that it has not).
  Faults faults;
  const Architecture llava = read_network(
      network_of_hf_config(R"({"model_type": "llava", "text_config": )" + std::string(kLlama) + R"(, "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
        "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}})",
                           "config.json", faults));
  CHECK(tower_parameters(llava.towers.at(0)) == Approx(303.5e6).epsilon(1e-3));
  CHECK(projector_parameters(llava, llava.towers[0]) == 1024 * 4096 + 4096 + 4096 * 4096 + 4096);
  // A tower of another kind is left out, and that is said.
  const std::string blind = network_of_hf_config(R"({"model_type": "llava", "text_config": )" + std::string(kLlama) +
                                                     R"(, "vision_config": {"model_type": "pixtral"}})",
                                                 "config.json", faults);
  CHECK(blind.find("without its tower (pixtral)") != std::string::npos);
  CHECK(faults.empty());
  std::string odd = scout;
  odd.replace(odd.find("\"image_size\": 336"), 17, "\"image_size\": 350");
  CHECK(fault_of(odd).find("/towers/0/merge: merge = 4 does not divide the 625 tokens") != std::string::npos);
  odd = scout;
  odd.replace(odd.find("\"num_hidden_layers\": 34"), 23, "\"layers\": 34");
  CHECK(fault_of(odd).find("/vision_config/") != std::string::npos);
}

TEST_CASE("configurations as Python and later releases write them") {
  const Architecture nano = load<Architecture>("models/networks/nemotron-3-nano.json");
  std::string infinite = kNemotron;
  infinite.insert(1, R"("time_step_limit": [0.0, Infinity, -Infinity, NaN], "comment": "Infinity \" NaN", )");
  CHECK(layer_kinds(network_of(infinite)) == layer_kinds(nano));
  // Layers by name, and those of the next-token heads.
  std::string named = kNemotron, names;
  const size_t begin = named.find("\"hybrid_override_pattern\""), end = named.find("EME\",", begin) + 5;
  for (const char c : named.substr(begin + 28, end - begin - 30))
    names += std::string(names.empty() ? "" : ", ") + (c == 'M' ? "\"mamba\"" : c == 'E' ? "\"moe\"" : "\"attention\"");
  named.replace(begin, end - begin, "\"layers_block_type\": [" + names + R"(], "num_nextn_predict_layers": 1,
    "mtp_layers_block_type": ["attention", "moe"], "chunk_size": 256,)");
  const Architecture later = network_of(named);
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
  CHECK(network_parameters(network_of(kimi)) == Approx(1026e9).epsilon(0.005));
  CHECK(active_parameters(network_of(kimi)) == Approx(32.9e9).epsilon(0.01));
}

TEST_CASE("windows and biases of a configuration are those of the model that it configures") {
  const auto kinds = [](const std::string& config) { return layer_kinds(network_of(config)); };
  std::string windows = kQwen;
  windows.replace(windows.find("\"sliding_window\": null"), 22, "\"sliding_window\": 4096");
  const std::string off = R"("use_sliding_window": false, "max_window_layers": 20)";
  const std::string on = R"("use_sliding_window": true, "max_window_layers": 20)";
  CHECK(kinds(and_keys(windows, off)) == kinds(kQwen));
  const auto some = kinds(and_keys(windows, on));
  CHECK(std::count(some.begin(), some.end(), LayerKind{Mixer::attention, Feed::experts}) == 20);
  CHECK(std::count(some.begin() + 20, some.end(), LayerKind{Mixer::window, Feed::experts}) == 28);
  CHECK(network_of(and_keys(windows, on)).window == 4096);
  std::string types;
  for (int i = 0; i < 48; ++i) types += std::string(i > 0 ? ", " : "") + "\"sliding_attention\"";
  CHECK(kinds(and_keys(windows, off + ", \"layer_types\": [" + types + "]")) == kinds(kQwen));

  const std::string biased = R"("attention_bias": true)";
  const Architecture llama = network_of(and_keys(kLlama, biased));
  CHECK(network_parameters(llama) - network_parameters(network_of(kLlama)) == 32 * (4096 + 2 * 1024 + 4096));
  CHECK(network_parameters(network_of(and_keys(kQwen, biased))) - network_parameters(network_of(kQwen)) ==
        48 * (4096 + 2 * 512 + 2048));
  CHECK(fault_of(and_keys(kDeepSeek, biased)).find("/attention_bias: no biases") != std::string::npos);
  CHECK(fault_of(and_keys(kLlama, R"("mlp_bias": true)")).find("/mlp_bias: biases of these") != std::string::npos);
}

TEST_CASE("LLaVA as its repositories have it: parts that say what differs, and one of the first") {
  // llava-hf/llava-1.5-7b-hf: 7,063,427,072 parameters, with a norm of CLIP's and without a bias of its patches.
  const std::string llava = R"({"model_type": "llava", "tie_word_embeddings": false, "text_config": {
      "_name_or_path": "lmsys/vicuna-7b-v1.5", "model_type": "llama", "vocab_size": 32064},
    "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
      "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}})";
  CHECK(network_parameters(network_of(llava)) == Approx(7063427072.0).epsilon(1e-5));
  const auto changed = [&](const std::string& from, const std::string& to) {
    return std::string(llava).replace(llava.find(from), from.size(), to);
  };
  CHECK(network_of(changed(R"("model_type": "clip_vision_model", )", "")).towers.size() == 1);
  CHECK(network_of(changed(R"("model_type": "llama", )", "")).ffn == 11008);
  CHECK(network_of(changed(R"("model_type": "llama")", R"("model_type": "mistral", "sliding_window": null)")).kv() ==
        8);
  CHECK(network_of(changed(R"("model_type": "llava", "tie_word_embeddings": false)",
                           R"("model_type": "llava", "tie_word_embeddings": true)"))
            .tied_embeddings);
  CHECK(fault_of(changed(R"("patch_size")", R"("hidden_act": "relu6", "patch_size")"))
            .find("/vision_config/hidden_act: no activation \"relu6\"") != std::string::npos);
  // Keys that a family has not are not named as missing.
  std::string no_mlp = kLlama;
  no_mlp.replace(no_mlp.find("\"intermediate_size\""), 19, "\"intermediate\"");
  CHECK(fault_of(no_mlp) == "config.json: /intermediate_size: missing; a whole number");
  std::vector<std::string> said;
  const Architecture first = network_of(and_keys(std::string(kLlama).replace(16, 5, "llava"),
                                                 R"("mm_vision_tower": "openai/clip-vit-large-patch14-336")"),
                                        &said);
  CHECK(network_parameters(first) == network_parameters(network_of(kLlama)));
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("without its tower (openai/clip-vit-large-patch14-336)") != std::string::npos);
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
  // What cannot be as a network: keys and values, experts, layers of unknown kinds.
  const auto with = [](std::string config, const std::string& from, const std::string& to) {
    return config.replace(config.find(from), from.size(), to);
  };
  CHECK(fault_of(with(kLlama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7"))
            .find("/kv_heads: kv_heads = 7 does not divide 32 heads") != std::string::npos);
  CHECK(fault_of(with(kMixtral, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9"))
            .find("experts_per_token = 9 of 8 experts") != std::string::npos);
  CHECK(fault_of(with(kLlama, "\"num_attention_heads\": 32", "\"num_attention_heads\": 0")).find("/heads") !=
        std::string::npos);
  CHECK(fault_of(with(kOss, "\"sliding_window\"", R"("layer_types": ["full_attention"], "sliding_window")"))
            .find("/layer_types: 1 layers, not 24") != std::string::npos);
  std::string types;
  for (int i = 0; i < 32; ++i) types += std::string(i > 0 ? ", " : "") + "\"linear_attention\"";
  CHECK(fault_of(with(kLlama, "\"hidden_act\"", "\"layer_types\": [" + types + "], \"hidden_act\""))
            .find("/layer_types: no layer \"linear_attention\"") != std::string::npos);
}
