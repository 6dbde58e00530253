// A result filled by hand: round numbers whose sums are easy to follow.
#pragma once

#include "study/simulate.hpp"

namespace toy {

inline tw::Result result() {
  tw::Result r;
  r.scenario = "toy-8n";
  r.seed = 3;
  r.inputs_sha256 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  r.plan = {8, 64, 4, 1, 1, 2, 8, 1, 1, 8, 1};
  r.step.time_s = 0.65;
  r.step.tokens_per_s = 100824.6;
  r.step.samples_per_s = 12.3;
  r.step.mfu = 0.312;
  r.step.breakdown_s.compute = 0.5;
  r.step.breakdown_s.host = 0.1;
  r.step.breakdown_s.tp = 0.05;
  r.memory = {61.2e9, 85.5e9, 60.9e9, 61.0e9, {}, {}, {{"weights", 34e9}, {"activations", 27.2e9}}};
  r.run.time_to_train_s = {318.3, std::nullopt, 318.3, 318.3, 318.3, 318.3, 329.4};
  r.run.steps = 384;
  r.run.samples = 3072;
  r.run.evaluations = 5;
  r.run.eval_s = 8.3;
  r.run.wait_s = 25;
  r.power.mean = 5713;
  r.power.min = 5700;
  r.power.max = 5730;
  r.power.steady = 6152;
  r.power.idle = 2200;
  r.power.per_node = {{"node-0", 5700, 7000, 1.8e6}, {"node-1", 5730, 7010, 1.81e6}};
  r.power.network_w = 16100;
  r.power.network_w_per_node = 2012.5;
  r.power.network_rule = "as_published";
  r.power.network_w_by_rule = {{"as_published", 16100.0}, {"as_stated", 4830.0}, {"by_load", std::nullopt}};
  r.energy = {14.5e6, 5.1e6, 19.6e6, 0.3e6, 19.9e6, 21.6e6, 0.4e6, std::nullopt};
  r.energy_mlperf_v4_0 = {15.1e6, 5.3e6, 20.4e6, 0.3e6, 20.7e6, 22.4e6, 0.4e6, 1.0347};
  r.carbon = {2.4, 2.52, 0.405};
  r.reference.source = "a measurement";
  r.reference.rows = {{"run_s", "s", "fitted", 318.3, 318.3, 0.0},
                      {"node_dc_w", "W", "predicted", 5700.0, 5713.0, 0.228},
                      {"facility_mlperf_j", "J", "predicted", 6.228 * 3.6e6, 22.4e6, -0.09},
                      {"kg_co2e_mlperf", "kg", "predicted", 2.60, 2.52, -3.1}};
  for (int t = 0; t < 320; t += 2) {
    r.series.time_s.push_back(t);
    r.series.mean_w.push_back(t % 64 < 8 ? 2700 : 6150);
    r.series.p5_w.push_back(2600);
    r.series.p95_w.push_back(6300);
  }
  return r;
}

}  // namespace toy
