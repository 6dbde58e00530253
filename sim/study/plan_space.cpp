#include "study/plan_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "step/schedule.hpp"
#include "step/step_memory.hpp"
#include "study/fitting_plans.hpp"
#include "study/stage_splits.hpp"

namespace tw {
namespace {

constexpr int kMostMicroBatch = 16;
constexpr int kMostContext = 64;

std::vector<int> divisors(int n) {
  std::vector<int> list;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) list.push_back(d);
  return list;
}

bool same_plan(const Plan& a, const Plan& b) {
  return a.nodes == b.nodes && a.tp == b.tp && a.pp == b.pp && a.vp == b.vp && a.cp == b.cp && a.ep == b.ep &&
         a.mbs == b.mbs && a.gbs == b.gbs && a.sharding == b.sharding && a.shard_group == b.shard_group &&
         a.context == b.context;
}

using Offload = std::pair<double, int>;  // a share of the states, and layers

// What was asked for, or else the scenario's own.
template <class T>
std::vector<T> or_own(const std::vector<T>& asked, T own) {
  return asked.empty() ? std::vector<T>{own} : asked;
}

template <class T>
bool has(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

class Enumeration {
 public:
  Enumeration(const Scenario& s, const PlanSearchOptions& o, PlanSearch& out)
      : s_(s),
        options_(o),
        out_(out),
        document_(Document::from_text("{}", "plan", description<Plan>().info(), {}, ignored_)) {
    memory_ =
        o.limits.memory_bytes > 0 ? o.limits.memory_bytes : kMemoryShare * s.cluster.node.accelerator.memory.value();
    capacity_ = o.limits.memory_bytes > 0 ? 0 : s.cluster.node.accelerator.memory.value();
    nodes_ = or_own(o.space.nodes, s.plan.nodes);
    shard_groups_ = or_own(o.space.shard_group, s.plan.shard_group);
    contexts_ = or_own(o.space.context, s.plan.context);
    for (const double states : or_own(o.space.offload_states, s.training->offload_states))
      for (const int layers : or_own(o.space.offload_layers, s.training->offload_layers))
        if (!has(offload_, {states, layers})) offload_.push_back({states, layers});
    ways_ = o.space.recompute;
    if (ways_.empty())
      for (const auto& [name, recompute] : Choices<Recompute>::table()) {
        // A way of PyTorch's own: looked at where the scenario uses it.
        if (recompute == Recompute::alternate && s.training->recompute != recompute) continue;
        ways_.push_back({recompute, {}});
        if (recompute == Recompute::selective) ways_.back().modules = s.training->recompute_modules;
      }
    sharding_ = o.space.sharding;
    if (sharding_.empty()) {
      sharding_ = {s.plan.sharding};
      if (s.plan.sharding == Sharding::none && !s.training->lora) sharding_.push_back(Sharding::zero1);
    }
  }

  std::vector<PlanCandidate> run(std::vector<PlanCandidate>& too_large) {
    std::vector<PlanCandidate> list;
    const Architecture& n = *s_.network;
    const int domain = s_.cluster.node.gpus;
    const bool every = s_.plan.schedule != Schedule::one_f_one_b;
    for (const int nodes : nodes_)
      for (const int gbs : batches(nodes))
        for (const int tp : divisors(std::gcd(n.heads, nodes * domain)))
          for (const int pp : divisors(nodes * domain / tp))
            for (int cp = 1; cp <= std::min(kMostContext, nodes * domain / tp / pp); cp *= 2)
              for (const int ep : n.experts > 0 ? divisors(n.experts) : std::vector<int>{1})
                for (int mbs = 1; mbs <= std::min(kMostMicroBatch, gbs); mbs *= 2)
                  for (const int vp : virtual_stages(n.layers, pp, every, next_token_layers(n)))
                    for (const Sharding sharding : sharding_) {
                      Plan p = s_.plan;
                      p.nodes = nodes, p.gbs = gbs, p.tp = tp, p.pp = pp, p.cp = cp, p.ep = ep, p.mbs = mbs, p.vp = vp;
                      p.sharding = sharding, p.dp = 0;
                      if (p.vp > 1 && p.schedule == Schedule::gpipe) continue;
                      every_group_and_context(p, list, too_large);
                    }
    // The scenario's own sizes may be none of those above (a micro-batch of 3, chunks of its own): it is looked at,
    // too.
    if (!own_seen_ && has(nodes_, s_.plan.nodes) && has(batches(s_.plan.nodes), s_.plan.gbs) &&
        has(sharding_, s_.plan.sharding) && has(shard_groups_, s_.plan.shard_group) &&
        has(contexts_, s_.plan.context)) {
      Plan p = s_.plan;
      p.dp = 0;
      ++out_.considered;
      consider(p, list, too_large);
    }
    return list;
  }

 private:
  // Only where states are shared, and context parallel ranks exchange something, do these make a difference.
  void every_group_and_context(const Plan& plan, std::vector<PlanCandidate>& list,
                               std::vector<PlanCandidate>& too_large) {
    const auto groups = plan.sharding == Sharding::none ? std::vector<int>{0} : shard_groups_;
    const auto contexts = plan.cp == 1 ? std::vector<ContextExchange>{s_.plan.context} : contexts_;
    for (const int group : groups)
      for (const ContextExchange context : contexts) {
        Plan p = plan;
        p.shard_group = group, p.context = context;
        const bool own = same_plan(p, s_.plan);
        own_seen_ = own_seen_ || own;
        if (!own) p.layout.clear(), p.etp = 0;
        ++out_.considered;
        consider(p, list, too_large);
      }
  }

  std::vector<int> batches(int nodes) const {
    const PlanSpace& space = options_.space;
    if (space.gbs_per_node.empty()) return space.gbs.empty() ? std::vector<int>{s_.plan.gbs} : space.gbs;
    std::vector<int> list;
    for (const int samples : space.gbs_per_node)
      if (static_cast<long>(samples) * nodes <= 1000000) list.push_back(samples * nodes);
    return list;
  }

  void consider(Plan& p, std::vector<PlanCandidate>& list, std::vector<PlanCandidate>& too_large) {
    const Architecture& n = *s_.network;
    const int domain = s_.cluster.node.gpus, gpus = p.nodes * domain;
    const auto leave_out = [&](const char* why) { ++out_.left_out[why]; };
    // Exchanges of tensor parallelism stand in the way of every layer: beyond NVLink they cost more than they save
    // (Narayanan et al. 2021, section 5.4.1, takeaway 1).
    if (p.tp > domain) return leave_out("tensor parallelism beyond a node's NVLink");
    if (gpus % (p.tp * p.pp * p.cp) != 0 || p.gbs % (p.mbs * (gpus / (p.tp * p.pp * p.cp))) != 0)
      return leave_out("ranks or batch do not divide");
    const bool own = same_plan(p, s_.plan);
    if (!own && stages_too_uneven(n.layers, p.pp, next_token_layers(n)))
      return leave_out("stages too uneven: fewer would be as fast");
    // Inside a node tensor parallelism does over NVLink what stages would do, without a bubble: pipelines are for what
    // spans nodes (Narayanan et al. 2021, takeaway 1).
    if (!own && !options_.space.unusual && p.pp > 1 && domain > 1 && gpus / p.pp < domain)
      return leave_out("pipeline inside a node");
    Faults faults;
    const ReadContext at{&document_, "", &faults, {}};
    complete_plan(p, domain, at);
    if (faults.empty()) check_plan(p, n, *s_.training, domain, at);
    if (faults.empty()) check_schedule(p, at);
    if (!faults.empty()) return leave_out("ranks or batch do not divide");
    if (p.sharding != Sharding::none && p.dp * p.cp < 2) return leave_out("nothing to shard over");
    if (p.shard_group > 0 && p.shard_group == p.dp * p.cp && has(shard_groups_, 0))
      return leave_out("a shard group of all ranks is none");
    const auto layers = layers_of_chunks(n, p);
    const int most = *std::max_element(layers.begin(), layers.end()) - 1;  // whose activations can leave
    bool listed = false;
    std::optional<PlanCandidate> first;
    std::vector<Offload> tried;
    for (const Offload& away : offload_) {
      const Offload told{away.first, std::min(away.second, std::max(0, most))};
      if (has(tried, told)) continue;
      tried.push_back(told);
      listed = least_recomputed(p, away, own, first, list, too_large) || listed;
    }
    if (listed) return;
    leave_out("memory");
    too_large.push_back(*first);
  }

  // Recomputation only adds work: of those that differ in nothing else, the least that fits is the fastest, or the
  // first in the order given. Returns whether one fits; `first`: the first of all that were tried.
  bool least_recomputed(const Plan& p, const Offload& offload, bool own, std::optional<PlanCandidate>& first,
                        std::vector<PlanCandidate>& list, std::vector<PlanCandidate>& too_large) {
    PlanCandidate c;
    c.plan = p;
    std::tie(c.offload_states, c.offload_layers) = offload;
    own = own && offload == Offload{s_.training->offload_states, s_.training->offload_layers};
    std::optional<PlanCandidate> least;
    bool listed = false;
    if (const std::tuple steps{p.pp, p.vp, p.ga()}; work_.empty() || steps != work_of_)
      work_ = memory_work(p), work_of_ = steps;
    const auto own_way = std::find(ways_.begin(), ways_.end(), recompute_way(*s_.training));
    for (auto way = ways_.begin(); way != ways_.end(); ++way) {
      c.recompute = *way;
      const PlanMemory memory = plan_memory(*s_.network, with_candidate(*s_.training, c), p, s_.software, work_);
      c.memory_bytes = memory.memory.total();
      c.own = own && way == own_way;
      if (!least) least = c;
      if (!first) first = c;
      const bool fits = c.memory_bytes <= (c.own ? std::max(memory_, capacity_) : memory_) &&
                        memory.host_bytes * s_.cluster.node.gpus <= s_.cluster.node.host_memory.capacity.value();
      if (!fits) continue;
      list.push_back(c);
      listed = true;
      // Less recomputation than the least that fits would be faster.
      if (way != ways_.begin()) too_large.push_back(*least);
      if (own && way < own_way && own_way != ways_.end()) continue;  // the own plan is looked at as it stands, too
      break;
    }
    return listed;
  }

  const Scenario& s_;
  const PlanSearchOptions& options_;
  PlanSearch& out_;
  Faults ignored_;
  Document document_;
  double memory_ = 0, capacity_ = 0;  // looked for; of the own plan
  bool own_seen_ = false;
  std::vector<StageWork> work_;  // of the last candidate's steps: stages, chunks, micro-batches
  std::tuple<int, int, int> work_of_;
  std::vector<int> nodes_;
  std::vector<Sharding> sharding_;
  std::vector<int> shard_groups_;
  std::vector<ContextExchange> contexts_;
  std::vector<Offload> offload_;
  std::vector<RecomputeWay> ways_;
};

}  // namespace

std::vector<PlanCandidate> enumerate_plans(const Scenario& scenario, const PlanSearchOptions& options, PlanSearch& out,
                                           std::vector<PlanCandidate>& too_large) {
  return Enumeration(scenario, options, out).run(too_large);
}

void check_plan_space(const LoadedScenario& base, const std::vector<std::string>& overrides, const PlanSpace& space,
                      Faults& faults) {
  const Scenario& s = base.scenario;
  PlanCandidate own;
  own.plan = s.plan, own.recompute = recompute_way(*s.training);
  own.offload_states = s.training->offload_states, own.offload_layers = s.training->offload_layers;
  // The scenario is sound: what is wrong with it and this value is so because of the value.
  const auto check = [&](const char* option, auto PlanCandidate::*key, const auto& values) {
    for (const auto& value : values) {
      PlanCandidate c = own;
      c.*key = value;
      std::vector<std::string> set = overrides;
      for (std::string& one : overrides_of(c)) set.push_back(std::move(one));
      Faults found;
      (void)load_scenario(base.file, set, found);
      for (const Fault& f : found.list()) faults.add({option, "", f.what, f.allowed});
    }
  };
  check("--offload-states", &PlanCandidate::offload_states, space.offload_states);
  check("--offload-layers", &PlanCandidate::offload_layers, space.offload_layers);
  check("--recompute", &PlanCandidate::recompute, space.recompute);
  for (const int layers : space.offload_layers)
    if (faults.empty() && layers > s.network->layers)
      faults.add({"--offload-layers", "", fmt::format("{} of a network of {} layers", layers, s.network->layers),
                  fmt::format("0 to {}", s.network->layers)});
  const auto nodes = or_own(space.nodes, s.plan.nodes);
  for (const int group : space.shard_group) {
    const auto divides = [&](int n) { return group == 0 || n * s.cluster.node.gpus % group == 0; };
    if (std::none_of(nodes.begin(), nodes.end(), divides))
      faults.add({"--shard-group", "",
                  fmt::format("{} does not divide the GPUs of any number of nodes ({})", group,
                              nodes.back() * s.cluster.node.gpus),
                  "0, or a divisor of the data-parallel ranks"});
  }
  const auto& sharding = space.sharding;
  if (!sharding.empty() && !space.shard_group.empty() && space.shard_group.back() > 0 &&
      std::count(sharding.begin(), sharding.end(), Sharding::none) == static_cast<long>(sharding.size()))
    faults.add({"--shard-group", "", "nothing is sharded", "--sharding zero1, zero2 or zero3"});
}

}  // namespace tw
