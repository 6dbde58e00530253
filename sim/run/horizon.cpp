#include "run/horizon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace tw {
namespace {

constexpr double kMostSteps = 2e7;
constexpr double kMostCheckpoints = 1e5;
constexpr double kMostEvaluations = 1e5, kMostMarks = 1e7;

}  // namespace

double evaluation_batches(const RunInputs& in) {
  const Plan& plan = *in.step.plan;
  const double per_node = in.step.cluster->node.gpus;
  const double ranks = in.step.workload != nullptr
                           ? per_node * (plan.evaluation_nodes > 0 ? plan.evaluation_nodes : plan.nodes)
                           : static_cast<double>(plan.dp) * plan.mbs;
  return std::ceil(in.run->evaluation_samples / ranks);
}

double target_samples(const RunInputs& in, const SeriesRun& series) {
  const RunPlan& run = *in.run;
  const double gbs = in.step.plan->gbs;
  if (run.convergence)
    return draw_samples(*run.convergence, gbs, run.first_evaluation_at, run.evaluation_interval, series.seed);
  if (!run.samples_by_run.empty()) return run.samples_by_run[series.index % run.samples_by_run.size()];
  if (run.tokens) return std::ceil(*run.tokens / (gbs * static_cast<double>(in.step.training->sequence)) - 1e-9) * gbs;
  return run.samples.value_or(run.steps.value_or(100) * gbs);
}

Horizon horizon_of(const RunInputs& in, const RunModel& model, double target_samples) {
  const RunPlan& run = *in.run;
  const Software& software = *in.step.software;
  const double steps = std::ceil(target_samples / in.step.plan->gbs - 1e-9);
  const double marks = run.evaluation_interval > 0 ? target_samples / run.evaluation_interval : 0;
  const double expected_s = steps * std::max(model.quiet.time_s, model.input.batch_s) +
                            marks * (software.phases.evaluation_fixed.value() +
                                     (in.step.workload ? in.step.workload->evaluation_fixed.value() : 0) +
                                     evaluation_batches(in) * model.evaluation_batch_s);
  const auto at_most = [](const char* what, double count, double most, const char* allowed) {
    if (!(count <= most))
      throw DoesNotFit(
          fmt::format("a run with {:.3g} {}; at most {:.0g} are simulated: {}", count, what, most, allowed));
  };
  // First, since marks without number make the run's time one, too.
  at_most("marks of evaluations", marks, kMostMarks, "a longer evaluation_interval");
  if (!(steps <= kMostSteps) || !(expected_s <= kLongestRun_s))
    throw DoesNotFit(
        fmt::format("a run of {:.3g} steps and {:.3g} days; at most {:.0g} steps and ten years are simulated", steps,
                    expected_s / 86400, kMostSteps));
  at_most("evaluations", std::min(steps, marks), kMostEvaluations, "a longer evaluation_interval");
  at_most("failures", job_failure_rates(in).total() * expected_s, kMostFailures, "a longer time between failures");
  if (run.checkpoints) {
    const double by_time = run.checkpoints->interval.value();
    const double count = by_time > 0 ? std::min(steps, expected_s / by_time) : steps / run.checkpoints->every_steps;
    at_most("checkpoints", count, kMostCheckpoints, "a longer interval");
  }
  return {static_cast<long>(steps), expected_s};
}

}  // namespace tw
