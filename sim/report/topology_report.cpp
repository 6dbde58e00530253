#include "report/topology_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"
#include "topology/inspect.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

std::string rate(double Bps) {
  return fmt::format("{} Gbit/s", plain(Bps * 8e-9));
}

std::string rates(const tw::CableSummary& k) {
  if (k.least_Bps == k.most_Bps) return rate(k.least_Bps);
  return fmt::format("{} to {}", plain(k.least_Bps * 8e-9), rate(k.most_Bps));
}

// Pairs of adapters between two ends: adapter k of one with adapter k of the other, as collectives on rails use them.
std::vector<std::pair<std::string, std::string>> adapter_pairs(const Fabric& f, const std::string& a,
                                                               const std::string& b) {
  const int from = f.vertex_named(a), to = f.vertex_named(b);
  if (from < 0 || to < 0 || from >= f.node_count || to >= f.node_count || from == to || f.nics == 0) return {{a, b}};
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int k = 0; k < f.nics; ++k)
    if (f.nic_alive(from, k) && f.nic_alive(to, k))
      pairs.emplace_back(fmt::format("{} nic {}", a, k), fmt::format("{} nic {}", b, k));
  if (pairs.empty()) pairs.emplace_back(a, b);
  return pairs;
}

// An island is what NVLink joins inside a node; accelerators of a node may be several.
std::string nvlink_line(const TopologySummary& s, const Fabric& f) {
  const bool islands = f.nvlink.island > 0;
  const int joined = islands ? std::min(f.nvlink.island, f.gpus) : f.gpus * f.nodes_per_domain;
  if (joined < 2) return "  no NVLink: accelerators stand alone\n";
  const int count = islands ? s.nodes * ((f.gpus + joined - 1) / joined) : s.nvlink_domains;
  return fmt::format("  {} NVLink {}{} of {} accelerators, {} each way per accelerator\n", count_text(count),
                     islands ? "island" : "domain", count == 1 ? "" : "s", joined, bytes_text(f.nvlink_Bps) + "/s");
}

}  // namespace

std::string topology_table(const Cluster& cluster, const Fabric& f, const TopologySummary& s) {
  std::string out =
      fmt::format("{} ({})\n  {} nodes, {} accelerators ({} a node, {}), {} NICs a node\n", cluster.name, s.kind,
                  count_text(s.nodes), count_text(s.gpus), f.gpus, cluster.node.accelerator.name, f.nics);
  out += nvlink_line(s, f);
  out += fmt::format("  {:<12} {:>7} {:>9} {:>9} {:>9}   {}\n", "switches", "count", "ports", "used", "free",
                     "bandwidth down : up");
  for (const LevelSummary& t : s.levels) {
    const auto over = t.oversubscription();
    out += fmt::format("    {:<10} {:>7} {:>9} {:>9} {:>9}   {}{}\n", t.name, count_text(t.switches),
                       count_text(t.ports), count_text(t.ports_used), count_text(t.ports_free()),
                       over ? fmt::format("{} : 1", plain(*over, 3)) : "-",
                       t.failed > 0 ? fmt::format(", {} failed", t.failed) : "");
  }
  out += fmt::format("  {:<12} {:>7}  {}\n", "cables", "count", "line rate of one, each way");
  for (const tw::CableSummary& k : s.cable_kinds)
    out += fmt::format("    {:<10} {:>7}  {}{}\n", k.kind, count_text(k.count), rates(k),
                       k.failed > 0 ? fmt::format(", {} failed", k.failed) : "");
  if (s.nodes > 1 && f.nics > 0) {
    out += fmt::format("  bisection    {} each way, {} % of what half of the nodes can send\n", rate(s.bisection_Bps),
                       plain(100 * s.bisection_share, 3));
    out += fmt::format("  diameter     {} cables\n", s.diameter);
  }
  for (size_t i = 0; i < s.failed.size() && i < 8; ++i) out += fmt::format("  failed       {}\n", s.failed[i]);
  if (s.failed.size() > 8) out += fmt::format("  failed       and {} more\n", s.failed.size() - 8);
  for (const std::string& warning : s.warnings) out += wrapped(warning, "  warning      ", "               ");
  return out;
}

std::string topology_json(const Cluster& cluster, const Fabric& f, const TopologySummary& s) {
  json switches = json::array(), cables = json::array();
  for (const LevelSummary& t : s.levels) {
    const auto over = t.oversubscription();
    switches.push_back({{"tier", t.name},
                        {"count", t.switches},
                        {"failed", t.failed},
                        {"ports", t.ports},
                        {"ports_used", t.ports_used},
                        {"ports_free", t.ports_free()},
                        {"down_Bps", t.down_Bps},
                        {"up_Bps", t.up_Bps},
                        {"oversubscription", over ? json(*over) : json(nullptr)}});
  }
  for (const tw::CableSummary& k : s.cable_kinds)
    cables.push_back({{"kind", k.kind},
                      {"count", k.count},
                      {"failed", k.failed},
                      {"line_Bps", k.least_Bps},
                      {"most_line_Bps", k.most_Bps},
                      {"payload_Bps", k.least_Bps * (k.kind == "NVLink" ? 1 : f.type.link_efficiency)}});
  json all = {{"cluster", cluster.name},
              {"kind", s.kind},
              {"nodes", s.nodes},
              {"gpus", s.gpus},
              {"nics", f.nics},
              {"nvlink_domains", s.nvlink_domains},
              {"nvlink_Bps", f.nvlink_Bps},
              {"switches", switches},
              {"cables", cables},
              {"bisection_Bps", s.bisection_Bps},
              {"bisection_share", s.bisection_share},
              {"diameter", s.diameter},
              {"failed", s.failed}};
  if (!s.warnings.empty()) all["warnings"] = s.warnings;
  return all.dump(2) + "\n";
}

std::string route_table(const Fabric& f, const std::string& a, const std::string& b) {
  std::string out;
  for (const auto& [from, to] : adapter_pairs(f, a, b)) {
    const RouteExplanation r = explain_route(f, from, to);
    for (const std::string& line : r.lines()) out += wrapped(line, "", "      ");
    if (r.policy == "NVLink") return out;
    out += fmt::format("  one message alone: {}\n", rate(r.bandwidth_Bps));
  }
  return out;
}

std::string route_json(const Fabric& f, const std::string& a, const std::string& b) {
  json all = json::array();
  for (const auto& [from, to] : adapter_pairs(f, a, b)) {
    const RouteExplanation r = explain_route(f, from, to);
    json steps = json::array();
    for (const RouteStep& s : r.steps)
      steps.push_back({{"at", s.at},
                       {"equal_cost", s.equal_cost},
                       {"links", s.links},
                       {"links_Bps", s.links_Bps},
                       {"taken", s.taken}});
    all.push_back({{"from", r.from},
                   {"to", r.to},
                   {"policy", r.policy},
                   {"cables", r.cables},
                   {"latency_s", r.latency_s},
                   {"bandwidth_Bps", r.bandwidth_Bps},
                   {"steps", steps}});
  }
  return all.dump(2) + "\n";
}

std::string topology_dot(const Fabric& f) {
  return dot_text(f);
}

}  // namespace tw::report
