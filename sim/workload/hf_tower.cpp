#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "workload/hf_keys.hpp"

namespace tw {

bool write_hf_tower(HfWriter& w, const HfConfig& v, long hidden) {
  const bool llama = v.family == "llama4_vision_model", clip = v.family == "clip_vision_model";
  const bool windows = v.family == "qwen2_5_vl",
             qwen = windows || v.family.find("qwen3_vl") == 0 || v.family.find("qwen3_5") == 0;
  if (!llama && !clip && !qwen && v.family != "siglip_vision_model") return false;
  const long layers = v.number(qwen ? "depth" : "num_hidden_layers"), own = v.number("hidden_size");
  if (v.number("patch_size") < 1) v.fault("patch_size", "no patch", "1 to 100000");
  const long patch = std::clamp(v.number("patch_size"), 1L, 100000L),
             channels = std::min(1000L, v.number(v.first({"in_channels", "num_channels", "in_chans"}), 3));
  // The kinds of GELU cost the same.
  static const std::set<std::string> gelus = {"", "gelu", "quick_gelu", "gelu_pytorch_tanh", "gelu_new", "gelu_fast"};
  const std::string activation = v.text("hidden_act");
  if (windows ? !activation.empty() && activation != "silu" : gelus.count(activation) == 0)
    v.fault("hidden_act", fmt::format("no activation \"{}\" of such a tower", printable(activation)),
            windows ? "silu" : "gelu, quick_gelu, gelu_pytorch_tanh, gelu_new or gelu_fast");
  std::string text =
      fmt::format("\"name\": \"vision\", \"layers\": {}, \"hidden\": {}, \"ffn\": {}, \"heads\": {}", layers, own,
                  v.number("intermediate_size"), v.number(qwen ? "num_heads" : "num_attention_heads"));
  const auto add = [&](const char* key, auto value) { text += fmt::format(", \"{}\": {}", key, value); };
  if (llama || qwen) add("rotary", true);
  long positions = v.number("num_position_embeddings", 0), merge = 1, side = 32;
  if (windows && layers <= 100000) {
    const std::set<long> full = v.numbers("fullatt_block_indexes");
    std::vector<std::string> kinds;
    for (long i = 0; i < layers; ++i) kinds.push_back(full.count(i) > 0 ? "attention+mlp" : "window+mlp");
    const long window = v.number("window_size") / patch;
    text += ", \"pattern\": " + hf_quoted(hf_pattern(kinds)) + ", \"mlp\": \"swiglu\", \"norm\": \"rmsnorm\"";
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

}  // namespace tw
