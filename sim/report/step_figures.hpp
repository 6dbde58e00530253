// Figures of one training step: memory through it, its kernels under the accelerator's roof, the load of the links.
#pragma once

#include <string>

#include "report/figures.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace tw::report {

// FOLDER/memory-NAME.{csv,svg,png}: bytes by part of a GPU of the stage that needs most. Of very many moments those
// with the most and the least in each of some hundred stretches.
Figures memory_figure(const std::string& folder, const Result& result);
// FOLDER/roofline-NAME.*: FLOP/s against FLOPs for each byte of the kernels that have FLOPs.
Figures roofline_figure(const std::string& folder, const Scenario& scenario, const Result& result);
// FOLDER/link-load-NAME.*: share of the links' bandwidth by class; not for a single class.
Figures link_load_figure(const std::string& folder, const Result& result);

// The moments of a step as CSV: time_ms, stage, then bytes by part; without the header on request.
std::string memory_csv(const Result& result);
// The parts at the step's begin, its peak and its end, and at even times between, for people.
std::string memory_table(const Result& result);

}  // namespace tw::report
