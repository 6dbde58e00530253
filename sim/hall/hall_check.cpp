// What can never work, found before the clock starts: over every stretch of time in which budget, weather and
// maintenance stay as they are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/text.hpp"
#include "hall/accounts.hpp"
#include "hall/hall.hpp"

namespace tw::hall {
namespace {

std::vector<Load> all_idle(const HallPlan& plan, double then_s) {
  std::vector<Load> loads(plan.clusters.size());
  for (size_t c = 0; c < loads.size(); ++c) {
    std::set<int> off;
    for (const Window& w : plan.maintenance)
      if (at(w.cluster) == c && w.from_s <= then_s && then_s < w.to_s) off.insert(w.nodes.begin(), w.nodes.end());
    loads[c].idle_w = (plan.clusters[c].nodes - static_cast<int>(off.size())) * plan.clusters[c].idle_w;
  }
  return loads;
}

// Beyond the last stretch all comes again every `period_s`, or stays where that is 0.
struct Stretches {
  std::vector<double> from_s;
  std::vector<std::vector<Load>> idle;
  double settled_s = 0, period_s = 0, to_s = kNever;
};

Stretches stretches_of(const HallPlan& plan) {
  Stretches all;
  std::set<double> from_s{0};
  all.settled_s = std::max({0.0, plan.limit_w.settled_s(), plan.outside_c.settled_s()});
  for (const Window& w : plan.maintenance) {
    all.settled_s = std::max(all.settled_s, w.to_s);
    for (const double t : {w.from_s, w.to_s})
      if (t > 0) from_s.insert(t);
  }
  all.period_s = plan.limit_w.period_s();  // no other series repeats
  if (all.period_s > 0) all.to_s = all.settled_s + 2 * all.period_s;
  for (const StepSeries* series : {&plan.limit_w, &plan.outside_c})
    for (double t = series->next_change_s(0); t < all.to_s; t = series->next_change_s(t)) from_s.insert(t);
  all.from_s.assign(from_s.begin(), from_s.end());
  for (const double t : all.from_s) all.idle.push_back(all_idle(plan, t));
  return all;
}

// Where the hall has power for one kind of job, with nothing else in it.
struct Alone {
  std::vector<std::pair<double, double>> fits;  // from, to
  double nearest_w = kNever, limit_w = 0;       // where most power is left
};

Alone alone_of(const HallPlan& plan, const Stretches& all, const Job& job, double node_w) {
  Alone alone;
  double spare_w = -kNever;
  const double idle_w = plan.clusters[at(job.cluster)].idle_w;
  for (size_t i = 0; i < all.from_s.size(); ++i) {
    const double from_s = all.from_s[i], to_s = i + 1 < all.from_s.size() ? all.from_s[i + 1] : all.to_s;
    std::vector<Load> loads = all.idle[i];
    Load& load = loads[at(job.cluster)];
    load.idle_w = std::max(0.0, load.idle_w - job.nodes * idle_w);
    load.jobs_w = job.nodes * node_w;
    const double takes_w = flow_of(plan, loads, plan.outside_c.at(from_s)).load_w(), limit_w = plan.limit_w.at(from_s);
    if (limit_w - takes_w > spare_w) spare_w = limit_w - takes_w, alone.nearest_w = takes_w, alone.limit_w = limit_w;
    if (takes_w > limit_w * (1 + 1e-9)) continue;
    if (!alone.fits.empty() && alone.fits.back().second == from_s)
      alone.fits.back().second = to_s;
    else
      alone.fits.emplace_back(from_s, to_s);
  }
  if (all.period_s > 0 && !alone.fits.empty() && alone.fits.back().second == all.to_s &&
      alone.fits.back().first <= all.to_s - all.period_s)
    alone.fits.back().second = kNever;
  return alone;
}

void check_power(const HallPlan& plan, const Stretches& all, const Alone& alone, const Job& job) {
  const bool waits_only = !plan.cap && !plan.pause;
  if (alone.fits.empty())
    throw DoesNotFit(fmt::format("{} can never start: the hall takes {} with it alone{}, its budget is {} at best",
                                 job.name, to_text(watts(std::round(alone.nearest_w))),
                                 plan.cap ? " at its lowest cap" : "", to_text(watts(alone.limit_w))));
  double arrival_s = job.arrival_s;
  if (all.period_s > 0 && arrival_s > all.settled_s)
    arrival_s = all.settled_s + std::fmod(arrival_s - all.settled_s, all.period_s);
  const double writes = job.checkpoint_s > 0 ? 1 + job.write_s / job.checkpoint_s : 1;
  const double run_s = waits_only ? job.start_up_s + job.work_s * job.points.front().slowdown * writes : 0;
  double longest_s = 0;
  for (const auto& [from_s, to_s] : alone.fits) {
    if (to_s <= arrival_s) continue;
    longest_s = std::max(longest_s, to_s - std::max(from_s, arrival_s));
    if (longest_s >= run_s) return;
  }
  if (longest_s <= 0)
    throw DoesNotFit(
        fmt::format("{} can never start: it arrives when the budget is too low for it for good", job.name));
  throw DoesNotFit(fmt::format(
      "{} can never start: it takes {:.4g} h, there is power for it for {:.4g} h at a time, and it may only "
      "wait",
      job.name, run_s / 3600, longest_s / 3600));
}

}  // namespace

void check_idle(const HallPlan& plan, double then_s) {
  const double limit_w = plan.limit_w.at(then_s);
  if (limit_w == kNever) return;
  const double idle_w = flow_of(plan, all_idle(plan, then_s), plan.outside_c.at(then_s)).load_w();
  if (idle_w > limit_w * (1 + 1e-9))
    throw DoesNotFit(fmt::format("the power budget falls to {}, below the {} that the hall takes with every node idle",
                                 to_text(watts(limit_w)), to_text(watts(std::round(idle_w)))));
}

void check_hall(const HallPlan& plan) {
  const Stretches all = stretches_of(plan);
  double end_s = plan.end_s;
  if (end_s == kNever) {  // it lasts until then at least
    end_s = 0;
    for (const Job& job : plan.jobs) end_s = std::max(end_s, job.arrival_s + job.start_up_s + job.work_s);
  }
  double failures = 0;
  for (const Cluster& c : plan.clusters) failures += c.nodes * (end_s / (c.node_mtbf_s + c.repair_s));
  if (failures > kMostNodeFailures)
    throw DoesNotFit(
        fmt::format("{:.2g} nodes would fail in {:.3g} days; at most {:.0g} are simulated: a longer node_mtbf",
                    failures, end_s / 86400, kMostNodeFailures));
  for (const double from_s : all.from_s)
    if (from_s == 0 || from_s < end_s) check_idle(plan, from_s);
  std::map<std::tuple<int, int, double>, Alone> known;
  for (const Job& job : plan.jobs) {
    const Cluster& cluster = plan.clusters[at(job.cluster)];
    const int most = cluster.nodes - cluster.spares;
    if (job.nodes > most)
      throw DoesNotFit(fmt::format("{} can never start: it wants {} nodes, {} has {}{}", job.name, job.nodes,
                                   cluster.name, most, cluster.spares > 0 ? " beside its spares" : ""));
    if (plan.limit_w.least() == kNever) continue;
    double node_w =
        std::max((plan.cap ? job.points.back() : job.points.front()).node_w, job.start_up_s > 0 ? job.start_up_w : 0.0);
    if (!plan.cap && !plan.pause) node_w = std::max(node_w, cluster.idle_w);
    const auto [place, fresh] = known.try_emplace({job.cluster, job.nodes, node_w});
    if (fresh) place->second = alone_of(plan, all, job, node_w);
    check_power(plan, all, place->second, job);
  }
}

}  // namespace tw::hall
