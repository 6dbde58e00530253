#include "network/link_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"

namespace tw::network {
namespace {

struct User {
  int load_class = 0;
  double pressure = 0;  // seconds of the link for each unit of the class
  bool operator<(const User& o) const {
    return load_class != o.load_class ? load_class < o.load_class : pressure < o.pressure;
  }
};
using Constraint = std::vector<User>;  // by class; sum of pressure * rate <= 1

// Is `a` implied by `b`?
bool implied(const Constraint& a, const Constraint& b) {
  auto at = b.begin();
  for (const User& u : a) {
    while (at != b.end() && at->load_class < u.load_class) ++at;
    if (at == b.end() || at->load_class != u.load_class || u.pressure > at->pressure * (1 + 1e-12)) return false;
  }
  return true;
}

void check(const std::vector<Link>& links, const LoadClass& c) {
  for (const LinkUse& use : c.uses) {
    if (use.link < 0 || static_cast<size_t>(use.link) >= links.size())
      throw SimulationError(fmt::format("\"{}\" crosses link {}, which does not exist", c.name, use.link));
    const Link& l = links[static_cast<size_t>(use.link)];
    const auto name = [&] { return l.name.empty() ? fmt::format("link {}", use.link) : l.name; };
    if (!(l.capacity_Bps > 0) || !std::isfinite(l.capacity_Bps))
      throw SimulationError(fmt::format("\"{}\" crosses {}, which has no capacity", c.name, name()));
    if (!(use.weight >= 0) || !std::isfinite(use.weight))
      throw SimulationError(fmt::format("\"{}\" loads {} with weight {}", c.name, name(), use.weight));
  }
  if (!(c.latency_s >= 0) || !std::isfinite(c.latency_s))
    throw SimulationError(fmt::format("\"{}\" has a latency of {} s", c.name, c.latency_s));
}

// A class may list a link several times.
std::vector<LinkUse> gathered(const LoadClass& c) {
  std::vector<LinkUse> uses = c.uses;
  std::stable_sort(uses.begin(), uses.end(), [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  size_t kept = 0;
  for (const LinkUse& use : uses) {
    if (kept > 0 && uses[kept - 1].link == use.link)
      uses[kept - 1].weight += use.weight;
    else
      uses[kept++] = use;
  }
  uses.resize(kept);
  std::erase_if(uses, [](const LinkUse& u) { return u.weight == 0; });
  return uses;
}

std::vector<Constraint> without_implied(std::vector<Constraint> all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end(),
                        [](const Constraint& a, const Constraint& b) { return !(a < b) && !(b < a); }),
            all.end());
  // A constraint can only be implied by one that its first class uses too.
  std::map<int, std::vector<size_t>> of_class;
  for (size_t i = 0; i < all.size(); ++i)
    for (const User& u : all[i]) of_class[u.load_class].push_back(i);
  std::vector<char> dropped(all.size(), 0);
  for (size_t i = 0; i < all.size(); ++i)
    for (const size_t j : of_class[all[i].front().load_class]) {
      if (i == j || dropped[j] != 0 || all[j].size() < all[i].size() || !implied(all[i], all[j])) continue;
      dropped[i] = 1;
      break;
    }
  std::vector<Constraint> kept;
  for (size_t i = 0; i < all.size(); ++i)
    if (dropped[i] == 0) kept.push_back(std::move(all[i]));
  return kept;
}

}  // namespace

std::vector<int> whole_proportions(const std::vector<double>& weights, int most) {
  const auto [low, high] = std::minmax_element(weights.begin(), weights.end());
  const double least = *low, spread = *high / least;
  double best_scale = most / spread, best_error = 1e9;
  for (int k = 1; k * spread <= most + 1e-9; ++k) {
    double error = 0;
    for (const double w : weights) {
      const double v = w / least * k;
      error = std::max(error, std::abs(std::round(v) / v - 1));
    }
    if (error < best_error - 1e-10) {
      best_error = error;
      best_scale = k;
    }
  }
  std::vector<int> whole;
  whole.reserve(weights.size());
  for (const double w : weights) whole.push_back(std::max(1, static_cast<int>(std::lround(w / least * best_scale))));
  return whole;
}

double alone_s(const std::vector<Link>& links, const LoadClass& c, double bytes) {
  double slowest = 0;
  for (const LinkUse& use : gathered(c))
    slowest = std::max(slowest, use.weight / links[static_cast<size_t>(use.link)].capacity_Bps);
  return c.latency_s + bytes * slowest;
}

MergedNetwork merge_links(const std::vector<Link>& links, const std::vector<LoadClass>& classes) {
  MergedNetwork net;
  net.links_before = static_cast<int>(links.size());
  std::vector<Constraint> users(links.size());
  for (size_t k = 0; k < classes.size(); ++k) {
    check(links, classes[k]);
    const std::vector<LinkUse> uses = gathered(classes[k]);
    MergedClass merged;
    merged.latency_s = classes[k].latency_s;
    merged.unit = 0;
    double slowest = 0;
    for (const LinkUse& use : uses) {
      const double capacity = links[static_cast<size_t>(use.link)].capacity_Bps;
      if (use.weight / capacity <= slowest) continue;
      slowest = use.weight / capacity;
      merged.unit = use.weight;
      merged.alone_rate = capacity;
    }
    for (const LinkUse& use : uses) {
      const auto l = static_cast<size_t>(use.link);
      users[l].push_back({static_cast<int>(k), use.weight / merged.unit / links[l].capacity_Bps});
    }
    net.classes.push_back(std::move(merged));
  }
  std::erase_if(users, [](const Constraint& c) { return c.size() < 2; });
  for (const Constraint& c : without_implied(std::move(users))) {
    std::vector<double> weights;
    for (const User& u : c) weights.push_back(u.pressure);
    const std::vector<int> whole = whole_proportions(weights, 64);
    // Rounding must not slow the heaviest user down: the capacity is scaled by its weight.
    const auto heaviest = static_cast<size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
    const int link = static_cast<int>(net.capacity.size());
    net.capacity.push_back(whole[heaviest] / weights[heaviest]);
    for (size_t i = 0; i < c.size(); ++i)
      net.classes[static_cast<size_t>(c[i].load_class)].shared.push_back({link, whole[i]});
  }
  return net;
}

}  // namespace tw::network
