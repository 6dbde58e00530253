#include "report/words.hpp"

#include <algorithm>

#include "report/output_keys.hpp"

namespace tw::report {
namespace {

struct Word {
  const char *name, *words;
};
// Quantities of the result contract (docs/reference/outputs.md says how each is counted).
constexpr Word kWords[] = {{"step_s", "training step"},
                           {"eval_s", "one evaluation"},
                           {"eval_first_s", "first evaluation"},
                           {"first_step_s", "first step"},
                           {"run_s", "time to train"},
                           {"olympic_s", "time to train, olympic mean"},
                           {"official_s", "MLPerf score"},
                           {"samples", "samples to target"},
                           {"steady_w", "node DC power, steady training"},
                           {"train_w", "node DC power while training"},
                           {"node_dc_w", "node DC power, mean"},
                           {"idle_w", "node DC power, idle"},
                           {"wait_w", "node DC power, waiting"},
                           {"eval_w", "node DC power, evaluating"},
                           {"gpu_w", "GPU power"},
                           {"network_w", "network power of the job"},
                           {"dc_j", "energy at DC, run window"},
                           {"ac_j", "energy at AC, run window"},
                           {"facility_j", "energy of the building, run window"},
                           {"dc_mlperf_j", "energy at DC, MLPerf window"},
                           {"ac_mlperf_j", "energy at AC, MLPerf window"},
                           {"facility_mlperf_j", "energy of the building, MLPerf window"},
                           {"kg_co2e", "CO2e, run window"},
                           {"kg_co2e_mlperf", "CO2e, MLPerf window"},
                           {"memory_bytes", "memory of a GPU"},
                           {"mfu", "model FLOPs utilisation"},
                           {"bus_loss_w", "rectifier loss of a bus"},
                           {"phase_w", "power of a phase"},
                           {"kernel_s", "kernel time"},
                           {"collective_s", "collective time"},
                           {"days_per_1T_tokens", "days for 1 trillion tokens"}};

std::string blanks(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::string quantity_words(const std::string& quantity) {
  for (const Word& w : kWords)
    if (quantity == w.name) return w.words;
  return blanks(quantity);
}

std::string key_words(const std::string& path) {
  const OutputKey* const key = find_output_key(path);
  if (key != nullptr && !key->meaning.empty()) return key->meaning;
  return blanks(path.substr(path.rfind('.') == std::string::npos ? 0 : path.rfind('.') + 1));
}

}  // namespace tw::report
