#include "study/plan_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/codec.hpp"
#include "network/preload.hpp"
#include "network/process.hpp"
#include "power/network_rule.hpp"
#include "study/plan_estimate.hpp"
#include "study/plan_limits.hpp"
#include "study/plan_space.hpp"
#include "study/result.hpp"
#include "topology/placement.hpp"

namespace tw {
namespace {

bool counted_in_steps(const Scenario& s) {
  const RunPlan& run = s.run;
  return !run.samples && !run.tokens && !run.convergence && run.samples_by_run.empty();
}

// Samples to the target with this batch.
double samples_of(const Scenario& s, int gbs) {
  const RunPlan& run = s.run;
  if (run.convergence) return samples_to_target(*run.convergence, gbs).mean;
  if (run.tokens) return *run.tokens / static_cast<double>(s.training->sequence);
  if (!run.samples_by_run.empty())
    return std::accumulate(run.samples_by_run.begin(), run.samples_by_run.end(), 0.0) /
           static_cast<double>(run.samples_by_run.size());
  return run.samples.value_or(run.steps.value_or(100) * s.plan.gbs);
}

using Candidates = std::vector<PlanCandidate*>;

Candidates all_of(std::vector<PlanCandidate>& list) {
  Candidates all;
  for (PlanCandidate& c : list) all.push_back(&c);
  return all;
}

// Fills in the estimates of candidates, in forked children; `least`: lower bounds of their times, and of nothing else.
void estimate(const Scenario& s, const PlanSearchOptions& o, Candidates list, bool least = false) {
  if (list.empty()) return;
  const Fabric fabric = build_fabric(s.cluster);
  // Plans on the same links, one after the other, stay together.
  const auto links = [](const Plan& p) {
    return std::tie(p.nodes, p.tp, p.pp, p.cp, p.ep, p.vp, p.sharding, p.shard_group, p.context);
  };
  std::stable_sort(list.begin(), list.end(),
                   [&](const PlanCandidate* a, const PlanCandidate* b) { return links(a->plan) < links(b->plan); });
  constexpr size_t most = 64;
  std::vector<size_t> parts{0};
  for (size_t i = 1; i < list.size(); ++i)
    if (i >= parts.back() + most && links(list[i]->plan) != links(list[i - 1]->plan)) parts.push_back(i);
  parts.push_back(list.size());
  ChildOptions children;
  children.jobs = o.jobs;
  if (o.progress) children.progress = [&](size_t done, size_t all) { o.progress("estimating", done, all); };
  const auto answers = in_children(
      parts.size() - 1,
      [&](size_t k) {
        std::string out;
        PlanEstimator estimate_of(fabric, s.placement);
        for (size_t i = parts[k]; i < parts[k + 1]; ++i) {
          const PlanCandidate& c = *list[i];
          const Training training = with_candidate(*s.training, c);
          const StepInputs in{&*s.network, &training, nullptr, &s.cluster, &s.software, &c.plan};
          const StepEstimate e = least ? StepEstimate{PlanEstimator::least_s(in), 0} : estimate_of(in);
          out.append(reinterpret_cast<const char*>(&e), sizeof e);
        }
        return out;
      },
      children);
  for (size_t k = 0; k + 1 < parts.size(); ++k) {
    rethrow(answers[k]);
    for (size_t i = parts[k]; i < parts[k + 1]; ++i) {
      StepEstimate e;
      std::memcpy(&e, answers[k].value.data() + (i - parts[k]) * sizeof e, sizeof e);
      PlanCandidate& c = *list[i];
      c.step_s = e.step_s, c.node_w = e.node_w;
      c.time_s = c.step_s * std::ceil(samples_of(s, c.plan.gbs) / c.plan.gbs - 1e-9);
      c.estimate.clear();
      for (const PlanObjective objective : o.objectives)
        c.estimate.push_back(objective == PlanObjective::time ? c.time_s : c.time_s * c.node_w * c.plan.nodes);
    }
  }
}

bool faster(const PlanCandidate& a, const PlanCandidate& b) {
  return a.time_s < b.time_s;
}

// Estimates a list. Where time alone decides, candidates that are far behind the best are taken out of it and returned,
// with their lower bounds alone, least first.
std::vector<PlanCandidate> estimate_promising(const Scenario& s, const PlanSearchOptions& o,
                                              std::vector<PlanCandidate>& list) {
  constexpr double kFar = 1.25;  // above what a simulation adds to one estimate and not to another
  constexpr size_t kSmall = 128;
  const bool limited = o.limits.facility_w || o.limits.bus_w || o.limits.deadline_s;
  const size_t first = std::max<size_t>(32, 2 * o.wanted);
  Candidates all = all_of(list);
  if (o.objectives != std::vector{PlanObjective::time} || limited || all.size() < std::max(kSmall, 2 * first)) {
    estimate(s, o, all);
    return {};
  }
  estimate(s, o, all, true);
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return faster(*a, *b); });
  std::stable_partition(all.begin(), all.end(), [](const PlanCandidate* c) { return c->own; });
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
  Candidates known(all.begin(), from);
  estimate(s, o, known);
  std::sort(known.begin(), known.end(), [](const auto* a, const auto* b) { return faster(*a, *b); });
  const double far_s = kFar * known[o.wanted]->time_s;
  const auto to = std::find_if(from, all.end(), [&](const PlanCandidate* c) { return c->time_s > far_s; });
  estimate(s, o, Candidates(from, to));
  std::vector<bool> far(list.size(), false);
  std::for_each(to, all.end(), [&](const PlanCandidate* c) { far[static_cast<size_t>(c - list.data())] = true; });
  std::vector<PlanCandidate> near, rest;
  for (size_t i = 0; i < list.size(); ++i) (far[i] ? rest : near).push_back(std::move(list[i]));
  list = std::move(near);
  std::stable_sort(rest.begin(), rest.end(), faster);
  return rest;
}

bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

// Number of the front of each: 0 for those that nothing beats, 1 for those that only these beat, and so on. With one
// objective there is one front, in order.
std::vector<int> fronts(const std::vector<std::vector<double>>& values) {
  if (values.empty() || values.front().size() < 2) return std::vector<int>(values.size(), 0);
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::tie(values[a], a) < std::tie(values[b], b); });
  // Sorted by the first objective, a value is beaten only by one before it: the front it belongs to is the first whose
  // least second objective is not below its own.
  std::vector<int> front(values.size(), 0);
  std::vector<std::vector<double>> last;  // of each front
  for (const size_t i : order) {
    size_t f = 0;
    while (f < last.size() && (beats(last[f], values[i]))) ++f;
    front[i] = static_cast<int>(f);
    if (f == last.size())
      last.push_back(values[i]);
    else
      last[f] = values[i];
  }
  return front;
}

template <class T, class Values>
void sort_by_front(std::vector<T>& list, const Values& values_of) {
  std::vector<std::vector<double>> values;
  for (const T& t : list) values.push_back(values_of(t));
  const auto front = fronts(values);
  std::vector<size_t> order(list.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::tie(front[a], values[a]) < std::tie(front[b], values[b]); });
  std::vector<T> sorted;
  for (const size_t i : order) sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

// Simulates candidates in batches, best estimates first, until no estimate left can beat what is wanted, even if it is
// as pessimistic as the most pessimistic so far. Of `rest` there are only lower bounds: they are estimated when one of
// them may be the next.
class BatchedSearch {
 public:
  BatchedSearch(const LoadedScenario& base, std::vector<std::string> overrides, const PlanSearchOptions& o,
                std::vector<PlanCandidate> list, std::vector<PlanCandidate> rest, PlanSearch& out)
      : base_(base),
        common_(std::move(overrides)),
        o_(o),
        list_(std::move(list)),
        rest_(std::move(rest)),
        out_(out),
        pruning_(base.scenario, o.limits) {
    if (!counted_in_steps(base.scenario)) return;
    common_.emplace_back("/run/steps=null");
    common_.push_back(fmt::format("/run/samples={}", samples_of(base.scenario, base.scenario.plan.gbs)));
  }

