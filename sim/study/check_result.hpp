// Whether a result of run --json can be: parts that add up, shares that are shares, nothing below zero.
#pragma once

#include <optional>
#include <string>

#include "core/error.hpp"

namespace tw {

// Results in `text`, those that failed included; what cannot be is added to `faults`. Nothing when it holds no results
// (a scenario, say).
std::optional<size_t> check_results(const std::string& text, const std::string& file, Faults& faults);

}  // namespace tw
