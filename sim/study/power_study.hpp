// The power side of a simulated run: failures of its supply, the grid's view, hourly carbon and cost.
#pragma once

#include "run/run_model.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

// What the scenario's power failures make of a timeline, one after the other.
struct SuppliedRun {
  Timeline timeline;
  PowerOptions options;  // for integrate_power()
  std::vector<std::string> failures;
  bool stopped = false;
  double lost_s = 0;
};

// Takes the timeline out of `run`. Of a run that a failure stops, the figures become those up to that moment. Throws
// InputError when a failure names a bus or stage that the job does not use.
SuppliedRun supply(const Scenario& scenario, SimulatedRun& run, uint64_t seed);

// Throws DoesNotFit, with place and time, when a part of the supply is loaded beyond its rating, and InputError when an
// hourly series does not cover the run. `energy` is that of window run.
GridResult grid_view(const LoadedScenario& loaded, const SuppliedRun& supplied, const PowerRun& power,
                     const RunModel& model, const EnergyResult& energy, double network_w, double samples,
                     double step_s);

}  // namespace tw
