#include "workload/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/document.hpp"
#include "core/strict_json.hpp"
#include "core/text.hpp"
#include "workload/hf_keys.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

// Python writes numbers that JSON has not (Infinity in time_step_limit of nemotron_h): null or 0 in their place, no
// character moved.
std::string without_infinities(std::string text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\') ++i;
    if (quoted || (text[i] != '-' && text[i] != 'I' && text[i] != 'N')) continue;
    for (const std::string word : {"-Infinity", "Infinity", "NaN"})
      if (text.compare(i, word.size(), word) == 0)
        text.replace(i, word.size(), word == "NaN" ? "0.0" : "null" + std::string(word.size() - 4, ' '));
  }
  return text;
}

void write_attention(HfWriter& w, const HfConfig& c, long heads) {
  w.number("heads", heads);
  if (c.family == "deepseek_v3") {
    if (c.flag("attention_bias")) c.fault("attention_bias", "no biases are described with latent attention", "false");
    w.line(fmt::format("\"mla\": {{\"query_rank\": {}, \"kv_rank\": {}, \"nope\": {}, \"rope\": {}, \"value\": {}}}",
                       c.number("q_lora_rank", 0), c.number("kv_lora_rank"), c.number("qk_nope_head_dim"),
                       c.number("qk_rope_head_dim"), c.number("v_head_dim")));
    return;
  }
  w.number("kv_heads", c.number("num_key_value_heads", heads));
  if (const long size = c.number(c.first({"head_dim", "attention_head_dim"}), 0); size > 0) w.number("head_dim", size);
  const bool normed = c.flag("use_qk_norm", c.family == "minimax_m2");
  if (c.is({"qwen3", "qwen3_moe", "qwen3_next", "gemma3"}) || (c.family == "glm4_moe" && normed))
    w.text("qk_norm", "head");
  if (c.family == "qwen3_next" && c.flag("attn_output_gate", true)) w.truth("attention_gate");
  if (c.is({"olmo2", "olmo3"}) || (c.family == "minimax_m2" && normed)) w.text("qk_norm", "width");
  if (c.family == "gpt_oss")
    w.truth("biases"), w.truth("clamped"), w.truth("sinks"), w.truth("rotary_scaled");
  else if (c.is({"qwen2", "qwen2_moe"}) || (c.family == "glm4_moe" && c.flag("attention_bias")))
    w.text("attention_biases", "qkv");  // Qwen2's without a key that says so
  else if (c.flag("attention_bias"))
    w.text("attention_biases", "all");
  for (const char* key : {"mlp_bias", "use_bias"})
    if (c.flag(key)) c.fault(key, "biases of these layers are not described by a network", "false");
  if (c.family == "nemotron_h") w.line("\"rotary\": false");
}

void write_experts(HfWriter& w, const HfConfig& c, long dense_ffn) {
  w.number("experts",
           c.number(c.is({"qwen2_moe", "qwen3_moe", "qwen3_next"})    ? c.first({"num_experts", "num_local_experts"})
                    : c.is({"deepseek_v3", "nemotron_h", "glm4_moe"}) ? "n_routed_experts"
                                                                      : "num_local_experts"));
  w.number("experts_per_token", c.number(c.first({"num_experts_per_tok", "experts_per_token"})));
  long each = c.number(c.first({"moe_intermediate_size", "intermediate_size"}));
  if (each != dense_ffn) w.number("expert_ffn", each);
  long shared = 0;
  if (c.family == "llama4") shared = each;
  if (c.is({"deepseek_v3", "glm4_moe"})) shared = each * c.number("n_shared_experts", 0);
  if (c.family == "nemotron_h") shared = c.number("moe_shared_expert_intermediate_size", 0);
  if (c.is({"qwen2_moe", "qwen3_next"})) shared = c.number("shared_expert_intermediate_size", 0);
  if (shared > 0) w.number("shared_ffn", shared);
  if (shared > 0 && c.is({"qwen2_moe", "qwen3_next"})) w.truth("shared_gate");
  if (c.number("moe_latent_size", 0) > 0) w.number("expert_latent", c.number("moe_latent_size"));
}

void write_delta(HfWriter& w, const HfConfig& c) {
  w.line(
      fmt::format("\"delta\": {{\"key_heads\": {}, \"value_heads\": {}, \"key_dim\": {}, \"value_dim\": {}, "
                  "\"convolution\": {}}}",
                  c.number("linear_num_key_heads"), c.number("linear_num_value_heads"), c.number("linear_key_head_dim"),
                  c.number("linear_value_head_dim"), c.number("linear_conv_kernel_dim", 4)));
}

