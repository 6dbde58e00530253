// Jobs that share the uplinks of a unit slow each other. All adapters of a unit get an equal part of its uplinks
// (max-min fair, as the fabric engine shares links), whoever is sending: a job with n of N sending nodes whose uplinks
// can carry M gets min(1, M / N) of what its adapters could. Others send a part of their time, each by itself, so that
// a job's slowdown is the mean over who of them is sending. How it reacts to narrower uplinks was simulated
// (CapPoint::links).
#include <algorithm>
#include <cmath>
#include <map>

#include "hall/hall_state.hpp"

namespace tw::hall {
namespace {

constexpr int kMostSets = 10;  // others that are counted set by set; more of them by their mean
constexpr int kTurns = 30;     // of the fixed point: who is slowed sends for longer
constexpr double kSettled = 1e-12;

// By the squeeze of its uplinks, linear between what was simulated and beyond.
LinkPoint at_squeeze(const std::vector<LinkPoint>& law, double squeeze) {
  if (law.size() < 2) return {squeeze, 1, law.empty() ? 0 : law.front().node_w};
  size_t i = 1;
  while (i + 1 < law.size() && law[i].squeeze < squeeze) ++i;
  const double t = (squeeze - law[i - 1].squeeze) / (law[i].squeeze - law[i - 1].squeeze);
  return {squeeze, law[i - 1].slowdown + t * (law[i].slowdown - law[i - 1].slowdown),
          law[i - 1].node_w + t * (law[i].node_w - law[i - 1].node_w)};
}

// Part of a step, with all of its uplinks, that its traffic on them takes: what more it takes where they are all it
// waits for.
double sending(const std::vector<LinkPoint>& law) {
  if (law.size() < 2) return 0;
  const LinkPoint &a = law[law.size() - 2], &b = law.back();
  return std::clamp((b.slowdown - a.slowdown) / (b.squeeze - a.squeeze), 0.0, 1.0);
}

struct User {  // of the uplinks of units
  int job = 0;
  const std::vector<LinkPoint>* law = nullptr;
  std::map<int, int> nodes;  // by unit
  double alone = 0, busy = 0;
  LinkPoint now;
};

// Mean over which of the others are sending.
LinkPoint mean_in_unit(const User& user, const std::vector<const User*>& others, int unit, double room) {
  const double own = user.nodes.at(unit), base = std::max(1.0, own / room);
  const auto squeezed = [&](double more) { return std::max(1.0, std::max(1.0, (own + more) / room) / base); };
  if (others.size() > kMostSets) {
    double more = 0;
    for (const User* o : others) more += o->busy * o->nodes.at(unit);
    return at_squeeze(*user.law, squeezed(more));
  }
  LinkPoint mean{0, 0, 0};
  double joules = 0;
  for (size_t set = 0; set < (size_t{1} << others.size()); ++set) {
    double share = 1, more = 0;
    for (size_t k = 0; k < others.size(); ++k) {
      const bool on = (set >> k & 1) != 0;
      share *= on ? others[k]->busy : 1 - others[k]->busy;
      if (on) more += others[k]->nodes.at(unit);
    }
    if (share <= 0) continue;
    const LinkPoint p = at_squeeze(*user.law, squeezed(more));
    mean.squeeze += share * p.squeeze, mean.slowdown += share * p.slowdown;
    joules += share * p.slowdown * p.node_w;
  }
  mean.node_w = joules / mean.slowdown;
  return mean;
}

void share_in_cluster(HallState& s, int c) {
  const Cluster& cluster = s.plan.clusters[at(c)];
  std::vector<User> users;
  for (const int j : s.running) {
    JobNow& n = s.now(j);
    if (s.job(j).cluster != c) continue;
    n.links = {};
    const std::vector<LinkPoint>& law = s.job(j).points[n.point].links;
    if (law.size() < 2 || n.start_left_s > 0) continue;
    User user{j, &law, {}, sending(law), 0, {}};
    for (const int node : n.nodes) ++user.nodes[cluster.unit.empty() ? 0 : cluster.unit[at(node)]];
    user.busy = user.alone;
    if (user.nodes.size() > 1) users.push_back(std::move(user));
  }
  if (users.size() < 2) return;
  for (int turn = 0; turn < kTurns; ++turn) {
    double moved = 0;
    for (User& user : users) {
      LinkPoint worst;
      for (const auto& [unit, nodes] : user.nodes) {
        std::vector<const User*> others;
        for (const User& o : users)
          if (o.job != user.job && o.busy > 0 && o.nodes.count(unit) > 0) others.push_back(&o);
        if (others.empty()) continue;
        const LinkPoint p = mean_in_unit(user, others, unit, cluster.uplink_nodes);
        if (p.slowdown > worst.slowdown) worst = p;
      }
      moved = std::max(moved, std::abs(worst.slowdown - user.now.slowdown));
      user.now = worst;
    }
    for (User& user : users) user.busy = std::min(1.0, user.alone * user.now.squeeze / user.now.slowdown);
    if (moved < kSettled) break;
  }
  for (const User& user : users)
    if (user.now.slowdown > 1) s.now(user.job).links = user.now;
}

}  // namespace

void share_links(HallState& s) {
  for (size_t c = 0; c < s.plan.clusters.size(); ++c)
    if (s.plan.clusters[c].uplink_nodes < kNever) share_in_cluster(s, static_cast<int>(c));
}

}  // namespace tw::hall
