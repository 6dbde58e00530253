// One training step as a trace that chrome://tracing and Perfetto show.
#pragma once

#include <string>
#include <vector>

#include "power/step_power.hpp"
#include "step/step_memory.hpp"
#include "step/visit_trace.hpp"

namespace tw::report {

// What a trace shows beside the spans of a step.
struct TraceDetail {
  int stages = 1;
  VisitTraces visits;              // kernels and exchanges inside each visit, of the stages' slots; empty: none
  StepPower power;                 // of a node; empty: none
  std::vector<StepMemory> memory;  // of a GPU of some stages
};

// Chrome trace events: a process a pipeline stage, a thread a stream (device, network, host; kernels and each kind of
// exchange); watts of a node and bytes of a GPU of each stage as counters; times in microseconds. Where kernels and
// exchanges are more than some ten thousand, those of the first micro-batch stand for all (otherData.detail says
// which). They are placed as in the visit alone, stretched to its length in the step.
std::string chrome_trace(const std::string& scenario, double step_s, std::vector<Span> spans,
                         const TraceDetail& detail = {});

}  // namespace tw::report
