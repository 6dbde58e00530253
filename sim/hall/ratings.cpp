#include "hall/ratings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace tw::hall {
namespace {

constexpr double kRoom = 1e-9;  // a load at a rating is not beyond it

double highest_w(const HallState& s, int j) {
  const JobNow& n = s.now(j);
  if (n.start_left_s > 0) return s.job(j).start_up_w;
  return std::max(s.node_w(j), s.job(j).points[n.point].highest_w);
}

// What the units of a stage give, for what each unit below takes.
std::vector<double> outputs_of(const RatedStage& stage, const std::vector<double>& below_w) {
  std::vector<double> w(static_cast<size_t>(*std::max_element(stage.unit_of.begin(), stage.unit_of.end())) + 1, 0);
  for (size_t i = 0; i < below_w.size(); ++i) w[at(stage.unit_of[i])] += below_w[i];
  return w;
}

// Number of the first unit beyond its rating, with the stage; -1: none.
std::pair<size_t, int> beyond(const Cluster& cluster, std::vector<double> below_w, double& asked_w) {
  for (size_t k = 0; k < cluster.rated.size(); ++k) {
    const RatedStage& stage = cluster.rated[k];
    below_w = outputs_of(stage, below_w);
    for (size_t u = 0; u < below_w.size(); ++u) {
      asked_w = below_w[u];
      if (asked_w > stage.rating_w * (1 + kRoom)) return {k, static_cast<int>(u)};
      below_w[u] = stage.law.input_w(asked_w);
    }
  }
  return {0, -1};
}

}  // namespace

Ratings::Ratings(const HallPlan& plan) {
  for (size_t c = 0; c < plan.clusters.size(); ++c) {
    const Cluster& cluster = plan.clusters[c];
    if (cluster.rated.empty()) continue;
    double most_w = cluster.idle_w, asked_w = 0;
    for (const Job& job : plan.jobs) {
      if (job.cluster != static_cast<int>(c)) continue;
      most_w = std::max(most_w, job.start_up_s > 0 ? job.start_up_w : 0.0);
      for (const CapPoint& p : job.points) {
        most_w = std::max({most_w, p.node_w, p.highest_w});
        for (const LinkPoint& l : p.links) most_w = std::max(most_w, l.node_w);
      }
    }
    if (beyond(cluster, std::vector<double>(at(cluster.nodes), most_w), asked_w).second >= 0)
      watched_.push_back(static_cast<int>(c));
  }
}

void Ratings::check(const HallState& s) const {
  if (s.dark) return;
  for (const int c : watched_) check(s, c);
}

void Ratings::check(const HallState& s, int c) const {
  const Cluster& cluster = s.plan.clusters[at(c)];
  const NodePool& pool = s.pools[at(c)];
  std::vector<double> node_w(at(cluster.nodes), cluster.idle_w);
  for (int node = 0; node < cluster.nodes; ++node) {
    const int j = pool.holder(node);
    if (j >= 0)
      node_w[at(node)] = highest_w(s, j);
    else if (pool.failed(node) || pool.in_maintenance(node, s.now_s))
      node_w[at(node)] = 0;
  }
  double asked_w = 0;
  const auto [stage, unit] = beyond(cluster, node_w, asked_w);
  if (unit < 0) return;
  std::vector<std::string> jobs;
  for (int node = 0; node < cluster.nodes; ++node) {
    int above = node;
    for (size_t k = 0; k <= stage; ++k) above = cluster.rated[k].unit_of[at(above)];
    const int j = pool.holder(node);
    if (above != unit || j < 0) continue;
    const std::string& name = s.job(j).name;
    if (jobs.size() < 4 && std::find(jobs.begin(), jobs.end(), name) == jobs.end()) jobs.push_back(name);
  }
  if (jobs.size() == 4) jobs.back() = "others";
  const RatedStage& of = cluster.rated[stage];
  throw DoesNotFit(fmt::format("{}-{} of {} is asked for {:.0f} W at {:.3f} s; it gives {:.0f} W ({})", of.kind, unit,
                               cluster.name, asked_w, s.now_s, of.rating_w,
                               jobs.empty() ? "idle nodes" : fmt::format("{}", fmt::join(jobs, ", "))));
}

}  // namespace tw::hall
