// Which layers of a configuration hold experts, windows or gated delta rules, by the families' own rules.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "workload/hf_keys.hpp"

namespace tw {
namespace {

bool sliding(const std::string& type) {
  return type == "sliding_attention" || type == "chunked_attention";
}

}  // namespace

std::vector<bool> hf_expert_layers(const HfConfig& c, long layers) {
  std::vector<bool> experts(static_cast<size_t>(layers), false);
  const std::set<long> dense = c.numbers("mlp_only_layers"), listed = c.numbers("moe_layers");
  const long step =
      c.family == "llama4" ? c.number("interleave_moe_layer_step", 1) : c.number("decoder_sparse_step", 1);
  for (long i = 0; i < layers; ++i) {
    bool here = false;
    if (c.is({"mixtral", "gpt_oss", "minimax_m2"})) here = true;
    if (c.is({"qwen2_moe", "qwen3_moe"}) || (c.family == "qwen3_next" && c.number("num_experts", 0) > 0))
      here = dense.count(i) == 0 && step > 0 && (i + 1) % step == 0;
    if (c.is({"deepseek_v3", "glm4_moe"}))
      here = i >= c.number("first_k_dense_replace", 0) && i % std::max(1L, c.number("moe_layer_freq", 1)) == 0;
    if (c.family == "llama4") here = listed.empty() ? step > 0 && (i + 1) % step == 0 : listed.count(i) > 0;
    experts[static_cast<size_t>(i)] = here;
  }
  return experts;
}

std::vector<bool> hf_delta_layers(const HfConfig& c, long layers) {
  std::vector<bool> delta(static_cast<size_t>(layers), false);
  if (c.family != "qwen3_next") return delta;
  const auto types = c.texts("layer_types");
  if (!types.empty() && static_cast<long>(types.size()) != layers)
    return c.fault("layer_types", fmt::format("{} layers, not {}", types.size(), layers)), delta;
  const long interval = std::max(1L, c.number("full_attention_interval", 4));
  for (long i = 0; i < layers; ++i) {
    const std::string type = types.empty() ? "" : types[static_cast<size_t>(i)];
    if (!type.empty() && type != "linear_attention" && type != "full_attention")
      return c.fault("layer_types", fmt::format("no layer \"{}\"", printable(type)),
                     "linear_attention or full_attention"),
             delta;
    delta[static_cast<size_t>(i)] = type.empty() ? (i + 1) % interval != 0 : type == "linear_attention";
  }
  return delta;
}

std::vector<bool> hf_window_layers(const HfConfig& c, long layers) {
  std::vector<bool> windows(static_cast<size_t>(layers), false);
  if (c.family == "qwen3_next") return windows;
  const auto types = c.texts("layer_types");
  if (!types.empty() && static_cast<long>(types.size()) != layers)
    c.fault("layer_types", fmt::format("{} layers, not {}", types.size(), layers));
  for (const std::string& type : types)
    if (!sliding(type) && type != "full_attention")
      return c.fault("layer_types", fmt::format("no layer \"{}\"", printable(type)),
                     "full_attention, sliding_attention or chunked_attention"),
             windows;
  const long full = c.family == "llama4" ? c.number("no_rope_layer_interval", 4) : 0;
  const bool qwen = c.is({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"});
  const long every = c.family == "gemma3" ? c.number("sliding_window_pattern", 6) : 2;
  if (qwen && (!c.flag("use_sliding_window") || c.number("sliding_window", 0) == 0)) return windows;
  for (long i = 0; i < layers; ++i) {
    bool here = false;
    if (static_cast<long>(types.size()) == layers)
      here = sliding(types[static_cast<size_t>(i)]);
    else if (c.family == "llama4")
      here = full > 0 && (i + 1) % full != 0;
    else if (c.named == "phi3")  // beyond the sequences that it is made for: none
      here = c.number("sliding_window", 0) > 0 &&
             c.number("sliding_window", 0) < c.number("max_position_embeddings", 131072);
    else if (c.family == "mistral" || c.family == "mixtral")
      here = c.number("sliding_window", 0) > 0;
    else if (c.family == "gpt_oss")
      here = i % 2 == 0;
    else if (c.is({"gemma2", "gemma3"}))
      here = every > 0 && (i + 1) % every != 0;
    else if (qwen)
      here = i >= c.number("max_window_layers", 28);
    windows[static_cast<size_t>(i)] = here;
  }
  return windows;
}

std::string hf_layer_letters(const HfConfig& c, const char* letters, const char* names) {
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

}  // namespace tw
