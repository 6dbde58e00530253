#include "workload/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/document.hpp"
#include "core/strict_json.hpp"
#include "core/text.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

using Json = nlohmann::json;

constexpr const char* kFamilies =
    "llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, kimi_k2, gpt_oss, nemotron_h, llama4, "
    "olmo2, olmo3; models that see: llama4, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, llava";

class Config {
 public:
  Config(const Json& json, std::string file, Faults& faults, std::string at = "")
      : json_(json), file_(std::move(file)), at_(std::move(at)), faults_(faults), family(text("model_type")) {}

  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  // A whole number; `otherwise` below 0: the key has to be there.
  long number(const char* key, long otherwise = -1) const {
    if (!has(key)) {
      if (otherwise < 0) fault(key, "missing", "a whole number");
      return otherwise;
    }
    const Json& value = json_.at(key);
    if (!value.is_number_integer() || value.get<long>() < 0 || value.get<long>() > 1000000000) {
      fault(key, "no whole number", "0 to 1000000000");
      return 0;
    }
    return value.get<long>();
  }
  bool flag(const char* key, bool otherwise = false) const {
    if (!has(key)) return otherwise;
    if (!json_.at(key).is_boolean()) fault(key, "neither true nor false", "true or false");
    return json_.at(key).is_boolean() && json_.at(key).get<bool>();
  }
  std::string text(const char* key) const {
    return has(key) && json_.at(key).is_string() ? json_.at(key).get<std::string>() : "";
  }
  // The first of the keys that is there; families name the same differently.
  const char* first(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (has(key)) return key;
    return *keys.begin();
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> list;
    if (!has(key)) return list;
    if (json_.at(key).is_array())
      for (const Json& entry : json_.at(key)) list.push_back(entry.is_string() ? entry.get<std::string>() : "");
    return list;
  }
  std::set<long> numbers(const char* key) const {
    std::set<long> list;
    if (has(key) && json_.at(key).is_array())
      for (const Json& entry : json_.at(key))
        if (entry.is_number_integer()) list.insert(entry.get<long>());
    return list;
  }
  void fault(const std::string& key, const std::string& what, const std::string& allowed = "") const {
    faults_.add({file_, at_ + "/" + key, what, allowed});
  }
  double share(const char* key, double otherwise) const {
    if (!has(key)) return otherwise;
    const double value = json_.at(key).is_number() ? json_.at(key).get<double>() : 0;
    if (value > 0 && value <= 1) return value;
    return fault(key, "no share", "above 0 to 1"), otherwise;
  }

 private:
  const Json& json_;
  std::string file_, at_;
  Faults& faults_;

 public:
  std::string family;
};

// Python writes numbers that JSON has not (Infinity in time_step_limit of nemotron_h): null in their place, no
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

bool sliding(const std::string& type) {
  return type == "sliding_attention" || type == "chunked_attention";
}

// Which layers hold experts, by the families' own rules.
std::vector<bool> expert_layers(const Config& c, long layers) {
  std::vector<bool> experts(static_cast<size_t>(layers), false);
  const std::set<long> dense = c.numbers("mlp_only_layers"), listed = c.numbers("moe_layers");
  const long step =
      c.family == "llama4" ? c.number("interleave_moe_layer_step", 1) : c.number("decoder_sparse_step", 1);
  for (long i = 0; i < layers; ++i) {
    bool here = false;
    if (c.family == "mixtral" || c.family == "gpt_oss") here = true;
    if (c.family == "qwen3_moe") here = dense.count(i) == 0 && step > 0 && (i + 1) % step == 0;
    if (c.family == "deepseek_v3")
      here = i >= c.number("first_k_dense_replace", 0) && i % std::max(1L, c.number("moe_layer_freq", 1)) == 0;
    if (c.family == "llama4") here = listed.empty() ? step > 0 && (i + 1) % step == 0 : listed.count(i) > 0;
    experts[static_cast<size_t>(i)] = here;
  }
  return experts;
}

