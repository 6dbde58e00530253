#include "workload/hf_keys.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace tw {
namespace {

using Json = nlohmann::json;

// What the classes of huggingface/transformers begin with (models/*/configuration_*.py): keys with these values are
// left out where a configuration is a part of another.
const std::map<std::string, std::map<std::string, long>>& hf_defaults() {
  static const std::map<std::string, long> qwen = {{"vocab_size", 151936},       {"hidden_size", 4096},
                                                   {"intermediate_size", 22016}, {"num_hidden_layers", 32},
                                                   {"num_attention_heads", 32},  {"num_key_value_heads", 32},
                                                   {"sliding_window", 4096},     {"max_window_layers", 28}};
  static const std::map<std::string, long> base = {
      {"hidden_size", 768}, {"intermediate_size", 3072}, {"num_hidden_layers", 12}, {"num_attention_heads", 12}};
  static const auto with = [](std::map<std::string, long> keys, const std::map<std::string, long>& further) {
    keys.insert(further.begin(), further.end());
    return keys;
  };
  static const std::map<std::string, std::map<std::string, long>> table = {
      {"llama",
       {{"vocab_size", 32000},
        {"hidden_size", 4096},
        {"intermediate_size", 11008},
        {"num_hidden_layers", 32},
        {"num_attention_heads", 32}}},
      {"mistral",
       {{"vocab_size", 32000},
        {"hidden_size", 4096},
        {"intermediate_size", 14336},
        {"num_hidden_layers", 32},
        {"num_attention_heads", 32},
        {"num_key_value_heads", 8},
        {"sliding_window", 4096}}},
      {"qwen2", qwen},
      {"qwen3", with(qwen, {{"head_dim", 128}})},
      {"gemma3_text",
       {{"vocab_size", 262208},
        {"hidden_size", 2304},
        {"intermediate_size", 9216},
        {"num_hidden_layers", 26},
        {"num_attention_heads", 8},
        {"num_key_value_heads", 4},
        {"head_dim", 256},
        {"sliding_window", 4096}}},
      {"clip_vision_model", with(base, {{"image_size", 224}, {"patch_size", 32}})},
      {"siglip_vision_model", with(base, {{"image_size", 224}, {"patch_size", 16}})}};
  return table;
}

}  // namespace

HfConfig::HfConfig(const Json& json, std::string file, Faults& faults, std::string at, const std::string& otherwise)
    : json_(json), file_(std::move(file)), at_(std::move(at)), faults_(faults) {
  named = text("model_type");
  if (named.empty()) named = otherwise;
  family = named;
}

bool HfConfig::has(const char* key) const {
  return json_.contains(key) && !json_.at(key).is_null();
}

long HfConfig::number(const char* key, long otherwise) const {
  if (!has(key)) {
    const auto whose = hf_defaults().find(at_.empty() || json_.contains(key) ? "" : named);
    if (whose != hf_defaults().end())
      if (const auto at = whose->second.find(key); at != whose->second.end()) return at->second;
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

bool HfConfig::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!json_.at(key).is_boolean()) fault(key, "neither true nor false", "true or false");
  return json_.at(key).is_boolean() && json_.at(key).get<bool>();
}

double HfConfig::share(const char* key, double otherwise) const {
  if (!has(key)) return otherwise;
  const double value = json_.at(key).is_number() ? json_.at(key).get<double>() : 0;
  if (value > 0 && value <= 1) return value;
  return fault(key, "no share", "above 0 to 1"), otherwise;
}

std::string HfConfig::text(const char* key) const {
  if (!has(key)) return "";
  if (!json_.at(key).is_string()) fault(key, "no text", "a text");
  return json_.at(key).is_string() ? json_.at(key).get<std::string>() : "";
}

std::vector<std::string> HfConfig::texts(const char* key) const {
  std::vector<std::string> list;
  if (has(key) && !json_.at(key).is_array()) fault(key, "no list", "a list of texts");
  if (has(key) && json_.at(key).is_array())
    for (const Json& entry : json_.at(key)) list.push_back(entry.is_string() ? entry.get<std::string>() : "");
  return list;
}

std::set<long> HfConfig::numbers(const char* key) const {
  std::set<long> list;
  if (has(key) && !json_.at(key).is_array()) fault(key, "no list", "a list of whole numbers");
  if (has(key) && json_.at(key).is_array())
    for (const Json& entry : json_.at(key))
      if (entry.is_number_integer()) list.insert(entry.get<long>());
  return list;
}

bool HfConfig::is(std::initializer_list<const char*> families) const {
  return std::find(families.begin(), families.end(), family) != families.end();
}

const char* HfConfig::first(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    if (has(key)) return key;
  return *keys.begin();
}

void HfConfig::fault(const std::string& key, const std::string& what, const std::string& allowed) const {
  faults_.add({file_, at_ + "/" + key, what, allowed});
}

void HfWriter::number(const char* key, long value) {
  line(fmt::format("\"{}\": {}", key, value));
}

void HfWriter::text(const char* key, const std::string& value) {
  line(fmt::format("\"{}\": {}", key, hf_quoted(value)));
}

std::string HfWriter::file() const {
  std::string out = "{\n";
  for (size_t i = 0; i < lines_.size(); ++i) out += lines_[i] + (i + 1 < lines_.size() ? ",\n" : "\n");
  return out + "}\n";
}

std::string hf_quoted(const std::string& text) {
  return Json(text).dump();
}

std::string hf_pattern(const std::vector<std::string>& layers) {
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

}  // namespace tw
