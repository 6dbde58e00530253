#include "report/collective_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;
using network::CollectiveCost;

double algorithm_bandwidth_Bps(const CollectiveCost& c) {
  return c.time_s > 0 ? c.bytes / c.time_s : 0;
}

double bound_ratio(const CollectiveCost& c) {
  return c.bound_s > 0 ? c.time_s / c.bound_s : 1;
}

std::string algorithm_of(const CollectiveCost& c) {
  return c.inside_domain ? "measured" : c.algorithm;
}

json choices_json(const CollectiveCost& c) {
  json list = json::array();
  for (const network::Considered& k : c.considered) {
    if (!k.refusal.empty()) {
      list.push_back({{"algorithm", k.algorithm}, {"refused", k.refusal}});
      continue;
    }
    list.push_back(
        {{"algorithm", k.algorithm},
         {"protocol", k.protocol == network::Protocol::automatic ? json(nullptr) : json(choice_name(k.protocol))},
         {"time_s", k.time_s},
         {"assumed_s", k.assumed_s}});
    if (k.listed) list.back()["listed"] = true;
    if (!k.because.empty()) list.back()["because"] = k.because;
  }
  return list;
}

json json_of(const CollectiveCost& c, int level) {
  json answer = {{"op", choice_name(c.operation)},
                 {"bytes", c.bytes},
                 {"ranks", c.ranks},
                 {"algorithm", c.algorithm},
                 {"time_s", c.time_s},
                 {"busbw_Bps", c.bus_bandwidth_Bps()},
                 {"bound_s", c.bound_s},
                 {"bottleneck", c.bottleneck},
                 {"protocol", c.inside_domain ? json(nullptr) : json(choice_name(c.protocol))},
                 {"algbw_Bps", algorithm_bandwidth_Bps(c)},
                 {"latency_s", c.inside_domain ? json(nullptr) : json(c.load.latency_s)},
                 {"bound_ratio", bound_ratio(c)},
                 {"level", level}};
  if (c.late_s > 0) answer["late_s"] = c.late_s;
  if (!c.considered.empty()) answer["considered"] = choices_json(c);
  if (!c.remark.empty()) answer["warnings"] = {c.remark};
  return answer;
}

}  // namespace

std::string collective_json(const CollectiveCost& cost, int level) {
  return json_of(cost, level).dump(2) + "\n";
}

std::string collectives_json(const std::vector<CollectiveCost>& costs, int level) {
  json all = json::array();
  for (const CollectiveCost& c : costs) all.push_back(json_of(c, level));
  return all.dump(2) + "\n";
}

std::string collective_text(const CollectiveCost& cost) {
  std::string out =
      fmt::format("{} of {} over {} ranks\n", choice_name(cost.operation), size_text(cost.bytes), cost.ranks);
  const auto add = [&](const char* name, const std::string& value) {
    out += fmt::format("  {:<16} {}\n", name, value);
  };
  add("time", time_text(cost.time_s) +
                  (cost.late_s > 0 ? fmt::format(", the last rank comes after {}", time_text(cost.late_s)) : ""));
  add("algorithm", cost.inside_domain ? cost.algorithm + ", as measured inside one NVLink domain"
                                      : fmt::format("{}, protocol {}", cost.algorithm, choice_name(cost.protocol)));
  add("bus bandwidth", bytes_text(cost.bus_bandwidth_Bps()) + "/s");
  add("bound", fmt::format("{}, {:.2f} times of which are taken", time_text(cost.bound_s), bound_ratio(cost)));
  add("bottleneck", cost.bottleneck);
  return out;
}

