// What measurements call the numbers of a result.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/outputs.hpp"
#include "study/result.hpp"

namespace tw {
namespace {

// Names that rows of suites and of scenario references may use for a key, and what people read for them. All other keys
// go by their path; quantities of laboratories have none.
struct Quantity {
  const char *name, *path, *words;
};
constexpr Quantity kQuantities[] = {
    {"step_s", "step.time_s", "training step"},
    {"eval_s", "run.eval_s", "one evaluation"},
    {"eval_first_s", "run.eval_first_s", "first evaluation"},
    {"first_step_s", "run.first_step_s", "first step"},
    {"run_s", "run.time_to_train_s.mean", "time to train"},
    {"olympic_s", "run.time_to_train_s.olympic", "time to train, olympic mean"},
    {"official_s", "run.time_to_train_s.official", "MLPerf score"},
    {"samples", "run.samples", "samples to target"},
    {"steady_w", "power.node_dc_w.steady", "node DC power, steady training"},
    {"train_w", "power.train_w", "node DC power while training"},
    {"node_dc_w", "power.node_dc_w.mean", "node DC power, mean"},
    {"idle_w", "power.node_dc_w.idle", "node DC power, idle"},
    {"wait_w", "power.wait_w", "node DC power, waiting"},
    {"eval_w", "power.eval_w", "node DC power, evaluating"},
    {"gpu_w", "power.gpu_w", "GPU power"},
    {"network_w", "power.network_w", "network power of the job"},
    {"dc_j", "energy.total_dc_j", "energy at DC, run window"},
    {"ac_j", "energy.total_ac_j", "energy at AC, run window"},
    {"facility_j", "energy.facility_j", "energy of the building, run window"},
    {"dc_mlperf_j", "energy_mlperf_v4_0.total_dc_j", "energy at DC, MLPerf window"},
    {"ac_mlperf_j", "energy_mlperf_v4_0.total_ac_j", "energy at AC, MLPerf window"},
    {"facility_mlperf_j", "energy_mlperf_v4_0.facility_j", "energy of the building, MLPerf window"},
    {"kg_co2e", "carbon.kg_co2e", "CO2e, run window"},
    {"kg_co2e_mlperf", "carbon.kg_co2e_mlperf_v4_0", "CO2e, MLPerf window"},
    {"memory_bytes", "memory.per_gpu_bytes", "memory of a GPU"},
    {"mfu", "step.mfu", "model FLOPs utilisation"},
    {"days_per_1T_tokens", "run.days_per_1T_tokens", "days for 1 trillion tokens"},
    {"bus_loss_w", "", "rectifier loss of a bus"},
    {"phase_w", "", "power of a phase"},
    {"kernel_s", "", "kernel time"},
    {"collective_s", "", "collective time"},
};

}  // namespace

Maybe result_quantity(const Result& result, const std::string& quantity, const std::string& rule) {
  if (quantity == "run_s" && rule == "olympic") return result.run.time_to_train_s.olympic;
  std::string path = quantity;
  for (const Quantity& q : kQuantities)
    if (quantity == q.name && *q.path != '\0') path = q.path;
  if (quantity == "network_w" && !rule.empty()) path = "power.network_w_by_rule." + rule;
  return outputs<Result>().number(&result, path);
}

const std::vector<std::pair<std::string, std::string>>& quantity_units() {
  static const auto table = [] {
    std::vector<std::pair<std::string, std::string>> list;
    const std::vector<OutputKey> keys = outputs<Result>().keys();
    for (const Quantity& q : kQuantities)
      for (const OutputKey& key : keys)
        if (key.path == q.path) list.emplace_back(q.name, key.unit);
    return list;
  }();
  return table;
}

std::optional<std::string> quantity_unit(const std::string& quantity) {
  for (const auto& [name, unit] : quantity_units())
    if (name == quantity) return unit;
  for (const OutputKey& key : outputs<Result>().keys())
    if (key.path == quantity && !key.unit.empty()) return key.unit;
  return std::nullopt;
}

std::string quantity_words(const std::string& quantity) {
  for (const Quantity& q : kQuantities)
    if (quantity == q.name) return q.words;
  std::string words = quantity;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::vector<std::string> reference_warnings(const Result& result) {
  Maybe facility_j, carbon_kg;
  for (const ReferenceRow& row : result.reference.rows) {
    if (row.quantity == "facility_mlperf_j") facility_j = row.measured;
    if (row.quantity == "kg_co2e_mlperf") carbon_kg = row.measured;
  }
  const Maybe factor = result.carbon.intensity_kg_per_kwh;
  if (!facility_j || !carbon_kg || !factor || *facility_j <= 0) return {};
  const double kwh = *facility_j / joules_per_kwh;
  const double implied = *carbon_kg / kwh;
  // Published to three digits: a rounding of the mass or of the energy moves the factor by less than half a percent.
  if (std::abs(implied / *factor - 1) < 0.005) return {};
  return {
      fmt::format("the published carbon, {:.2f} kg CO2e for {:.3f} kWh, implies {:.3f} kg/kWh and does not follow from "
                  "the site's own {:.3f} kg/kWh, which gives {:.3f} kg; results here use the site's factor",
                  *carbon_kg, kwh, implied, *factor, kwh * *factor)};
}

}  // namespace tw