  void run() {
    // Under limits one goes first: it tells how far peaks lie above estimates before more are spent beyond a limit.
    const bool limited = o_.limits.facility_w || o_.limits.bus_w || o_.limits.deadline_s;
    const size_t batch = static_cast<size_t>(std::max(1, o_.jobs)) * 4;
    while (left() && out_.simulated < o_.most_simulated) {
      const std::vector<size_t> chosen = choose(limited && out_.simulated == 0 ? 1 : batch);
      if (chosen.empty()) break;
      std::vector<PlanAnswer> answers = simulate_all(chosen);
      for (const PlanAnswer& a : answers)
        if (a.result.step.time_s) pruning_.learn(a);
      for (PlanAnswer& a : answers) (a.beyond.empty() ? out_.answers : out_.beyond).push_back(std::move(a));
      sort_by_front(out_.answers, [](const PlanAnswer& a) { return a.values; });
    }
    for (; left(); ++next_)
      if (!falls(list_[next_])) out_.not_simulated += promising(list_[next_]) ? 1 : 0;
    if (most_ > 0) out_.least_ratio = least_, out_.most_ratio = most_;
  }

 private:
  // Is there a next one? The rest has to be known if it may be one of them.
  bool left() {
    if (rest_.empty()) return next_ < list_.size();
    const PlanCandidate& least = rest_.front();
    if (next_ < list_.size() && (list_[next_].own || !faster(least, list_[next_]))) return true;
    if (!promising(least)) return next_ < list_.size();
    estimate(base_.scenario, o_, all_of(rest_));
    std::move(rest_.begin(), rest_.end(), std::back_inserter(list_));
    rest_.clear();
    std::stable_sort(list_.begin() + static_cast<std::ptrdiff_t>(next_), list_.end(), faster);
    return true;
  }

  bool falls(const PlanCandidate& c) {
    const std::string limit = pruning_.beyond(c);
    if (!limit.empty()) ++out_.fallen[limit];
    return !limit.empty();
  }

  bool promising(const PlanCandidate& c) const {
    if (out_.answers.size() < o_.wanted) return true;
    std::vector<double> best = c.estimate;
    for (double& v : best) v *= least_;
    size_t better = 0;
    for (const PlanAnswer& a : out_.answers) {
      // Estimates of energy, cost and carbon are not in their units: each answer's own estimate and value tell the
      // scale.
      std::vector<double> scaled = a.candidate.estimate;
      for (double& v : scaled) v *= a.result.step.time_s.value_or(a.candidate.step_s) / a.candidate.step_s;
      better += beats(scaled, best) ? 1 : 0;
    }
    return better < o_.wanted;
  }

  std::vector<size_t> choose(size_t most) {
    std::vector<size_t> chosen;
    for (; out_.simulated + chosen.size() < o_.most_simulated && chosen.size() < most && left(); ++next_)
      if (list_[next_].own || (!falls(list_[next_]) && promising(list_[next_]))) chosen.push_back(next_);
    return chosen;
  }

  // Children end in any order; what follows does not depend on it.
  std::vector<PlanAnswer> simulate_all(const std::vector<size_t>& chosen) {
    std::vector<PlanAnswer> answers(chosen.size());
    stream_from_children(
        chosen.size(), network::preload_engine,
        [&](size_t k) {
          std::vector<std::string> set = common_;
          for (std::string& one : overrides_of(list_[chosen[k]])) set.push_back(std::move(one));
          Faults faults;
          const LoadedScenario scenario = load_scenario(base_.file, set, faults);
          faults.throw_if_any();
          Result r = simulate(scenario, {o_.seed, 0, 1});
          r.timeline = {}, r.series = {}, r.power.per_node.clear();
          return to_bytes(r);
        },
        [&](size_t k, ChildResult&& child) {
          ++out_.simulated;
          answers[k].candidate = list_[chosen[k]];
          if (o_.progress) o_.progress("simulating", out_.simulated, std::min(list_.size(), o_.most_simulated));
          take(answers[k], child);
        },
        {o_.jobs, o_.deadline_s, {}, {}});
    return answers;
  }

