#include "report/result_json.hpp"

#include <nlohmann/json.hpp>

#include "core/outputs.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;  // keys in the order of the contract

json result_object(const Result& result) {
  if (!result.error.empty()) return {{"scenario", result.scenario}, {"error", result.error}};
  return described_json(result);
}

// "interval" beside the quantities that have one: step, run.time_to_train_s, power.node_dc_w, energy (total_dc_j).
void put_intervals(json& result, const Result& r) {
  for (const auto& [key, place] : {std::pair{"step", "/step"},
                                   {"time_to_train", "/run/time_to_train_s"},
                                   {"node_dc_w", "/power/node_dc_w"},
                                   {"energy", "/energy"}}) {
    const auto found = r.intervals.find(key);
    const json::json_pointer at(place);
    if (found == r.intervals.end() || !result.contains(at)) continue;
    const Interval& i = found->second;
    result[at]["interval"] = {
        {"level", i.level}, {"low", i.low}, {"high", i.high}, {"class", i.path}, {"rows", i.rows}};
  }
}

}  // namespace

std::string json_text(const json& j) {
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string results_json(const std::vector<Outcome>& outcomes) {
  json all = json::array();
  for (const Outcome& o : outcomes) {
    all.push_back(result_object(o.result));
    if (o.result.error.empty()) put_intervals(all.back(), o.result);
  }
  return json_text(all);
}

std::string point_json(const Result& result) {
  json one = result_object(result);
  one["power"].erase("per_node");  // a line a node in every point tells nobody anything
  return one.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string suites_json(const std::vector<SuiteOutcome>& suites) {
  json all = json::array();
  for (const SuiteOutcome& suite : suites) all.push_back(described_json(suite));
  return json_text({{"suites", all}});
}

}  // namespace tw::report
