#include "run/run_plan.hpp"

#include "core/codec.hpp"

namespace tw {

void MlperfWindow::describe(Description<MlperfWindow>& d) {
  d.object("mlperf_v4_0", "The energy window of MLPerf Training v4.0.");
  d.optional("rcp_factor", &MlperfWindow::rcp_factor,
             "the submission's scaling factor; absent: by the rule of the scorer where the run draws its samples from "
             "convergence data and has three runs or more, else 1",
             at_least(1));
  d.optional("meter_before", &MlperfWindow::meter_before, "the meter file starts this long before run_start");
  d.optional("meter_after", &MlperfWindow::meter_after, "and ends this long after run_stop");
}

void RunPlan::describe(Description<RunPlan>& d) {
  d.object("run", "How long the run lasts and what interrupts its steps.");
  d.optional("samples", &RunPlan::samples, "samples to the target, given", at_least(1));
  d.optional("samples_by_run", &RunPlan::samples_by_run,
             "or those of each seeded run, such as logged ones; a run beyond the list starts over", above(0));
  d.optional("steps", &RunPlan::steps, "or a number of steps", at_least(1));
  d.optional("tokens", &RunPlan::tokens, "or a number of tokens, such as 1e12 (transformers)", at_least(1));
  d.optional("convergence", &RunPlan::convergence,
             "or convergence data, from which each seeded run draws the samples to its target");
  d.optional("runs", &RunPlan::runs,
             "seeded runs, unless the command line names a number; 0: as many as samples_by_run lists, else one",
             between(0, 1e6));
  d.optional("first_evaluation_at", &RunPlan::first_evaluation_at, "samples before the first evaluation");
  d.optional("evaluation_interval", &RunPlan::evaluation_interval, "samples between evaluations; 0: none");
  d.optional("evaluation_samples", &RunPlan::evaluation_samples, "samples of one evaluation");
  d.optional("asynchronous_evaluation", &RunPlan::asynchronous_evaluation,
             "evaluations run on their own nodes beside training");
  d.optional("mlperf_v4_0", &RunPlan::mlperf_v4_0, "the second energy window");
  d.optional("checkpoints", &RunPlan::checkpoints, "when and how the run saves its state; absent: never");
  d.optional("data", &RunPlan::data, "how training samples are read; absent: at no cost");
  d.optional("reliability", &RunPlan::reliability, "failures that interrupt the run; absent: none");
  d.optional("spare_nodes", &RunPlan::spare_nodes, "nodes that stand by to take the place of failed ones",
             between(0, 1e6));
  d.optional("slow_nodes", &RunPlan::slow_nodes, "nodes that are slower for some time of the run");
  d.optional("slow_cables", &RunPlan::slow_cables, "cables that are slower, or fail, for some time of the run");
  d.optional("power_failures", &RunPlan::power_failures, "parts of the power delivery that fail during the run");
  d.optional("start", &RunPlan::start,
             "when the run starts, such as \"2024-05-16T08:00+08:00\", for a site with hourly series");
}

}  // namespace tw
