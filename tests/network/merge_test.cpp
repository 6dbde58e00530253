#include <catch2/catch.hpp>
#include <cmath>

#include "core/random.hpp"
#include "network/link_merge.hpp"

using namespace tw;
using namespace tw::network;

namespace {

// Max-min fair rates by progressive filling, the slow and obvious way: classes count bytes on their own bottleneck.
std::vector<double> fair_rates(const std::vector<double>& capacity, const std::vector<std::vector<double>>& load,
                               const std::vector<double>& alone) {
  const size_t n = alone.size();
  std::vector<double> rate(n, 0);
  std::vector<char> fixed(n, 0);
  std::vector<double> left = capacity;
  for (;;) {
    double step = 1e300;
    for (size_t l = 0; l < left.size(); ++l) {
      double users = 0;
      for (size_t k = 0; k < n; ++k) users += fixed[k] ? 0 : load[l][k];
      if (users > 0) step = std::min(step, left[l] / users);
    }
    for (size_t k = 0; k < n; ++k)
      if (!fixed[k]) step = std::min(step, alone[k] - rate[k]);
    bool any = false;
    for (size_t k = 0; k < n; ++k) any = any || !fixed[k];
    if (!any) return rate;
    for (size_t k = 0; k < n; ++k)
      if (!fixed[k]) rate[k] += step;
    for (size_t l = 0; l < left.size(); ++l)
      for (size_t k = 0; k < n; ++k)
        if (!fixed[k]) left[l] -= step * load[l][k];
    for (size_t k = 0; k < n; ++k) {
      if (rate[k] >= alone[k] * (1 - 1e-12)) fixed[k] = 1;
      for (size_t l = 0; l < left.size(); ++l)
        if (load[l][k] > 0 && left[l] <= capacity[l] * 1e-12) fixed[k] = 1;
    }
  }
}

}  // namespace

TEST_CASE("whole proportions are exact for ratios of small whole numbers") {
  CHECK(whole_proportions({1, 0.5, 0.25}, 64) == std::vector<int>{4, 2, 1});
  CHECK(whole_proportions({1.75, 1.75}, 64) == std::vector<int>{1, 1});
  CHECK(whole_proportions({0.3, 0.2}, 64) == std::vector<int>{3, 2});
  const auto rough = whole_proportions({1, 1e-6}, 64);
  CHECK(rough[1] == 1);
  CHECK(rough[0] == 64);
}

TEST_CASE("merging links changes no rate") {
  auto stream = random_stream(7, "merge test");
  for (int round = 0; round < 60; ++round) {
    const int link_count = 3 + static_cast<int>(stream() % 12), class_count = 2 + static_cast<int>(stream() % 5);
    std::vector<Link> links;
    for (int l = 0; l < link_count; ++l)
      links.push_back({"l" + std::to_string(l), 10.0 * static_cast<double>(1 + stream() % 4)});
    std::vector<LoadClass> classes;
    for (int k = 0; k < class_count; ++k) {
      LoadClass c{"c" + std::to_string(k), {}, 0};
      for (int l = 0; l < link_count; ++l)
        if (stream() % 2 == 0) c.uses.push_back({l, static_cast<double>(1 + stream() % 3)});
      if (c.uses.empty()) c.uses.push_back({0, 1});
      classes.push_back(c);
    }
    const MergedNetwork merged = merge_links(links, classes);
    CHECK(merged.capacity.size() <= links.size());
    const auto n = static_cast<size_t>(class_count);
    std::vector<double> alone, full_capacity;
    std::vector<std::vector<double>> full(links.size(), std::vector<double>(n, 0)),
        small(merged.capacity.size(), std::vector<double>(n, 0));
    for (const Link& l : links) full_capacity.push_back(l.capacity_Bps);
    for (size_t k = 0; k < n; ++k) {
      alone.push_back(merged.classes[k].alone_rate);
      for (const LinkUse& u : classes[k].uses)
        full[static_cast<size_t>(u.link)][k] += u.weight / merged.classes[k].unit;
      for (const MergedUse& u : merged.classes[k].shared) small[static_cast<size_t>(u.link)][k] += u.multiplicity;
    }
    const auto before = fair_rates(full_capacity, full, alone), after = fair_rates(merged.capacity, small, alone);
    for (size_t k = 0; k < n; ++k) CHECK(after[k] == Approx(before[k]).epsilon(1e-9));
  }
}

TEST_CASE("links of one class, equal and implied links disappear") {
  std::vector<Link> links;
  for (int i = 0; i < 100; ++i) links.push_back({"l", i < 50 ? 10.0 : 20.0});
  LoadClass a{"a", {}, 0}, b{"b", {}, 0};
  for (int i = 0; i < 100; ++i) {
    a.uses.push_back({i, 1});
    if (i % 2 == 0) b.uses.push_back({i, 1});
  }
  const MergedNetwork m = merge_links(links, {a, b});
  CHECK(m.capacity.size() == 1);
  CHECK(m.capacity[0] == 10);
}
