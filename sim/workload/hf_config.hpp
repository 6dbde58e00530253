// Networks from configurations as Hugging Face repositories publish them (config.json).
#pragma once

#include <string>

#include "core/error.hpp"

namespace tw {

// The text of a network file. `name` of the file is used in faults, and where the configuration names no model.
// Understood are the families llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, kimi_k2,
// gpt_oss, nemotron_h, llama4, olmo2 and olmo3; what a configuration asks for and a network cannot say is a fault, and
// so is a missing key.
std::string network_of_hf_config(const std::string& text, const std::string& name, Faults& faults);

}  // namespace tw
