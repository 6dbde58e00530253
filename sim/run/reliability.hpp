// Failures that interrupt a run: how often each kind of component fails, what a restart costs, and which checkpoint
// interval loses least.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/describe.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace tw {

// A profile, shared by all scenarios on like machines (models/reliability/*.json).
struct Reliability {
  std::string name;
  std::optional<Time> gpu_mtbf, nic_mtbf, node_mtbf, link_mtbf, switch_mtbf, software_mtbf;
  Time detect = seconds(600), reschedule = seconds(60);
  Time repair = seconds(86400);
  std::string source;
  static void describe(Description<Reliability>& d);
};

// Power fails by itself nowhere: a scenario says when.
enum class Component { gpu, nic, node, link, switch_, software, power };
constexpr std::array<std::string_view, 7> kComponentNames{"gpu", "nic", "node", "link", "switch", "software", "power"};
// Whether the node goes with it, so that a spare has to take its place.
bool takes_node(Component c);

// Failures a second of each kind, for a job of so many components.
struct FailureRates {
  std::array<double, kComponentNames.size()> per_s{};
  double total() const;  // 1 / MTBF of the job
};
FailureRates failure_rates(const Reliability& reliability, int nodes, int gpus_per_node, int nics_per_node,
                           double switches);

// The failures of one seeded run, in the order they fall. Times count only while the job runs: a job that is down does
// not fail again. Each kind of component has random numbers of its own, so that two runs of one seed share the failures
// of what they have in common: fewer switches do not move the failures of the GPUs.
class FailureSource {
 public:
  FailureSource(const FailureRates& rates, uint64_t seed);
  double next_gap_s();                           // running time until the next failure; infinite without any
  Component next_kind() const { return kind_; }  // of that failure

 private:
  void draw(size_t kind);
  FailureRates rates_;
  std::vector<SplitMix64> streams_;                    // by kind
  std::array<double, kComponentNames.size()> at_s_{};  // next of each kind, in running time
  double now_s_ = 0;
  Component kind_ = Component::software;
};

// Optimal interval between checkpoints of cost `write_s` for failures every `mtbf_s`, from the end of one to the
// beginning of the next (Daly 2006, "A higher order estimate of the optimum checkpoint interval"; its first term is
// Young's, 1974).
double daly_interval_s(double write_s, double mtbf_s);

// One interval and the share of time that is training which counts.
struct IntervalTrial {
  double interval_s = 0, goodput = 0;
};

// The cycle of training, checkpoints and failures as events, over `failures` failures: work since the last complete
// checkpoint is lost, then `restart_s` passes. `blocked_s`: training waits that long for a checkpoint, which is
// complete after write_s. The share of time that is training which counts.
double interval_goodput(double interval_s, double write_s, double blocked_s, double restart_s, double mtbf_s,
                        uint64_t seed, int failures = 20000);

// The same for a row of intervals, whole steps, around Daly's. The best trial comes first.
std::vector<IntervalTrial> try_intervals(double write_s, double blocked_s, double restart_s, double mtbf_s,
                                         double step_s, uint64_t seed, int failures = 20000);

}  // namespace tw
