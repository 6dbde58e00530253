#include "report/intervals_json.hpp"

#include <nlohmann/json.hpp>

namespace tw::report {

void put_intervals(nlohmann::ordered_json& result, const Result& r) {
  for (const auto& [key, place] : {std::pair{"step", "/step"},
                                   {"time_to_train", "/run/time_to_train_s"},
                                   {"node_dc_w", "/power/node_dc_w"},
                                   {"energy", "/energy"}}) {
    const auto found = r.intervals.find(key);
    const nlohmann::ordered_json::json_pointer at(place);
    if (found == r.intervals.end() || !result.contains(at)) continue;
    const Interval& i = found->second;
    result[at]["interval"] = {
        {"level", i.level}, {"low", i.low}, {"high", i.high}, {"class", i.path}, {"rows", i.rows}};
  }
}

}  // namespace tw::report