std::vector<bool> window_layers(const Config& c, long layers) {
  std::vector<bool> windows(static_cast<size_t>(layers), false);
  const auto types = c.texts("layer_types");
  if (!types.empty() && static_cast<long>(types.size()) != layers)
    c.fault("layer_types", fmt::format("{} layers, not {}", types.size(), layers));
  for (const std::string& type : types)
    if (!sliding(type) && type != "full_attention")
      return c.fault("layer_types", fmt::format("no layer \"{}\"", printable(type)),
                     "full_attention, sliding_attention or chunked_attention"),
             windows;
  const long full = c.family == "llama4" ? c.number("no_rope_layer_interval", 4) : 0;
  const bool late = (c.family == "qwen2" || c.family == "qwen3") && c.flag("use_sliding_window");
  for (long i = 0; i < layers; ++i) {
    bool here = false;
    if (static_cast<long>(types.size()) == layers)
      here = sliding(types[static_cast<size_t>(i)]);
    else if (c.family == "llama4")
      here = full > 0 && (i + 1) % full != 0;
    else if (c.family == "mistral" || c.family == "mixtral")
      here = c.number("sliding_window", 0) > 0;
    else if (c.family == "gpt_oss")
      here = i % 2 == 0;
    else if (late)
      here = i >= c.number("max_window_layers", layers);
    windows[static_cast<size_t>(i)] = here;
  }
  return windows;
}

// "3*attention+mlp 58*attention+experts"; a short period is written as a group.
std::string pattern_of(const std::vector<std::string>& layers) {
  const auto runs = [](const std::vector<std::string>& list) {
    std::string text;
    for (size_t i = 0; i < list.size();) {
      size_t n = 1;
      while (i + n < list.size() && list[i + n] == list[i]) ++n;
      text += (text.empty() ? "" : " ") + (n > 1 ? fmt::format("{}*", n) : "") + list[i];
      i += n;
    }
    return text;
  };
  for (size_t period = 2; period <= 8 && period < layers.size(); ++period) {
    if (layers.size() % period != 0) continue;
    bool repeats = true;
    for (size_t i = period; i < layers.size() && repeats; ++i) repeats = layers[i] == layers[i - period];
    const std::vector<std::string> unit(layers.begin(), layers.begin() + static_cast<long>(period));
    if (repeats && std::set<std::string>(unit.begin(), unit.end()).size() > 1)
      return fmt::format("{}*({})", layers.size() / period, runs(unit));
  }
  return runs(layers);
}

// Letters of a hybrid's layers: as they stand, or from their names.
std::string layer_letters(const Config& c, const char* letters, const char* names) {
  static const std::map<std::string, char> known = {{"mamba", 'M'}, {"attention", '*'}, {"moe", 'E'}, {"mlp", '-'}};
  std::string out = c.text(letters);
  if (!out.empty()) return out;
  for (const std::string& name : c.texts(names)) {
    const auto at = known.find(name);
    if (at == known.end()) c.fault(names, fmt::format("no layer \"{}\"", name), "mamba, attention, moe or mlp");
    out += at == known.end() ? '-' : at->second;
  }
  return out;
}

// Keys of the network file, in order.
class ConfigWriter {
 public:
  void line(const std::string& text) { lines_.push_back("  " + text); }
  void number(const char* key, long value) { line(fmt::format("\"{}\": {}", key, value)); }
  void text(const char* key, const std::string& value) { line(fmt::format("\"{}\": {}", key, Json(value).dump())); }
  void truth(const char* key) { line(fmt::format("\"{}\": true", key)); }
  std::string file() const {
    std::string out = "{\n";
    for (size_t i = 0; i < lines_.size(); ++i) out += lines_[i] + (i + 1 < lines_.size() ? ",\n" : "\n");
    return out + "}\n";
  }

 private:
  std::vector<std::string> lines_;
};

void write_attention(ConfigWriter& w, const Config& c, long heads) {
  w.number("heads", heads);
  if (c.family == "deepseek_v3") {
    w.line(fmt::format("\"mla\": {{\"query_rank\": {}, \"kv_rank\": {}, \"nope\": {}, \"rope\": {}, \"value\": {}}}",
                       c.number("q_lora_rank", 0), c.number("kv_lora_rank"), c.number("qk_nope_head_dim"),
                       c.number("qk_rope_head_dim"), c.number("v_head_dim")));
    return;
  }
  w.number("kv_heads", c.number("num_key_value_heads", heads));
  const char* size = c.first({"head_dim", "attention_head_dim"});
  if (c.has(size)) w.number("head_dim", c.number(size));
  if (c.family == "qwen3" || c.family == "qwen3_moe") w.text("qk_norm", "head");
  if (c.family == "olmo2" || c.family == "olmo3") w.text("qk_norm", "width");
  if (c.family == "gpt_oss") w.truth("biases"), w.truth("clamped"), w.truth("sinks"), w.truth("rotary_scaled");
  if (c.family == "nemotron_h") w.line("\"rotary\": false");
}

