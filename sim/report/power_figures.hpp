// Figures of power: through one step by component, and the flow of energy from the grid to what the GPUs do.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace tw::report {

// FOLDER/step-power-NAME.{csv,svg,png}: stacked watts of a node through one training step.
Figures step_power_figure(const std::string& folder, const Result& result);

// FOLDER/energy-flow-NAME.{csv,svg,png}: bands as wide as the joules they carry, window run. Every split adds up to
// what comes in. Nothing is drawn where the network's share is undefined.
Figures energy_flow_figure(const std::string& folder, const Result& result);

// The splits of the flow, for the figure and for tests: what goes from where to where.
struct EnergyFlow {
  std::string from, to;
  double joules = 0;
};
std::vector<EnergyFlow> energy_flows(const Result& result);

}  // namespace tw::report