// `tower`: what the configuration calls a tower of which it says nothing more; empty: none such.
void write_network(HfWriter& w, const HfConfig& c, const HfConfig& whole, const std::string& name,
                   const HfConfig* vision, std::string tower, std::vector<std::string>* said) {
  const bool hybrid = c.family == "nemotron_h";
  const std::string letters = hybrid ? hf_layer_letters(c, "hybrid_override_pattern", "layers_block_type") : "";
  const long layers = c.number("num_hidden_layers", hybrid ? static_cast<long>(letters.size()) : -1);
  const long heads = c.number("num_attention_heads");
  if (hybrid && letters.empty())
    c.fault("hybrid_override_pattern", "missing", "letters M, E, * and -, or names in layers_block_type");
  if (hybrid && static_cast<long>(letters.size()) != layers)
    c.fault("hybrid_override_pattern", fmt::format("{} layers, not {}", letters.size(), layers));
  w.text("name", name);
  w.number("layers", layers);
  bool experts = letters.find('E') != std::string::npos, windows = false, rules = false;
  if (hybrid) {
    w.text("pattern", letters);
  } else if (layers > 0 && layers <= 100000) {
    const auto routed = hf_expert_layers(c, layers), sees = hf_window_layers(c, layers),
               delta = hf_delta_layers(c, layers);
    std::vector<std::string> kinds;
    for (size_t i = 0; i < routed.size(); ++i) {
      kinds.push_back(std::string(delta[i]  ? "delta"
                                  : sees[i] ? "window"
                                            : "attention") +
                      (routed[i] ? "+experts" : "+mlp"));
      experts = experts || routed[i];
      windows = windows || sees[i], rules = rules || delta[i];
    }
    if (experts || windows || rules) w.text("pattern", hf_pattern(kinds));
  }
  const bool no_mlp = c.family == "qwen3_next" && !c.has("intermediate_size");  // every layer has experts
  const long ffn = c.number(c.has("intermediate_size_mlp") ? "intermediate_size_mlp"
                            : no_mlp                       ? "moe_intermediate_size"
                                                           : "intermediate_size");
  w.number("hidden", c.number("hidden_size"));
  w.number("ffn", ffn);
  write_attention(w, c, heads);
  const bool gemma = c.is({"gemma2", "gemma3"});
  w.number("vocabulary", c.number("vocab_size"));
  if (gemma) w.truth("output_norms");
  const char* act = c.first({"hidden_act", "mlp_hidden_act", "hidden_activation"});
  const std::string activation = c.text(act);
  if (activation == "relu2")
    w.text("mlp", "squared_relu");
  else if (gemma && (activation.empty() || activation == "gelu_pytorch_tanh"))
    w.text("mlp", "geglu");
  else if (!activation.empty() && activation != "silu" && activation != "swish")
    c.fault(act, fmt::format("no activation \"{}\"", printable(activation)),
            gemma ? "gelu_pytorch_tanh" : "silu or relu2");
  if (c.flag("tie_word_embeddings", gemma || c.named == "smollm3") || whole.flag("tie_word_embeddings"))
    w.truth("tied_embeddings");
  if (windows) {
    w.number("window", c.number(c.family == "llama4" ? "attention_chunk_size" : "sliding_window"));
    if (c.family == "llama4") w.truth("window_chunks");
  }
  if (letters.find('M') != std::string::npos)
    w.line(
        fmt::format("\"mamba\": {{\"heads\": {}, \"head_dim\": {}, \"state\": {}, \"groups\": {}, \"convolution\": {}, "
                    "\"chunk\": {}}}",
                    c.number("mamba_num_heads"), c.number("mamba_head_dim"), c.number("ssm_state_size"),
                    c.number("n_groups", 1), c.number("conv_kernel", 4), c.number("chunk_size", 128)));
  if (rules) write_delta(w, c);
  if (experts) write_experts(w, c, ffn);
  // Gemma pools what its tower gives, which no projector of a network does.
  if (vision != nullptr && (gemma || !write_hf_tower(w, *vision, c.number("hidden_size")))) tower = vision->named;
  const long further = c.number(c.first({"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}), 0);
  const std::string ahead = hf_layer_letters(c, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  if (further > 0)
    w.line(fmt::format("\"next_token\": {{\"depth\": {}{}}}", further,
                       ahead.empty() ? "" : ", \"pattern\": " + hf_quoted(ahead)));
  if (!tower.empty() && said != nullptr)
    said->push_back(
        fmt::format("The network is without its tower ({}), which the configuration does not describe in "
                    "terms that are known: add it under \"towers\".",
                    printable(tower)));
  w.text("source", "config.json of " + name + (tower.empty() ? "" : "; without its tower (" + tower + ")"));
}

// What is wrong with a network is so with the configuration.
void check_written(const std::string& network, const std::string& name, Faults& faults) {
  Faults own;
  const Document document = Document::from_text(network, name, description<Architecture>().info(), {}, own);
  const Architecture n = read<Architecture>(document, own);
  if (own.empty()) check_architecture(n, ReadContext{&document, "", &own, {}});
  for (const Fault& f : own.list())
    faults.add({name, "", fmt::format("as a network, {}: {}", f.place, f.what), f.allowed});
}

}  // namespace

std::string hf_families() {
  return "llama, mistral, mixtral, phi3, granite, smollm3, gemma2, gemma3, qwen2, qwen2_moe, qwen3, qwen3_moe, "
         "qwen3_next, qwen3_5, qwen3_5_moe, deepseek_v2, deepseek_v3, kimi_k2, glm4_moe, minimax_m2, gpt_oss, "
         "nemotron_h, llama4, olmo2, olmo3; models that see: llama4, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, qwen3_5, "
         "qwen3_5_moe, gemma3 (its text), llava";
}

std::string network_of_hf_config(const std::string& text, const std::string& name, Faults& faults,
                                 std::vector<std::string>* said) {
  const auto json = parse_strict_json(without_infinities(text), name, faults);
  if (!json) return "";
  if (!json->is_object()) {
    faults.add({name, "", "no configuration of a model", "an object with \"model_type\""});
    return "";
  }
  // Models that also see keep their language model in a part of its own; the first LLaVA have its keys among theirs.
  const auto is_part = [&](const char* key) { return json->contains(key) && json->at(key).is_object(); };
  const HfConfig whole(*json, name, faults);
  const bool inner = is_part("text_config"), llava = whole.named.find("llava") == 0;
  HfConfig c = inner ? HfConfig(json->at("text_config"), name, faults, "/text_config", llava ? "llama" : "") : whole;
  static const std::map<std::string, const char*> same_keys = {{"llama4_text", "llama4"},
                                                               {"deepseek_v2", "deepseek_v3"},
                                                               {"kimi_k2", "deepseek_v3"},
                                                               {"qwen2_5_vl", "qwen2"},
                                                               {"qwen2_5_vl_text", "qwen2"},
                                                               {"qwen3_vl_text", "qwen3"},
                                                               {"qwen3_vl_moe_text", "qwen3_moe"},
                                                               {"gemma3_text", "gemma3"},
                                                               {"phi3", "llama"},
                                                               {"granite", "llama"},
                                                               {"smollm3", "llama"},
                                                               {"qwen3_5", "qwen3_next"},
                                                               {"qwen3_5_text", "qwen3_next"},
                                                               {"qwen3_5_moe", "qwen3_next"},
                                                               {"qwen3_5_moe_text", "qwen3_next"},
                                                               {"llava", "llama"},
                                                               {"llava_llama", "llama"},
                                                               {"llava_mistral", "mistral"},
                                                               {"llava_qwen", "qwen2"}};
  if (const auto at = same_keys.find(c.named); at != same_keys.end()) c.family = at->second;
  static const std::set<std::string> known = {
      "llama",  "mistral", "mixtral", "qwen2",      "qwen3",     "qwen3_moe", "deepseek_v3", "gpt_oss", "nemotron_h",
      "llama4", "olmo2",   "olmo3",   "qwen3_next", "qwen2_moe", "glm4_moe",  "minimax_m2",  "gemma2",  "gemma3"};
  if (known.count(c.family) == 0) {
    c.fault("model_type", fmt::format("unknown family \"{}\"", printable(c.named)), hf_families());
    return "";
  }
  const size_t before = faults.size();
  const std::string path = whole.text("_name_or_path");
  if (whole.has("vision_config") && !is_part("vision_config")) whole.fault("vision_config", "no part", "an object");
  std::optional<HfConfig> vision;
  if (is_part("vision_config"))
    vision.emplace(json->at("vision_config"), name, faults, "/vision_config",
                   llava ? "clip_vision_model" : whole.named);
  HfWriter w;
  write_network(w, c, whole,
                !path.empty()          ? path
                : !whole.named.empty() ? whole.named
                                       : c.named,
                vision ? &*vision : nullptr, whole.text("mm_vision_tower"), said);
  if (faults.size() == before) check_written(w.file(), name, faults);
  return faults.size() == before ? w.file() : "";
}

}  // namespace tw
