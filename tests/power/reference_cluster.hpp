// The reference cluster as far as power needs it, built from the shipped profiles.
#pragma once

#include "core/document.hpp"
#include "core/files.hpp"
#include "paths.hpp"
#include "step/timeline.hpp"
#include "topology/cluster.hpp"

namespace tw::test {

inline std::string reference_file(const std::string& name) {
  return std::string(source_folder() + "/reference/") + name;
}

// Only what power reads of an accelerator.
inline Accelerator board(const std::string& power_file) {
  Accelerator a;
  a.name = "board";
  a.board_limit = watts(700);
  a.power = load<GpuPower>(source_folder() + "/models/power/" + power_file);
  return a;
}

inline Cluster reference_cluster(int units = 11) {
  Cluster c;
  c.name = "reference";
  c.node.accelerator = board("gpu-h100-sxm.json");
  c.node.nvlink.bandwidth = bytes_per_second(450e9);
  c.node.nic_bandwidth = bytes_per_second(25e9);
  c.node.power = load<NodePower>(source_folder() + "/models/power/hgx-h100-immersion.json");
  c.fabric.units = units;
  c.fabric.uplink_bandwidth = bytes_per_second(50e9);
  c.fabric.switches.nameplate = watts(1610);
  c.power_delivery.rectifier = load<RectifierType>(source_folder() + "/models/power/rectifier-5kw.json");
  return c;
}

inline ActivityTimes shares(std::initializer_list<std::pair<Activity, double>> list) {
  ActivityTimes t;
  for (const auto& [a, v] : list) t[a] = v;
  return t;
}

// GPU time of a layer and micro-batch of Llama2-70B LoRA at TP4, in ms: context parallelism 1 or 2 (closed forms).
inline ActivityTimes lora_layer_ms(int cp) {
  using A = Activity;
  return cp == 1 ? shares({{A::gemm_fp8, 5.81},
                           {A::attention_forward, 0.50},
                           {A::attention_backward, 1.43},
                           {A::memory_bound, 1.56},
                           {A::collective, 2.92}})
                 : shares({{A::gemm_fp8, 2.94},
                           {A::attention_forward, 0.25},
                           {A::attention_backward, 0.72},
                           {A::memory_bound, 0.78},
                           {A::collective, 1.78}});
}

// Phases of a LoRA run with the measured times, so that power alone is under test.
struct LoraTimes {
  int nodes = 8, cp = 2, micro_batches = 1;
  double step_s = 0.6497, first_step_s = 1.5, wait_s = 11.65, gap_s = 13.1, first_eval_s = 8.87, eval_s = 8.3;
  int steps = 384, first_block = 192, block = 48;
  double eval_busy = 0.75;
  double init_s = 60, after_s = 60;
};

inline Timeline lora_timeline(const LoraTimes& t) {
  using A = Activity;
  Timeline line;
  NodeGroup group;
  group.role = "train";
  for (int i = 0; i < t.nodes; ++i) group.nodes.push_back(i);
  double now_s = -t.init_s;
  const auto add = [&](PhaseKind kind, double length_s, const ActivityTimes& s, int steps = 0) {
    group.phases.push_back({kind, now_s, now_s + length_s, s, steps});
    now_s += length_s;
  };
  const double layers_s = 80e-3 * t.micro_batches;
  ActivityTimes train = lora_layer_ms(t.cp).scaled(layers_s / t.step_s);
  if (train.total() > 1) train = train.scaled(1 / train.total());
  const ActivityTimes busy = lora_layer_ms(t.cp).scaled(t.eval_busy / lora_layer_ms(t.cp).total());
  const ActivityTimes waits = ActivityTimes::only(A::spin);
  add(PhaseKind::init, t.init_s, ActivityTimes::only(A::context));
  now_s = 0;
  add(PhaseKind::first_step, t.first_step_s, train, 1);
  add(PhaseKind::wait, t.wait_s, waits);
  add(PhaseKind::train, t.step_s * (t.first_block - 1), train, t.first_block - 1);
  add(PhaseKind::wait, t.gap_s, waits);
  add(PhaseKind::evaluation, t.first_eval_s, busy);
  for (int done = t.first_block; done < t.steps; done += t.block) {
    add(PhaseKind::train, t.step_s * t.block, train, t.block);
    add(PhaseKind::evaluation, t.eval_s, busy);
  }
  line.run_end_s = now_s;
  add(PhaseKind::after, t.after_s, ActivityTimes::only(A::context));
  line.groups.push_back(group);
  return line;
}

}  // namespace tw::test
