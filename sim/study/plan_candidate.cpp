// A candidate of a search as a scenario has it.
#include <fmt/format.h>

#include "core/codec.hpp"
#include "study/plan_search.hpp"

namespace tw {

Training with_candidate(Training training, const PlanCandidate& c) {
  training.recompute = c.recompute.recompute, training.offload_states = c.offload_states;
  training.offload_layers = c.offload_layers;
  if (training.recompute == Recompute::selective) training.recompute_modules = c.recompute.modules;
  return training;
}

RecomputeWay recompute_way(const Training& t) {
  return {t.recompute, t.recompute == Recompute::selective ? t.recompute_modules : std::vector<Module>{}};
}

std::string recompute_text(const RecomputeWay& way) {
  std::string text;
  for (const Module m : way.modules) text += (text.empty() ? "" : "+") + choice_name(m);
  return text.empty() ? choice_name(way.recompute) : text;
}

std::vector<std::string> overrides_of(const PlanCandidate& c) {
  const Plan& p = c.plan;
  std::vector<std::string> set = {
      fmt::format("/plan/nodes={}", p.nodes), fmt::format("/plan/tp={}", p.tp), fmt::format("/plan/pp={}", p.pp),
      fmt::format("/plan/vp={}", p.vp), fmt::format("/plan/cp={}", p.cp), fmt::format("/plan/ep={}", p.ep),
      "/plan/dp=null", fmt::format("/plan/mbs={}", p.mbs), fmt::format("/plan/gbs={}", p.gbs),
      "/plan/sharding=" + choice_name(p.sharding), fmt::format("/plan/shard_group={}", p.shard_group),
      "/plan/context=" + choice_name(p.context),
      // Layout and the tensor parallelism of experts belong to the plan that they were written for.
      p.layout.empty() ? "/plan/layout=null" : "/plan/layout=\"" + p.layout + "\"", fmt::format("/plan/etp={}", p.etp),
      "/training/recompute=" + choice_name(c.recompute.recompute),
      fmt::format("/training/offload_states={}", c.offload_states),
      fmt::format("/training/offload_layers={}", c.offload_layers)};
  if (c.recompute.recompute == Recompute::selective) {
    std::string modules;
    for (const Module m : c.recompute.modules) modules += (modules.empty() ? "\"" : ", \"") + choice_name(m) + "\"";
    set.push_back("/training/recompute_modules=[" + modules + "]");
  }
  return set;
}

}  // namespace tw
