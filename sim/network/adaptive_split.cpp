#include "network/adaptive_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "network/linear_program.hpp"

namespace tw::network {
namespace {

constexpr double kClose = 3e-10;  // relative: two splits are taken for equally good

// All shortest ways from some switches to one, the farthest switch first, the destination last.
struct Ways {
  struct Hop {
    size_t to = 0;  // switch of `at`
    int link = 0;
  };
  struct At {
    double entering = 0;
    size_t first = 0;  // of hops
  };
  std::vector<At> at;
  std::vector<int> switches;  // of `at`
  std::vector<Hop> hops;
};

// Bytes on links, in order of links.
using Column = std::vector<std::pair<int, double>>;

class Splitter {
 public:
  Splitter(const Fabric& fabric, Router& router, const std::vector<double>& load, bool told, const SplitLimits& limits)
      : fabric_(fabric), router_(router), load_(load), told_(told), limits_(limits) {}

  BalancedSplit solve(const SwitchDemands& demands, SplitTable* table) {
    BalancedSplit answer;
    if (!any_choice(demands)) return answer;
    find_fullest();
    const double least_s = std::max(floor_, ends_s(demands));
    if (most_ <= least_s * (1 + kClose)) return answer;
    if (!find_ways(demands)) {
      answer.ended = fmt::format(
          "adaptive routing is left at what each switch sees of its next cables, as the shortest "
          "ways are more than {} links together",
          limits_.links);
      answer.over = most_ / least_s;
      return answer;
    }
    find_links();
    for (const Ways& ways : ways_) present_.push_back(split(ways, {}));
    // Is it the best already? Prices on the fullest links, all alike, tell it where ways are symmetric.
    std::vector<size_t> fullest;
    for (const size_t l : links_)
      if (used_s(l) >= most_ * (1 - 1e-9)) fullest.push_back(l);
    double capacity = 0;
    for (const size_t l : fullest) capacity += capacity_of(l);
    for (const size_t l : fullest) price_[l] = 1 / capacity;
    if (add_columns({}) <= kClose) return answer;
    rows_ = std::move(fullest);
    if (!improve(least_s / most_)) {
      answer.ended = "adaptive routing takes the best split of a search that was cut short";
      answer.over = best_ / proven_;
    }
    if (best_ >= 1 - kClose) return answer;
    for (const auto& [link, bytes] : best_change_) answer.changes.push_back({link, bytes});
    if (table != nullptr) tell(*table);
    return answer;
  }

 private:
  struct Other {
    size_t destination = 0;
    Column change;  // against the present split
    SplitTable::Part way;
  };

  void find_fullest() {
    for (size_t l = 0; l < load_.size(); ++l) {
      if (load_[l] <= 0) continue;
      double& fullest = between_switches(fabric_, l) ? most_ : floor_;
      fullest = std::max(fullest, used_s(l));
    }
    floor_ = std::max(floor_, mean_cable_s(fabric_, load_));
  }

  // A fabric may have many times the links that the ways and the loads of an exchange are on.
  void find_links() {
    for (size_t l = 0; l < load_.size(); ++l)
      if (load_[l] > 0 && between_switches(fabric_, l)) links_.push_back(l);
    for (const Ways& ways : ways_)
      for (const Ways::Hop& hop : ways.hops) links_.push_back(static_cast<size_t>(hop.link));
    std::sort(links_.begin(), links_.end());
    links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
    price_.assign(load_.size(), 0), change_.assign(load_.size(), 0), row_of_link_.assign(load_.size(), 0);
  }

  double capacity_of(size_t link) const { return fabric_.link_capacity_Bps(static_cast<int>(link)); }
  double used_s(size_t link) const { return load_[link] / capacity_of(link); }
  // No split is faster than all cables of a switch for what begins or ends there.
  double ends_s(const SwitchDemands& demands) const {
    std::vector<double> out(fabric_.vertices.size(), 0), in = out;
    for (const auto& [to, sources] : demands)
      for (const auto& [from, bytes] : sources) {
        out[static_cast<size_t>(from)] += bytes;
        in[static_cast<size_t>(to)] += bytes;
      }
    double slowest = 0;
    for (size_t v = 0; v < out.size(); ++v) {
      if (out[v] + in[v] == 0) continue;
      double capacity = 0;
      for (const int id : fabric_.cables_at[v])
        if (!fabric_.cables[static_cast<size_t>(id)].failed && between_switches(fabric_, 2 * static_cast<size_t>(id)))
          capacity += fabric_.cables[static_cast<size_t>(id)].capacity_Bps;
      slowest = std::max(slowest, std::max(out[v], in[v]) / capacity);
    }
    return slowest;
  }

