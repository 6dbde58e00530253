#include "network/hashed_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tw::network {
namespace {

// Whole number between low and high, distributed as `log_part` says (logarithm of a probability, up to a constant).
template <class LogPart>
double draw_number(double low, double high, double mean, double variance, const LogPart& log_part, SplitMix64& stream) {
  if (high <= low) return low;
  constexpr double kLarge = 100;
  if (variance > kLarge) {
    const double angle = 2 * std::numbers::pi * uniform(stream), length = std::sqrt(-2 * std::log(uniform(stream)));
    return std::clamp(std::round(mean + std::sqrt(variance) * length * std::cos(angle)), low, high);
  }
  // All that is likely at all, from the mean outwards.
  const double wide = std::ceil(12 + 9 * std::sqrt(variance)), first = std::max(low, std::floor(mean) - wide),
               last = std::min(high, std::ceil(mean) + wide);
  std::vector<double> parts;
  double most = -HUGE_VAL, sum = 0;
  for (double x = first; x <= last; ++x) {
    parts.push_back(log_part(x));
    most = std::max(most, parts.back());
  }
  for (double& p : parts) sum += p = std::exp(p - most);
  double left = uniform(stream) * sum;
  size_t i = 0;
  while (i + 1 < parts.size() && left >= parts[i]) left -= parts[i++];
  return first + static_cast<double>(i);
}

double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

class TreeHash {
 public:
  TreeHash(const Fabric& fabric, const TreeLevels& tree, const TreeLevels::Traffic& flows, SplitMix64& stream,
           std::vector<LinkShare>& carried)
      : fabric_(fabric),
        tree_(tree),
        flows_(flows),
        stream_(stream),
        carried_(carried),
        climbing_(fabric.vertices.size(), 0),
        falling_(fabric.vertices.size(), 0),
        switches_(static_cast<size_t>(tree.levels()) + 1) {
    for (size_t v = 0; v < fabric.vertices.size(); ++v)
      if (const int tier = tree.tier(static_cast<int>(v)); tier > 0)
        switches_[static_cast<size_t>(tier)].push_back(static_cast<int>(v));
  }

  void run() {
    for (const int leaf : switches_[1]) climbing_[at(leaf)] = flows_.leaving[at(tree_.component(1, leaf))];
    for (int level = 1; level < tree_.levels(); ++level) {
      for (const int v : switches_[static_cast<size_t>(level)]) split(v, true, -1, climbing_[at(v)], climbing_);
      for (const auto& [component, tops] : tops_of(level + 1)) turn(tops, flows_.leaving[at(component)]);
    }
    for (int level = tree_.levels(); level > 1; --level)
      for (const auto& [component, tops] : tops_of(level)) fall(level, tops);
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }

  std::map<int, std::vector<int>> tops_of(int level) const {
    std::map<int, std::vector<int>> tops;
    for (const int v : switches_[at(level)]) tops[tree_.component(level, v)].push_back(v);
    return tops;
  }

  // Over the cables up, or those down to a component, each of which a hash takes as often.
  void split(int v, bool up, int component, double flows, std::vector<double>& arriving) {
    if (flows <= 0) return;
    std::vector<std::pair<int, int>> cables;  // (link, switch)
    const int tier = tree_.tier(v);
    for (const int id : fabric_.cables_at[at(v)]) {
      const Cable& c = fabric_.cables[at(id)];
      const int to = c.a == v ? c.b : c.a;
      if (c.failed || fabric_.vertices[at(to)].kind != VertexKind::network_switch || fabric_.vertices[at(to)].failed)
        continue;
      if (up ? tree_.tier(to) == tier + 1 : tree_.tier(to) == tier - 1 && tree_.component(tier - 1, to) == component)
        cables.emplace_back(fabric_.link(id, v), to);
    }
    for (size_t i = 0; i < cables.size(); ++i) {
      const double taken = draw_way(flows, static_cast<int>(cables.size() - i), stream_);
      flows -= taken;
      if (taken <= 0) continue;
      carried_.push_back({cables[i].first, taken});
      arriving[at(cables[i].second)] += taken;
    }
  }

