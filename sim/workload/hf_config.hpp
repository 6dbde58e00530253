// Networks from configurations as Hugging Face repositories publish them (config.json).
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace tw {

// What `model_type` may say, for messages and help.
std::string hf_families();

// The text of a network file. `name` of the file is used in faults, and where the configuration names no model. What a
// configuration asks for and a network cannot say is a fault, and so is a missing key; what is left out is `said`.
std::string network_of_hf_config(const std::string& text, const std::string& name, Faults& faults,
                                 std::vector<std::string>* said = nullptr);

}  // namespace tw