  // Between neighbours there is none.
  bool any_choice(const SwitchDemands& demands) const {
    for (const auto& [to, sources] : demands)
      for (const auto& source : sources)
        if (router_.distance(source.first, to) > 1 || router_.next_links(source.first, to).size() > 1) return true;
    return false;
  }

  bool find_ways(const SwitchDemands& demands) {
    size_t links = 0;
    std::vector<int> index(fabric_.vertices.size(), -1);
    for (const auto& [to, sources] : demands) {
      if (sources.size() > 4) router_.search_whole(to);
      Ways ways;
      std::vector<std::vector<int>> by_distance;
      const auto reach = [&](int v) {
        if (index[static_cast<size_t>(v)] >= 0) return;
        index[static_cast<size_t>(v)] = 0;
        const auto d = static_cast<size_t>(router_.distance(v, to));
        if (by_distance.size() <= d) by_distance.resize(d + 1);
        by_distance[d].push_back(v);
      };
      for (const auto& source : sources) reach(source.first);
      std::vector<std::pair<int, int>> hops;  // (switch, link)
      std::vector<int>& order = ways.switches;
      for (size_t d = by_distance.size(); d-- > 0;)
        for (size_t i = 0; i < by_distance[d].size(); ++i) {
          const int v = by_distance[d][i];
          index[static_cast<size_t>(v)] = static_cast<int>(order.size());
          order.push_back(v);
          ways.at.push_back({0, hops.size()});
          if (d == 0) continue;
          for (const int link : router_.next_links(v, to)) {
            const Cable& c = fabric_.cables[static_cast<size_t>(link / 2)];
            const int next = link % 2 == 0 ? c.b : c.a;
            if (index[static_cast<size_t>(next)] < 0) {
              by_distance[d - 1].push_back(next);
              index[static_cast<size_t>(next)] = 0;
            }
            hops.emplace_back(next, link);
          }
        }
      for (const auto& [next, link] : hops)
        ways.hops.push_back({static_cast<size_t>(index[static_cast<size_t>(next)]), link});
      for (const auto& [from, bytes] : sources)
        ways.at[static_cast<size_t>(index[static_cast<size_t>(from)])].entering += bytes;
      for (const int v : order) index[static_cast<size_t>(v)] = -1;
      links += ways.hops.size();
      ways_.push_back(std::move(ways));
      if (links > limits_.links) return false;
    }
    return true;
  }

  size_t end_of(const Ways& ways, size_t v) const {
    return v + 1 < ways.at.size() ? ways.at[v + 1].first : ways.hops.size();
  }

  // Bytes on every link when each switch splits by capacity over its next cables; with what it costs from each switch
  // on, over the cheapest only.
  Column split(const Ways& ways, const std::vector<double>& cost, SplitTable::Part* way = nullptr) const {
    Column column;
    std::vector<double> bytes;
    for (const Ways::At& at : ways.at) bytes.push_back(at.entering);
    const double rounding = cost.empty() ? 0 : 1e-13 * *std::max_element(cost.begin(), cost.end());
    const auto takes = [&](size_t v, const Ways::Hop& hop) {
      return cost.empty() || price_[static_cast<size_t>(hop.link)] + cost[hop.to] <= cost[v] + rounding;
    };
    for (size_t v = 0; v < ways.at.size(); ++v) {
      if (bytes[v] == 0) continue;
      double capacity = 0;
      for (size_t h = ways.at[v].first; h < end_of(ways, v); ++h)
        if (takes(v, ways.hops[h])) capacity += capacity_of(static_cast<size_t>(ways.hops[h].link));
      for (size_t h = ways.at[v].first; h < end_of(ways, v); ++h) {
        const Ways::Hop& hop = ways.hops[h];
        if (!takes(v, hop)) continue;
        const double part = bytes[v] * capacity_of(static_cast<size_t>(hop.link)) / capacity;
        column.emplace_back(hop.link, part);
        if (way != nullptr) way->next[ways.switches[v]].push_back({hop.link, part / bytes[v]});
        bytes[hop.to] += part;
      }
    }
    std::sort(column.begin(), column.end());
    return column;
  }

