// What this folder hands to results, described.
#include "core/output_block.hpp"
#include "power/delivery.hpp"
#include "power/network_rule.hpp"
#include "power/power_run.hpp"
#include "power/ramps.hpp"
#include "power/step_power.hpp"

namespace tw {

void Ramp::describe(Outputs<Ramp>& d) {
  d.output("window_s", &Ramp::window_s, "s", "length of the window that a ramp is taken over");
  d.output("up_w_per_s", &Ramp::up_w_per_s, "W/s", "steepest rise");
  d.output("up_at_s", &Ramp::up_at_s, "s", "when");
  d.output("down_w_per_s", &Ramp::down_w_per_s, "W/s", "steepest fall");
  d.output("down_at_s", &Ramp::down_at_s, "s", "when");
}

void PowerSwings::describe(Outputs<PowerSwings>& d) {
  d.output("mean_w", &PowerSwings::mean_w, "W", "the building's power for this job, mean over the run");
  d.output("sd_w", &PowerSwings::sd_w, "W", "its standard deviation over time");
  d.output("least_w", &PowerSwings::least_w, "W", "its least");
  d.output("p5_w", &PowerSwings::p5_w, "W", "quantile 0.05 over time");
  d.output("p50_w", &PowerSwings::p50_w, "W", "median over time");
  d.output("p95_w", &PowerSwings::p95_w, "W", "quantile 0.95 over time");
  d.output("p99_w", &PowerSwings::p99_w, "W", "quantile 0.99 over time");
  d.output("peak_w", &PowerSwings::peak_w, "W", "its peak");
  d.output("largest_step_w", &PowerSwings::largest_step_w, "W",
           "largest jump between neighbouring phases; negative: a fall");
  d.output("largest_step_at_s", &PowerSwings::largest_step_at_s, "s", "when");
  d.output("step_swing_w", &PowerSwings::step_swing_w, "W", "highest less lowest inside one training step");
  d.output(
      "start_rise_w", &PowerSwings::start_rise_w, "W",
      "when all nodes begin to work after a wait, highest 10 ms; null where the accelerator's limiter is not known");
  d.output("ramps", &PowerSwings::ramps);
}

void StageTotals::describe(Outputs<StageTotals>& d) {
  const auto rated = [](const StageTotals& t) { return t.rating_w > 0; };
  d.output("stage", &StageTotals::stage, "", "a stage of power delivery, from the nodes to the feed");
  d.output("units", &StageTotals::units, "1", "its units");
  d.output("output_j", &StageTotals::output_j, "J", "energy that it delivers");
  d.output("loss_j", &StageTotals::loss_j, "J", "energy that it loses");
  d.output("peak_w", &StageTotals::peak_w, "W", "highest output of one unit");
  d.output("peak_unit", &StageTotals::peak_unit, "", "which unit");
  d.output("peak_at_s", &StageTotals::peak_at_s, "s", "when");
  d.output_if(rated, "rating_w", &StageTotals::rating_w, "W", "rating of a unit; null when not given");
  d.output_if(rated, "headroom_w", &StageTotals::headroom_w, "W", "rating less peak; null without a rating");
  d.output_if(rated, "spare_headroom_w", &StageTotals::spare_headroom_w, "W",
              "the same after the failure that its redundancy is to survive; null without a rating");
  d.output("redundant", &StageTotals::redundant, "", "whether it survives that failure at its peak");
}

void SwitchShare::describe(Outputs<SwitchShare>& d) {
  d.output("vertex", &SwitchShare::vertex);
  d.output("share", &SwitchShare::share);
  d.output("watts", &SwitchShare::watts);
}

void StepPower::describe(Outputs<StepPower>& d) {
  d.output("begin_s", &StepPower::begin_s);
  d.output("watts", &StepPower::watts);
  d.output("end_s", &StepPower::end_s);
}

void FailedUnit::describe(Outputs<FailedUnit>& d) {
  d.output("part", &FailedUnit::part);
  d.output("unit", &FailedUnit::unit);
  d.output("count", &FailedUnit::count);
  d.output("from_s", &FailedUnit::from_s);
  d.output("to_s", &FailedUnit::to_s);
}

void PowerOptions::describe(Outputs<PowerOptions>& d) {
  d.output("gpu_limit", &PowerOptions::gpu_limit);
  d.output("seed", &PowerOptions::seed);
  d.output("failures", &PowerOptions::failures);
}

}  // namespace tw
