// How many nodes of a scenario's job the power of a hall carries.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "study/scenario.hpp"

namespace tw {

struct HallFitOptions {
  double facility_w = 0;
  double derate = 0.8;    // share of it that may be drawn continuously (US National Electrical Code 210.20)
  double deadline_s = 0;  // of one simulation
  uint64_t seed = 1;
};

// One way of counting. The hall carries `nodes`; the next number that the plan divides would be beyond it.
struct HallCount {
  std::string by;        // "simulated peak", "nameplate"
  double limit_w = 0;    // the whole power, or its derated share
  int nodes = 0;         // 0: not even the fewest
  double peak_w = 0;     // of the building with them, switches and cooling included
  double network_w = 0;  // of it, before cooling
  int gbs = 0;
  std::string bound;  // "facility power", "nodes of the cluster", or why the next would not run
};

struct HallFit {
  std::string scenario;
  int step = 1;  // nodes of one replica: what numbers are multiples of
  double node_peak_w = 0, node_nameplate_w = 0;
  size_t simulated = 0;
  std::vector<HallCount> answers;
};

// The plan keeps its tensor, pipeline and context parallelism and its accumulation: data parallelism and the batch
// follow the nodes. Nameplate: boards at their limit, hosts, fans and adapters at full load, switches at nameplate.
// Throws SimulationError when not one number of nodes can be simulated, InputError where a network rule leaves the
// power of the switches open.
HallFit fit_hall(const LoadedScenario& base, const std::vector<std::string>& overrides, const HallFitOptions& options,
                 const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