  // From each switch on at least, at the prices of the links.
  std::vector<double> cheapest(const Ways& ways) const {
    std::vector<double> cost(ways.at.size(), 0);
    for (size_t v = ways.at.size(); v-- > 0;) {
      if (ways.at[v].first == end_of(ways, v)) continue;
      double least = std::numeric_limits<double>::infinity();
      for (size_t h = ways.at[v].first; h < end_of(ways, v); ++h)
        least = std::min(least, price_[static_cast<size_t>(ways.hops[h].link)] + cost[ways.hops[h].to]);
      cost[v] = least;
    }
    return cost;
  }

  // Adds the cheapest split of each destination for which it saves more than `known` of those in hand. Returns what all
  // could save together, as a part of the fullest link's time.
  double add_columns(const std::vector<double>& known) {
    double all = 0;
    for (size_t t = 0; t < ways_.size(); ++t) {
      double now = 0;
      for (const auto& [link, bytes] : present_[t]) now += price_[static_cast<size_t>(link)] * bytes;
      if (now == 0) continue;
      const std::vector<double> cost = cheapest(ways_[t]);
      for (size_t v = 0; v < cost.size(); ++v) now -= cost[v] * ways_[t].at[v].entering;
      now /= most_;
      all += std::max(0.0, now);
      if (now <= (known.empty() ? 0 : known[t]) + kClose / 10) continue;
      added_ = true;
      SplitTable::Part way;
      others_.push_back({t, difference(split(ways_[t], cost, told_ ? &way : nullptr), present_[t]), std::move(way)});
    }
    return all;
  }

  static Column difference(const Column& a, const Column& b) {
    Column d;
    for (size_t i = 0, j = 0; i < a.size() || j < b.size();)
      if (j == b.size() || (i < a.size() && a[i].first < b[j].first))
        d.push_back(a[i++]);
      else if (i == a.size() || b[j].first < a[i].first)
        d.emplace_back(b[j].first, -b[j].second), ++j;
      else
        d.emplace_back(a[i].first, a[i].second - b[j].second), ++i, ++j;
    return d;
  }

  // The splits of the best round.
  void tell(SplitTable& table) {
    for (size_t j = 0; j < others_.size() && j < best_parts_.size(); ++j) {
      if (best_parts_[j] <= 0) continue;
      others_[j].way.share = best_parts_[j];
      table.add(ways_[others_[j].destination].switches.back(), std::move(others_[j].way));
    }
  }

  // Times are in units of the fullest link's under the present split: x[0] is by how much less they are, and `proven_`
  // what no split is under. Is the best one found?
  bool improve(double least) {
    proven_ = least;
    double work = limits_.work;
    while (work > 0) {
      std::vector<size_t> row_of_destination(ways_.size(), 0);
      std::vector<double> limits{1 - floor_ / most_};
      for (const size_t l : rows_) {
        row_of_link_[l] = limits.size();
        limits.push_back(1 - used_s(l) / most_);
      }
      for (const Other& other : others_)
        if (row_of_destination[other.destination] == 0) {
          row_of_destination[other.destination] = limits.size();
          limits.push_back(1);
        }
      const size_t columns = 1 + others_.size();
      work -= static_cast<double>(limits.size() * (columns + limits.size()));
      for (double& limit : limits) limit = std::max(0.0, limit);
      std::vector<std::vector<double>> table(limits.size(), std::vector<double>(columns, 0));
      for (size_t i = 0; i <= rows_.size(); ++i) table[i][0] = 1;
      for (size_t j = 0; j < others_.size(); ++j) {
        table[row_of_destination[others_[j].destination]][1 + j] = 1;
        for (const auto& [link, bytes] : others_[j].change)
          if (const size_t row = row_of_link_[static_cast<size_t>(link)]; row > 0)
            table[row][1 + j] += bytes / capacity_of(static_cast<size_t>(link)) / most_;
      }
      const LinearSolution solved = largest_first(std::move(table), limits, work);

      const double hoped = 1 - solved.x[0], reached = weigh(solved.x, hoped);
      if (work <= 0) return false;
      double bound = solved.prices[0] * floor_ / most_;
      for (const size_t l : rows_) {
        if (row_of_link_[l] == 0) continue;  // it is for the next round
        price_[l] = std::max(0.0, solved.prices[row_of_link_[l]]) / capacity_of(l);
        bound += price_[l] * load_[l] / most_;
      }
      std::vector<double> known(ways_.size(), 0);
      for (size_t t = 0; t < ways_.size(); ++t)
        if (row_of_destination[t] > 0) known[t] = std::max(0.0, solved.prices[row_of_destination[t]]);
      const bool full = added_rows_;
      added_ = false;
      bound -= add_columns(known);
      proven_ = std::max(proven_, bound);
      if (std::min(best_, reached) <= proven_ * (1 + kClose) || (!added_ && !full)) return true;
    }
    return false;
  }

