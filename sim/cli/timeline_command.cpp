// trainwatt timeline: one training step as a trace.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "network/process.hpp"
#include "report/trace.hpp"
#include "run/run_model.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "topology/placement.hpp"

namespace tw::cli {
namespace {

struct TimelineArguments {
  std::string scenario, output;
  std::vector<std::string> set;
};

// The trace of a step without noise; runs in a child, where the engine lives.
std::string trace_of(const Scenario& s) {
  const RunInputs in = run_inputs(s);
  const Fabric fabric = build_fabric(s.cluster);
  const StepNetwork network =
      build_step_network(in.step, fabric, place(fabric, s.placement, s.plan.nodes + s.plan.evaluation_nodes), 1);
  const auto engine = network::fluid_engine(network.links, network.classes);
  const RunModel model = build_run_model(in, *engine, network, 1);
  const NodeType& node = s.cluster.node;
  report::TraceDetail detail;
  detail.stages = s.plan.pp;
  detail.visits = visit_traces(in.step, network.exchange, model.slowdown);
  detail.power = step_power(node, model.spans, model.quiet, effective_limit(node, std::nullopt),
                            s.plan.nodes + s.plan.evaluation_nodes > 1, limiter_sees_directions(model));
  return report::chrome_trace(s.name, model.quiet.time_s, model.spans, detail);
}

ExitCode run(const TimelineArguments& a, Console& console) {
  const LoadedScenario loaded = load_scenario(a.scenario, a.set, console.faults);
  console.faults.throw_if_any();
  const ChildResult trace = in_child([&] { return trace_of(loaded.scenario); }, kDeadline_s);
  if (!trace.error.empty()) {
    console.error(fmt::format("{}: {}", a.scenario, trace.error));
    return trace.code;
  }
  write_output(console, a.output, trace.value);
  return ExitCode::done;
}

}  // namespace

Command timeline_command() {
  const auto a = std::make_shared<TimelineArguments>();
  return {
      "timeline",
      "Writes one training step as a trace for chrome://tracing or Perfetto: visits, kernels, exchanges, watts",
      "  trainwatt timeline scenarios/smc-llama2-70b-lora-8n.json -o step.json",
      {argument("scenario", "FILE", "scenario file", &a->scenario),
       required(output_file("-o,--output", "trace file; - is stdout", &a->output)), overrides("the scenario", &a->set)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
