// Finds parallel plans: all that divide and fit, estimated in closed form; the promising ones simulated.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/result.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace tw {

enum class PlanObjective { time, energy, cost, carbon };
// Seconds to train, joules and kg CO2e of the facility, USD for its energy; nothing where it does not apply.
Maybe objective_value(PlanObjective objective, const Result& result);

// A way of recomputation; with selective: the modules, or none for attention alone.
struct RecomputeWay {
  Recompute recompute = Recompute::none;
  std::vector<Module> modules;
  bool operator==(const RecomputeWay& o) const { return recompute == o.recompute && modules == o.modules; }
};
RecomputeWay recompute_way(const Training& training);
// "none", "norms+activation", "full".
std::string recompute_text(const RecomputeWay& way);

// What is searched. Empty lists: the scenario's own value; sharding: its own, and with all weights trained and none of
// its own also zero1.
struct PlanSpace {
  std::vector<int> nodes, gbs;
  std::vector<int> gbs_per_node;  // or samples of the global batch for each node, in place of gbs
  std::vector<Sharding> sharding;
  std::vector<int> shard_group;          // ranks that share states; 0: all
  std::vector<ContextExchange> context;  // where a plan has context parallelism
  std::vector<double> offload_states;    // shares of the optimizer's states in the host's memory
  std::vector<int> offload_layers;       // of a stage, whose activations wait there
  // In this order; the first that fits is taken. Empty: none, the scenario's list of modules (attention alone), full.
  std::vector<RecomputeWay> recompute;
  bool unusual = false;  // also plans that practice avoids: pipelines inside a node with NVLink
};

struct PlanLimits {
  double memory_bytes = 0;  // of a GPU; 0: what it has, less headroom for fragments (see kMemoryShare)
  std::optional<double> facility_w, bus_w, deadline_s;
};

// Memory is computed without fragments, which take a tenth of a GPU and more (Guo et al. 2024, GMLake: 10 to 30 % of
// what training reserves): plans are looked for below this share. The scenario's own plan only has to fit.
inline constexpr double kMemoryShare = 0.9;

struct PlanCandidate {
  Plan plan;
  RecomputeWay recompute;
  double offload_states = 0;
  int offload_layers = 0;
  double memory_bytes = 0;
  double step_s = 0, node_w = 0;  // estimated
  double time_s = 0;              // steps alone, estimated
  std::vector<double> estimate;   // of each objective, comparable among candidates only
  bool own = false;               // the scenario's own plan
};

struct PlanAnswer {
  PlanCandidate candidate;
  Result result;
  std::vector<double> values;  // of each objective
  std::string beyond;          // the limit that it breaks, or why it failed
  int front = 0;               // 0: not beaten by any other in all objectives
};

struct PlanSearch {
  std::vector<PlanObjective> objectives;
  std::map<std::string, size_t> left_out;  // by reason
  size_t considered = 0, estimated = 0, simulated = 0;
  std::map<std::string, size_t> fallen;    // estimated beyond a limit and not simulated, by limit
  size_t not_simulated = 0;                // estimated as well as the best and beyond the number of simulations
  std::vector<PlanAnswer> answers;         // within all limits, best first
  std::vector<PlanAnswer> beyond;          // that break a limit, best first
  std::vector<PlanCandidate> too_large;    // estimated faster than the best, and larger than memory; best first
  double least_ratio = 1, most_ratio = 1;  // simulated over estimated step time
};

struct PlanSearchOptions {
  std::vector<PlanObjective> objectives;  // one, or two for their front
  PlanSpace space;
  PlanLimits limits;
  size_t most_simulated = 64, wanted = 10;
  int jobs = 1;
  double deadline_s = 0;  // of one simulation
  uint64_t seed = 1;
  std::function<void(const char* what, size_t done, size_t all)> progress;
};

// `file` and `overrides` are those the scenario was loaded from: candidates are simulated as "run" would simulate them
// with --set. A run told in steps is taken as that many samples of the scenario's own batch, so that all plans train
// equally long. Throws DoesNotFit when no plan divides and fits.
PlanSearch search_plans(const LoadedScenario& base, const std::vector<std::string>& overrides,
                        const PlanSearchOptions& options);

// A scenario's training as a candidate has it.
Training with_candidate(Training training, const PlanCandidate& candidate);

// "--set" arguments that make the scenario run with a candidate.
std::vector<std::string> overrides_of(const PlanCandidate& candidate);

}  // namespace tw
