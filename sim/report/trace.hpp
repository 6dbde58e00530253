// One training step as a trace that chrome://tracing and Perfetto show.
#pragma once

#include <string>
#include <vector>

#include "step/step_model.hpp"

namespace tw::report {

// Chrome trace events: a process a pipeline stage, a thread a stream (device, network, host); times in microseconds.
std::string chrome_trace(const std::string& scenario, double step_s, std::vector<Span> spans);

}  // namespace tw::report