  // Of what has come up to the top of a component so many flows go on; the rest turns there.
  void turn(const std::vector<int>& tops, double onwards) {
    double here = 0;
    for (const int v : tops) here += climbing_[at(v)];
    onwards = std::min(onwards, here);
    for (const int v : tops) {
      const double goes_on = draw_marked(here, onwards, climbing_[at(v)], stream_);
      here -= climbing_[at(v)];
      onwards -= goes_on;
      falling_[at(v)] += climbing_[at(v)] - goes_on;
      climbing_[at(v)] = goes_on;
    }
  }

  // What is at the top of a component goes down to those below it, to each what enters it.
  void fall(int level, const std::vector<int>& tops) {
    std::map<int, double> wanted;  // component below -> flows
    for (const int v : tops)
      for (const int id : fabric_.cables_at[at(v)]) {
        const Cable& c = fabric_.cables[at(id)];
        const int to = c.a == v ? c.b : c.a;
        if (tree_.tier(to) != level - 1) continue;
        const int below = tree_.component(level - 1, to);
        if (flows_.entering[at(below)] > 0) wanted[below] = flows_.entering[at(below)];
      }
    double all = 0;
    for (const auto& [below, flows] : wanted) all += flows;
    for (const int v : tops) {
      double here = std::min(falling_[at(v)], all), others = all;
      all -= here;
      for (auto& [below, flows] : wanted) {
        const double taken = draw_marked(others, flows, here, stream_);
        others -= flows;
        here -= taken;
        flows -= taken;
        split(v, false, below, taken, falling_);
      }
    }
  }

  const Fabric& fabric_;
  const TreeLevels& tree_;
  const TreeLevels::Traffic& flows_;
  SplitMix64& stream_;
  std::vector<LinkShare>& carried_;
  std::vector<double> climbing_, falling_;  // by switch
  std::vector<std::vector<int>> switches_;  // by tier
};

}  // namespace

double draw_marked(double all, double marked, double drawn, SplitMix64& stream) {
  const double low = std::max(0.0, drawn - (all - marked)), high = std::min(marked, drawn);
  if (high <= low || all <= 1) return std::max(low, 0.0);
  const double part = marked / all, mean = drawn * part;
  const double variance = mean * (1 - part) * (all - drawn) / (all - 1);
  return draw_number(
      low, high, mean, variance, [&](double x) { return log_choose(marked, x) + log_choose(all - marked, drawn - x); },
      stream);
}

double draw_way(double flows, int ways, SplitMix64& stream) {
  if (ways <= 1) return flows;
  const double part = 1.0 / ways;
  return draw_number(
      0, flows, flows * part, flows * part * (1 - part),
      [&](double x) { return log_choose(flows, x) - x * std::log(ways - 1.0); }, stream);
}

void hash_through_tree(const Fabric& fabric, const TreeLevels& tree, const TreeLevels::Traffic& flows,
                       SplitMix64& stream, std::vector<LinkShare>& carried) {
  TreeHash(fabric, tree, flows, stream, carried).run();
}

void hash_towards(const Fabric& fabric, Router& router, int to, const std::map<int, double>& flows, SplitMix64& stream,
                  std::vector<LinkShare>& carried) {
  std::map<int, std::map<int, double>, std::greater<>> by_distance;
  for (const auto& [from, count] : flows)
    if (count > 0 && from != to) by_distance[router.distance(from, to)][from] += count;
  while (!by_distance.empty()) {
    const auto [distance, here] = *by_distance.begin();
    by_distance.erase(by_distance.begin());
    if (distance <= 0) return;
    for (const auto& [v, count] : here) {
      const std::vector<int> links = router.next_links(v, to);
      double left = count;
      for (size_t i = 0; i < links.size(); ++i) {
        const double taken = draw_way(left, static_cast<int>(links.size() - i), stream);
        left -= taken;
        if (taken <= 0) continue;
        carried.push_back({links[i], taken});
        const Cable& c = fabric.cables[static_cast<size_t>(links[i] / 2)];
        by_distance[distance - 1][links[i] % 2 == 0 ? c.b : c.a] += taken;
      }
    }
  }
}

}  // namespace tw::network