void write_experts(ConfigWriter& w, const Config& c, long dense_ffn) {
  w.number("experts", c.number(c.first({"num_experts", "n_routed_experts", "num_local_experts"})));
  w.number("experts_per_token", c.number(c.first({"num_experts_per_tok", "experts_per_token"})));
  long each = c.number(c.first({"moe_intermediate_size", "intermediate_size"}));
  if (each != dense_ffn) w.number("expert_ffn", each);
  long shared = 0;
  if (c.family == "llama4") shared = each;
  if (c.family == "deepseek_v3") shared = each * c.number("n_shared_experts", 0);
  if (c.family == "nemotron_h") shared = c.number("moe_shared_expert_intermediate_size", 0);
  if (shared > 0) w.number("shared_ffn", shared);
  if (c.number("moe_latent_size", 0) > 0) w.number("expert_latent", c.number("moe_latent_size"));
}

// A vision tower by its own configuration. Qwen's take images of any size: those of 32 x 32 patches, or as many as have
// positions, stand for them. Returns whether its family is known.
bool write_tower(ConfigWriter& w, const Config& v, long hidden) {
  const bool llama = v.family == "llama4_vision_model", clip = v.family == "clip_vision_model";
  const bool windows = v.family == "qwen2_5_vl", qwen = windows || v.family.find("qwen3_vl") == 0;
  if (!llama && !clip && !qwen && v.family != "siglip_vision_model") return false;
  const long layers = v.number(v.first({"depth", "num_hidden_layers"})), own = v.number("hidden_size");
  if (v.number("patch_size") < 1) v.fault("patch_size", "no patch", "1 to 100000");
  const long patch = std::clamp(v.number("patch_size"), 1L, 100000L),
             channels = std::min(1000L, v.number(v.first({"in_channels", "num_channels", "in_chans"}), 3));
  std::string text =
      fmt::format("\"name\": \"vision\", \"layers\": {}, \"hidden\": {}, \"ffn\": {}, \"heads\": {}", layers, own,
                  v.number("intermediate_size"), v.number(v.first({"num_heads", "num_attention_heads"})));
  const auto add = [&](const char* key, auto value) { text += fmt::format(", \"{}\": {}", key, value); };
  if (llama || qwen) add("rotary", true);
  long positions = v.number("num_position_embeddings", 0), merge = 1, side = 32;
  if (windows && layers <= 100000) {
    const std::set<long> full = v.numbers("fullatt_block_indexes");
    std::vector<std::string> kinds;
    for (long i = 0; i < layers; ++i) kinds.push_back(full.count(i) > 0 ? "attention+mlp" : "window+mlp");
    const long window = v.number("window_size") / patch;
    text += ", \"pattern\": " + Json(pattern_of(kinds)).dump() + ", \"mlp\": \"swiglu\", \"norm\": \"rmsnorm\"";
    add("window", window * window);
  }
  if (llama) merge = std::lround(1 / std::pow(v.share("pixel_shuffle_ratio", 0.5), 2));
  if (qwen) merge = std::min(1000000L, v.number("spatial_merge_size", 2) * v.number("spatial_merge_size", 2));
  if (!qwen) side = v.number("image_size") / patch, positions = side * side + (llama || clip ? 1 : 0);
  if (llama || clip) add("class_tokens", 1);
  if (llama || clip) add("end_norms", 2);
  add("tokens", positions > 0 ? positions : side * side);
  if (positions > 0) add("positions", positions);
  add("patch", channels * patch * patch * (qwen ? std::min(1000L, v.number("temporal_patch_size", 2)) : 1));
  if (merge > 1) add("merge", merge);
  if (llama)
    add("projector",
        fmt::format("[{}, {}]", v.number("projector_input_dim", 4096), v.number("projector_output_dim", 4096)));
  else
    add("projector", fmt::format("[{}]", qwen ? merge * own : hidden)), add("projector_biases", true);
  if (const size_t more = v.numbers("deepstack_visual_indexes").size(); more > 0) add("projectors", more + 1);
  w.line("\"towers\": [{" + text + "}]");
  return true;
}