  // The time of the fullest link when the other splits are taken in the parts x; what is fuller than hoped becomes a
  // row of the program. The best of all rounds is kept.
  double weigh(const std::vector<double>& x, double hoped) {
    for (const size_t l : links_) change_[l] = 0;
    for (size_t j = 0; j < others_.size(); ++j)
      if (x[1 + j] > 0)
        for (const auto& [link, bytes] : others_[j].change) change_[static_cast<size_t>(link)] += x[1 + j] * bytes;
    double fullest = floor_ / most_;
    std::vector<std::pair<double, size_t>> over;
    for (const size_t l : links_) {
      const double used = (load_[l] + change_[l]) / capacity_of(l) / most_;
      fullest = std::max(fullest, used);
      if (used > hoped * (1 + kClose)) over.emplace_back(-used, l);
    }
    std::sort(over.begin(), over.end());
    constexpr size_t kMostNew = 64;
    added_rows_ = false;
    for (size_t i = 0; i < std::min(kMostNew, over.size()); ++i)
      if (std::find(rows_.begin(), rows_.end(), over[i].second) == rows_.end()) {
        rows_.push_back(over[i].second);
        added_rows_ = true;
      }
    if (fullest < best_) {
      best_ = fullest;
      best_change_.clear();
      for (const size_t l : links_)
        if (change_[l] != 0) best_change_.emplace_back(static_cast<int>(l), change_[l]);
      best_parts_.assign(x.begin() + 1, x.end());
    }
    return fullest;
  }

  const Fabric& fabric_;
  Router& router_;
  const std::vector<double>& load_;
  double floor_ = 0, most_ = 0;  // s: of links that do not matter here; of the fullest that does
  std::vector<Ways> ways_;       // by destination
  std::vector<Column> present_;
  std::vector<Other> others_;
  std::vector<size_t> rows_;   // links that the program heeds
  std::vector<double> price_;  // by link, for each byte
  std::vector<double> change_;
  std::vector<size_t> row_of_link_, links_;  // the links that change or carry anything
  Column best_change_;
  std::vector<double> best_parts_;  // of others_
  double best_ = 1, proven_ = 0;
  const bool told_;  // to a table of splits
  const SplitLimits limits_;
  bool added_ = false, added_rows_ = false;
};

}  // namespace

double mean_cable_s(const Fabric& fabric, const std::vector<double>& load) {
  double bytes = 0, Bps = 0;
  for (size_t l = 0; l < load.size(); ++l) {
    if (!between_switches(fabric, l) || fabric.cables[l / 2].failed) continue;
    bytes += load[l];
    Bps += fabric.link_capacity_Bps(static_cast<int>(l));
  }
  return Bps > 0 ? bytes / Bps : 0;
}

bool between_switches(const Fabric& fabric, size_t link) {
  if (static_cast<int>(link) >= fabric.cable_links()) return false;
  const CableKind kind = fabric.cables[link / 2].kind;
  return kind != CableKind::nic && kind != CableKind::nvlink;
}

BalancedSplit balanced_split(const Fabric& fabric, Router& router, const SwitchDemands& demands,
                             const std::vector<double>& load, SplitTable* table, const SplitLimits& limits) {
  return Splitter(fabric, router, load, table != nullptr, limits).solve(demands, table);
}

}  // namespace tw::network
