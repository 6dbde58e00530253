// The figure of a search for plans and its page.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/csv_field.hpp"
#include "core/files.hpp"
#include "core/units.hpp"
#include "core/version.hpp"
#include "report/numbers.hpp"
#include "report/plan_report.hpp"
#include "report/report_page.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

struct PlanPoint {
  double bytes = 0, time_s = 0;
  int kind = 0;  // 0: nothing is smaller and faster, 1: simulated, 2: larger than memory, time estimated
  std::string label;
};

}  // namespace

Figures plan_figure(const std::string& folder, const PlanSearch& s, const std::string& scenario) {
  std::vector<PlanPoint> points;
  bool same_batch = true;
  const int gbs = s.answers.empty() ? 0 : s.answers.front().candidate.plan.gbs;
  const auto see = [&](const PlanCandidate& c) { same_batch = same_batch && c.plan.gbs == gbs; };
  for (const PlanAnswer& a : s.answers) see(a.candidate);
  for (const PlanCandidate& c : s.too_large) see(c);
  const auto add = [&](const PlanCandidate& c, double step_s, int kind) {
    points.push_back({c.memory_bytes, same_batch ? step_s : step_s / c.plan.gbs, kind, plan_text(c)});
  };
  for (const PlanAnswer& a : s.answers)
    if (a.result.step.time_s) add(a.candidate, *a.result.step.time_s, 1);
  for (size_t i = 0; i < std::min<size_t>(100, s.too_large.size()); ++i)
    add(s.too_large[i], s.too_large[i].step_s * s.least_ratio, 2);
  if (points.size() < 2) return {};
  std::sort(points.begin(), points.end(), [](const PlanPoint& a, const PlanPoint& b) {
    return std::pair(a.bytes, a.time_s) < std::pair(b.bytes, b.time_s);
  });
  double fastest = 1e300;
  for (PlanPoint& p : points)
    if (p.kind == 1 && p.time_s < fastest) p.kind = 0, fastest = p.time_s;
  std::string data = "memory_bytes,time_s,kind,plan\n";
  for (const PlanPoint& p : points) data += fmt::format("{},{},{},{}\n", p.bytes, p.time_s, p.kind, csv_field(p.label));
  const std::string stem = (std::filesystem::path(folder) / "plan-search").string();
  write_file(stem + ".csv", data);
  const double capacity = s.answers.empty() ? 0 : s.answers.front().result.memory.capacity_bytes.value_or(0);
  return {{{"plan_search.gp",
            stem,
            {scenario + ": plans by memory and time", same_batch ? "training step (s)" : "time for each sample (s)",
             fmt::format("{}", capacity)}}},
          {}};
}

std::string plan_page(const std::string& folder, const json& search) {
  const std::string name = search.value("scenario", "");
  const json& plans = search.at("plans");
  // What a search found comes first, then the sizes in which plans differ; those that all share stand above.
  std::vector<std::string> heads{"step", "time to train", "memory of a GPU", "MFU", "energy of the building"};
  std::vector<std::vector<HtmlCell>> rows(plans.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto number = [&](const char* key, const auto& text) {
      rows[i].push_back(number_cell(plans[i], key, fmt::format("/plans/{}/", i), text));
    };
    number("step_s", time_text), number("time_to_train_s", time_text), number("memory_bytes", size_text);
    number("mfu", [](double v) { return plain(100 * v, 3) + " %"; });
    number("facility_j", energy_text);
  }
  std::string shared;
  for (const auto& [key, head] : {std::pair{"nodes", "nodes"},
                                  {"tp", "TP"},
                                  {"pp", "PP"},
                                  {"vp", "VP"},
                                  {"cp", "CP"},
                                  {"ep", "EP"},
                                  {"dp", "DP"},
                                  {"mbs", "MBS"},
                                  {"ga", "GA"},
                                  {"gbs", "GBS"},
                                  {"recompute", "recompute"},
                                  {"sharding", "sharding"},
                                  {"shard_group", "shard group"},
                                  {"context", "context"},
                                  {"offload_states", "states in host memory"},
                                  {"offload_layers", "layers in host memory"}}) {
    const auto value = [&plans, name = key](size_t i) {
      const json v = plans[i].at("plan").value(name, json());
      return v.is_string() ? v.get<std::string>() : v.dump();
    };
    bool same = plans.size() > 1;
    for (size_t i = 1; i < plans.size(); ++i) same = same && value(i) == value(0);
    if (same) {
      shared += fmt::format("{}{} {}", shared.empty() ? "" : ", ", head, value(0));
      continue;
    }
    heads.push_back(head);
    for (size_t i = 0; i < plans.size(); ++i)
      if (plans[i].at("plan").value(key, json()).is_number())
        rows[i].push_back({value(i), value(i), fmt::format("/plans/{}/plan/{}", i, key)});
      else
        rows[i].push_back({value(i)});
  }
  const std::string table =
      (shared.empty() ? "" : "<p>All of them: " + html_text(shared) + ".</p>\n") + html_table("", heads, rows);
  std::error_code ignored;
  const std::string text = (std::filesystem::path(folder) / "plan.txt").string();
  const std::string said =
      std::filesystem::exists(text, ignored) ? "<pre>" + html_text(read_file(text)) + "</pre>\n" : "";
  const std::string drawn = figures_html(folder, {{"plan-search", name + ": plans by memory of a GPU and time"}});
  return html_page(name + ": plans", fmt::format("TrainWatt {}: plans found, the best first", version()),
                   sections_html({{"plans", "Plans", "", table},
                                  {"figures", "Figures", "", drawn},
                                  {"search", "Search", "What was looked at, and what binds", said}}));
}

}  // namespace tw::report
