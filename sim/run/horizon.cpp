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

// Steps, evaluations and checkpoints of a run with its failures, over those of one without. What lies between two
// states that a failure can go back to begins again with each failure, so that it takes (e^x - 1) / x times as long
// where x failures fall into it in the mean.
double times_over(const RunInputs& in, double expected_s, double steps) {
  double between_s = expected_s;
  if (const auto& checkpoints = in.run->checkpoints; checkpoints && steps > 0) {
    const double step_s = expected_s / steps, interval_s = checkpoints->interval.value();
    between_s = std::min(between_s, interval_s > 0 ? std::max(interval_s, step_s) : checkpoints->every_steps * step_s);
  }
  constexpr double kMany = 100;  // what they take is beyond every limit, but a number
  const double failures = std::min(kMany, job_failure_rates(in).total() * between_s);
  return failures > 0 ? std::expm1(failures) / failures : 1;
}

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
  const double again = times_over(in, expected_s, steps);
  const char* const rarer = "failures too frequent for its checkpoints";
  at_most("failures", again * job_failure_rates(in).total() * expected_s, kMostFailures, rarer);
  at_most("steps, done again after failures", again * steps, kMostSteps, rarer);
  at_most("evaluations", again * std::min(steps, marks), kMostEvaluations, "a longer evaluation_interval");
  if (run.checkpoints) {
    const double by_time = run.checkpoints->interval.value();
    const double count = by_time > 0 ? std::min(steps, expected_s / by_time) : steps / run.checkpoints->every_steps;
    at_most("checkpoints", again * count, kMostCheckpoints, "a longer interval");
  }
  return {static_cast<long>(steps), expected_s};
}

}  // namespace tw