  void take(PlanAnswer& a, const ChildResult& child) {
    if (!child.error.empty()) {
      a.beyond = child.error.substr(0, child.error.find('\n'));
      return;
    }
    a.result = from_bytes(child.value);
    a.beyond = broken_limit(a, o_.limits, o_.objectives);
    for (const PlanObjective objective : o_.objectives)
      if (const Maybe value = objective_value(objective, a.result)) a.values.push_back(*value);
    if (a.values.size() != o_.objectives.size()) a.values.clear();
    const double ratio = a.result.step.time_s.value_or(a.candidate.step_s) / a.candidate.step_s;
    least_ = std::min(least_, ratio), most_ = std::max(most_, ratio);
  }

  const LoadedScenario& base_;
  std::vector<std::string> common_;
  const PlanSearchOptions& o_;
  std::vector<PlanCandidate> list_, rest_;
  PlanSearch& out_;
  LimitPruning pruning_;
  size_t next_ = 0;
  double least_ = std::numeric_limits<double>::infinity(), most_ = 0;  // simulated over estimated step
};

}  // namespace

Maybe objective_value(PlanObjective objective, const Result& r) {
  switch (objective) {
    case PlanObjective::time:
      return r.run.time_to_train_s.mean;
    case PlanObjective::energy:
      return r.energy.facility_j;
    case PlanObjective::carbon:
      return r.carbon.kg_co2e;
    case PlanObjective::cost: {
      const auto at = r.cost.find("energy_usd");
      return at == r.cost.end() ? Maybe() : at->second;
    }
  }
  return {};
}

PlanSearch search_plans(const LoadedScenario& base, const std::vector<std::string>& overrides,
                        const PlanSearchOptions& o) {
  const Scenario& s = base.scenario;
  PlanSearch out;
  out.objectives = o.objectives;
  std::vector<PlanCandidate> too_large;
  std::vector<PlanCandidate> list = enumerate_plans(s, o, out, too_large);
  if (list.empty())
    throw DoesNotFit(fmt::format("none of {} plans divides and fits{}", out.considered,
                                 too_large.empty() ? "" : ": more memory, more nodes or more sharding are needed"));
  out.estimated = list.size();
  std::vector<PlanCandidate> rest = estimate_promising(s, o, list);
  const auto by_estimate = [](const PlanCandidate& c) { return c.estimate; };
  sort_by_front(list, by_estimate);
  // The scenario's own plan comes first, so that it is simulated in any case.
  std::stable_partition(list.begin(), list.end(), [](const PlanCandidate& c) { return c.own; });
  BatchedSearch(base, overrides, o, std::move(list), std::move(rest), out).run();
  std::vector<std::vector<double>> values;
  for (const PlanAnswer& a : out.answers) values.push_back(a.values);
  const auto front = fronts(values);
  for (size_t i = 0; i < front.size(); ++i) out.answers[i].front = front[i];
  std::stable_sort(out.beyond.begin(), out.beyond.end(), [](const PlanAnswer& a, const PlanAnswer& b) {
    return a.candidate.estimate < b.candidate.estimate;
  });
  if (!out.answers.empty() && !too_large.empty()) {
    const PlanCandidate& best = out.answers.front().candidate;
    if (std::find(o.objectives.begin(), o.objectives.end(), PlanObjective::time) != o.objectives.end()) {
      estimate(s, o, all_of(too_large), true);
      std::erase_if(too_large, [&](const PlanCandidate& c) { return c.time_s * (1 - 1e-9) > best.time_s; });
    }
    estimate(s, o, all_of(too_large));
    sort_by_front(too_large, by_estimate);
    for (PlanCandidate& c : too_large)
      if (beats(c.estimate, best.estimate)) out.too_large.push_back(std::move(c));
  }
  return out;
}

}  // namespace tw