std::string choice_text(const CollectiveCost& cost) {
  std::vector<network::Considered> all = cost.considered;
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    if (a.listed != b.listed) return a.listed;
    return a.assumed_s < b.assumed_s;
  });
  std::string out =
      fmt::format("choice for {}: the least of what the library takes each to need\n", bytes_text(cost.bytes));
  for (const network::Considered& k : all) {
    if (!k.refusal.empty()) {
      out += fmt::format("  {:<18} {:<8} no: {}\n", k.algorithm, "", k.refusal);
      continue;
    }
    const bool measured = k.protocol == network::Protocol::automatic;
    std::string why = k.because.empty() ? "" : ", assumed: " + k.because;
    if (k.listed) why += ", named by the library's table";
    if (std::abs(k.assumed_s - k.time_s) > k.time_s * 1e-9) why = ", would take " + time_text(k.time_s) + why;
    out += fmt::format("  {:<18} {:<8} {}{}\n", k.algorithm, measured ? "measured" : choice_name(k.protocol),
                       time_text(k.assumed_s), why);
  }
  // A library is taken to choose by a model of its own, which counts neither slots that fill on the way nor
  // adapters shared; a way that it leaves too late makes a larger buffer faster.
  const network::Considered *taken = nullptr, *fastest = nullptr;
  for (const network::Considered& k : all) {
    if (!k.refusal.empty()) continue;
    if (taken == nullptr) taken = &k;
    if (fastest == nullptr || k.time_s < fastest->time_s) fastest = &k;
  }
  if (taken != nullptr && fastest->time_s < taken->time_s * 0.99)
    out += fmt::format(
        "  the library takes {} {} for faster than it is: {} {} would take {} in place of {}; where it turns\n"
        "  from one to the other a larger buffer may take less time\n",
        taken->algorithm, choice_name(taken->protocol), fastest->algorithm, choice_name(fastest->protocol),
        time_text(fastest->time_s), time_text(taken->time_s));
  return out;
}

std::string collectives_table(const std::string& cluster, const std::vector<CollectiveCost>& costs) {
  if (costs.empty()) return "";
  std::string out =
      fmt::format("# {} on {}, {} ranks\n", choice_name(costs.front().operation), cluster, costs.front().ranks);
  out += fmt::format("# {:>11} {:>12} {:>6} {:>10} {:>7} {:>7} {:>7}  {}\n", "size", "algorithm", "proto", "time",
                     "algbw", "busbw", "time to", "bottleneck");
  out += fmt::format("# {:>11} {:>12} {:>6} {:>10} {:>7} {:>7} {:>7}\n", "(B)", "", "", "(us)", "(GB/s)", "(GB/s)",
                     "bound");
  for (const CollectiveCost& c : costs)
    out += fmt::format("{:>13.0f} {:>12} {:>6} {:>10.2f} {:>7.2f} {:>7.2f} {:>7.2f}  {}\n", c.bytes, algorithm_of(c),
                       c.inside_domain ? "-" : choice_name(c.protocol), c.time_s * 1e6,
                       algorithm_bandwidth_Bps(c) * 1e-9, c.bus_bandwidth_Bps() * 1e-9, bound_ratio(c), c.bottleneck);
  return out;
}

std::string collectives_csv(const std::vector<CollectiveCost>& costs) {
  std::string out = "size_bytes,time_us,algbw_GBps,busbw_GBps,bound_busbw_GBps,algorithm,protocol,bottleneck\n";
  for (const CollectiveCost& c : costs) {
    const double bound_Bps = c.bound_s > 0 ? c.bus_bandwidth_Bps() * c.time_s / c.bound_s : c.bus_bandwidth_Bps();
    out += fmt::format("{:.0f},{},{},{},{},{},{},{}\n", c.bytes, c.time_s * 1e6, algorithm_bandwidth_Bps(c) * 1e-9,
                       c.bus_bandwidth_Bps() * 1e-9, bound_Bps * 1e-9, algorithm_of(c),
                       c.inside_domain ? "" : choice_name(c.protocol), c.bottleneck);
  }
  return out;
}

std::vector<std::string> collectives_figure(const std::string& folder, const std::string& cluster,
                                            const std::vector<CollectiveCost>& costs) {
  if (costs.empty()) return {};
  const std::string stem = (std::filesystem::path(folder) / "collective").string();
  write_file(stem + ".csv", collectives_csv(costs));
  return draw_figure("collective.gp", stem,
                     {fmt::format("{} on {}, {} ranks", choice_name(costs.front().operation), cluster,
                                  count_text(costs.front().ranks))});
}

}  // namespace tw::report
