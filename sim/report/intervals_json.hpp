// Intervals beside the quantities that they belong to.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "study/result.hpp"

namespace tw::report {

// Adds "interval": {"level", "low", "high", "class", "rows"} to step, run.time_to_train_s, power.node_dc_w and energy
// (of total_dc_j) of a result.
void put_intervals(nlohmann::ordered_json& result, const Result& r);

}  // namespace tw::report
