// One strict reading of JSON text: // and /* */ comments allowed; duplicate keys, nesting beyond 64, numbers that
// overflow, and syntax errors refused with line and column.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/error.hpp"

namespace tw {

// Null when faults were added.
std::unique_ptr<nlohmann::json> parse_strict_json(const std::string& text, const std::string& name, Faults& faults);

}  // namespace tw
