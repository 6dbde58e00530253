// trainwatt timeline: one training step as a trace.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "network/collective.hpp"
#include "network/process.hpp"
#include "report/trace.hpp"
#include "run/run_model.hpp"
#include "step/shape_warnings.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "topology/placement.hpp"

namespace tw::cli {
namespace {

struct TimelineArguments {
  std::string scenario, output;
  std::vector<std::string> set;
};

// The trace of a step without noise behind what is to be said of it, a line each, and an empty one; runs in a child,
// where the engine lives.
std::string trace_of(const Scenario& s) {
  const RunInputs in = run_inputs(s);
  const Fabric fabric = build_fabric(s.cluster);
  const auto collectives = step_collectives(in.step, fabric, true);
  const StepNetwork network = build_step_network(
      in.step, collectives, place(fabric, s.placement, s.plan.nodes + s.plan.evaluation_nodes), 1, {}, false);
  const auto engine = network::fluid_engine(network.links, network.classes);
  const RunModel model = build_run_model(in, *engine, network, 1);
  const NodeType& node = s.cluster.node;
  report::TraceDetail detail;
  detail.stages = s.plan.pp;
  detail.visits = visit_traces(in.step, network.exchange, model.slowdown);
  detail.power = step_power(node, model.spans, model.quiet, effective_limit(node, std::nullopt),
                            s.plan.nodes + s.plan.evaluation_nodes > 1, limiter_sees_directions(model));
  if (s.network) {
    const auto work = memory_work(s.plan);
    const auto layers = layers_of_chunks(*s.network, s.plan);
    for (int stage = 0; stage < s.plan.pp; ++stage)
      detail.memory.push_back(step_memory(
          memory_curves(*s.network, *s.training, s.plan, s.software, layers, work[static_cast<size_t>(stage)]),
          model.spans, stage, model.quiet.time_s));
  }
  std::string said;
  for (const std::string& warning : shape_warnings(in.step)) said += warning + "\n";
  for (const std::string& remark : collectives->remarks()) said += remark + "\n";
  return said + "\n" + report::chrome_trace(s.name, model.quiet.time_s, model.spans, detail);
}

ExitCode run(const TimelineArguments& a, Console& console) {
  const LoadedScenario loaded = load_scenario(a.scenario, a.set, console.faults);
  console.faults.throw_if_any();
  const ChildResult trace = in_child([&] { return trace_of(loaded.scenario); }, kDeadline_s);
  if (!trace.error.empty()) {
    console.error(fmt::format("{}: {}", a.scenario, trace.error));
    return trace.code;
  }
  for (const std::string& warning : loaded.warnings) console.message("warning: " + warning);
  size_t at = 0;
  for (size_t end; (end = trace.value.find('\n', at)) != at; at = end + 1)
    console.message("warning: " + trace.value.substr(at, end - at));
  write_output(console, a.output, trace.value.substr(at + 1));
  return ExitCode::done;
}

}  // namespace

Command timeline_command() {
  const auto a = std::make_shared<TimelineArguments>();
  return {
      "timeline",
      "Writes one training step as a trace for chrome://tracing or Perfetto: visits, kernels, exchanges, watts, memory",
      "  trainwatt timeline scenarios/smc-llama2-70b-lora-8n.json -o step.json",
      {argument("scenario", "FILE", "scenario file", &a->scenario),
       required(output_file("-o,--output", "trace file; - is stdout", &a->output)), overrides("the scenario", &a->set)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
