#include "foreign/foreign.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "foreign/lines.hpp"
#include "workload/hf_config.hpp"

namespace tw::foreign {
namespace {

bool is_hf_config(const Source& s) {
  return contains(s.text, "\"model_type\"");
}

Reading read_hf_config(const Source& s, const Options&, Faults& faults) {
  Reading reading;
  reading.text = network_of_hf_config(s.text, s.name, faults, &reading.said);
  return reading;
}

}  // namespace

const Kind hf_config_kind{"config.json of a Hugging Face repository", "a network", is_hf_config, read_hf_config};

// The kinds, each in a file of its own.
extern const Kind nccl_topology_kind, slurm_topology_kind, astra_network_kind, cables_kind, nccl_tests_kind,
    prometheus_kind, power_csv_kind;

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table{hf_config_kind,     nccl_topology_kind,  nccl_tests_kind, prometheus_kind,
                                       astra_network_kind, slurm_topology_kind, cables_kind,     power_csv_kind};
  return table;
}

std::string kind_names() {
  std::string names;
  for (const Kind& kind : kinds()) names += (names.empty() ? "" : ", ") + std::string(kind.name);
  return names;
}

namespace {

// Names of a file go into JSON, which is UTF-8. False, and a fault with its line, where the file is not.
bool is_utf8(const Source& source, Faults& faults) {
  std::istringstream lines(source.text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      (void)nlohmann::json(line).dump();
    } catch (const nlohmann::json::exception&) {
      faults.add({source.name, "", "line " + std::to_string(number) + " is not UTF-8 text", ""});
      return false;
    }
  }
  return true;
}

}  // namespace

Reading read_any(const Source& source, const Options& options, Faults& faults) {
  if (!is_utf8(source, faults)) return {};
  if (!options.columns.empty()) return power_csv_kind.read(source, options, faults);  // only its columns are mapped
  for (const Kind& kind : kinds())
    if (kind.fits(source)) return kind.read(source, options, faults);
  faults.add({source.name, "", trimmed(source.text).empty() ? "is empty" : "is a file of no kind that can be read",
              "known: " + kind_names()});
  return {};
}

}  // namespace tw::foreign