void write_network(ConfigWriter& w, const Config& c, const std::string& name, const Config* vision) {
  const bool hybrid = c.family == "nemotron_h";
  const std::string letters = hybrid ? layer_letters(c, "hybrid_override_pattern", "layers_block_type") : "";
  const long layers = c.number("num_hidden_layers", hybrid ? static_cast<long>(letters.size()) : -1);
  const long heads = c.number("num_attention_heads");
  if (hybrid && letters.empty())
    c.fault("hybrid_override_pattern", "missing", "letters M, E, * and -, or names in layers_block_type");
  if (hybrid && static_cast<long>(letters.size()) != layers)
    c.fault("hybrid_override_pattern", fmt::format("{} layers, not {}", letters.size(), layers));
  w.text("name", name);
  w.number("layers", layers);
  bool experts = letters.find('E') != std::string::npos, windows = false;
  if (hybrid) {
    w.text("pattern", letters);
  } else if (layers > 0 && layers <= 100000) {
    const auto routed = expert_layers(c, layers), sees = window_layers(c, layers);
    std::vector<std::string> kinds;
    for (size_t i = 0; i < routed.size(); ++i) {
      kinds.push_back(std::string(sees[i] ? "window" : "attention") + (routed[i] ? "+experts" : "+mlp"));
      experts = experts || routed[i];
      windows = windows || sees[i];
    }
    if (experts || windows) w.text("pattern", pattern_of(kinds));
  }
  const long ffn = c.number(c.first({"intermediate_size_mlp", "intermediate_size"}));
  w.number("hidden", c.number("hidden_size"));
  w.number("ffn", ffn);
  write_attention(w, c, heads);
  w.number("vocabulary", c.number("vocab_size"));
  const std::string activation = c.text(c.first({"mlp_hidden_act", "hidden_act", "hidden_activation"}));
  if (activation == "relu2")
    w.text("mlp", "squared_relu");
  else if (!activation.empty() && activation != "silu" && activation != "swish")
    c.fault("hidden_act", fmt::format("no activation \"{}\"", activation), "silu or relu2");
  if (c.flag("tie_word_embeddings")) w.truth("tied_embeddings");
  if (windows) {
    w.number("window", c.number(c.first({"attention_chunk_size", "sliding_window"})));
    if (c.family == "llama4") w.truth("window_chunks");
  }
  if (letters.find('M') != std::string::npos)
    w.line(
        fmt::format("\"mamba\": {{\"heads\": {}, \"head_dim\": {}, \"state\": {}, \"groups\": {}, \"convolution\": {}, "
                    "\"chunk\": {}}}",
                    c.number("mamba_num_heads"), c.number("mamba_head_dim"), c.number("ssm_state_size"),
                    c.number("n_groups", 1), c.number("conv_kernel", 4), c.number("chunk_size", 128)));
  if (experts) write_experts(w, c, ffn);
  const bool blind = vision != nullptr && !write_tower(w, *vision, c.number("hidden_size"));
  const long further = c.number("num_nextn_predict_layers", 0);
  const std::string ahead = layer_letters(c, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  if (further > 0)
    w.line(fmt::format("\"next_token\": {{\"depth\": {}{}}}", further,
                       ahead.empty() ? "" : ", \"pattern\": " + Json(ahead).dump()));
  w.text("source", "config.json of " + name + (blind ? "; without its tower (" + vision->family + ")" : ""));
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

std::string network_of_hf_config(const std::string& text, const std::string& name, Faults& faults) {
  const auto json = parse_strict_json(without_infinities(text), name, faults);
  if (!json) return "";
  if (!json->is_object()) {
    faults.add({name, "", "no configuration of a model", "an object with \"model_type\""});
    return "";
  }
  // Models that also see keep their language model in a part of its own.
  const bool inner = json->contains("text_config") && json->at("text_config").is_object();
  Config c(inner ? json->at("text_config") : *json, name, faults, inner ? "/text_config" : "");
  const std::string family = c.family;
  static const std::map<std::string, const char*> same_keys = {
      {"llama4_text", "llama4"},         {"deepseek_v2", "deepseek_v3"}, {"kimi_k2", "deepseek_v3"},
      {"qwen2_5_vl", "qwen2"},           {"qwen2_5_vl_text", "qwen2"},   {"qwen3_vl_text", "qwen3"},
      {"qwen3_vl_moe_text", "qwen3_moe"}};
  if (const auto at = same_keys.find(family); at != same_keys.end()) c.family = at->second;
  static const std::set<std::string> known = {"llama",       "mistral", "mixtral",    "qwen2",  "qwen3", "qwen3_moe",
                                              "deepseek_v3", "gpt_oss", "nemotron_h", "llama4", "olmo2", "olmo3"};
  if (known.count(c.family) == 0) {
    c.fault("model_type", fmt::format("unknown family \"{}\"", printable(c.family)), kFamilies);
    return "";
  }
  const size_t before = faults.size();
  const Config whole(*json, name, faults);
  const std::string path = whole.text("_name_or_path"), called = path.empty() ? whole.family : path;
  std::optional<Config> vision;
  if (json->contains("vision_config") && json->at("vision_config").is_object()) {
    vision.emplace(json->at("vision_config"), name, faults, "/vision_config");
    if (vision->family.empty()) vision->family = whole.family;
  }
  ConfigWriter w;
  write_network(w, c, called.empty() ? family : called, vision ? &*vision : nullptr);
  if (faults.size() == before) check_written(w.file(), name, faults);
  return faults.size() == before ? w.file() : "";
}

}  // namespace tw
