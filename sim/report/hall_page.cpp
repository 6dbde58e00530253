// The page of `trainwatt hall -o`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/csv.hpp"
#include "core/files.hpp"
#include "report/hall_report.hpp"
#include "report/numbers.hpp"
#include "report/output_keys.hpp"
#include "report/report_page.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

HtmlCell cell_of(const json& h, const char* key, const std::string& unit, double factor = 1,
                 const std::string& at = "/") {
  return number_cell(h, key, at, [&](double v) { return in_unit(v * factor, unit); });
}

std::string jobs_html(const json& h) {
  std::vector<std::vector<HtmlCell>> rows;
  size_t i = 0;
  for (const json& job : h.at("jobs")) {
    const std::string at = fmt::format("/jobs/{}/", i++);
    const auto cell = [&](const char* key, const char* unit) { return cell_of(job, key, unit, 1, at); };
    std::string why;
    for (const auto& [reason, seconds] : job.at("wait_by_s").items())
      why += fmt::format("{}{} {}", why.empty() ? "" : ", ", reason, in_unit(seconds.get<double>(), "s"));
    rows.push_back({{job.value("name", "")},
                    {job.value("state", "")},
                    {job.at("nodes").dump(), job.at("nodes").dump(), at + "nodes"},
                    cell("wait_s", "s"),
                    {why},
                    cell("run_s", "s"),
                    cell("capped_s", "s"),
                    cell("energy_j", "J"),
                    cell("kg_co2e", "kg"),
                    cell("cost", "")});
  }
  return html_table("", {"job", "state", "nodes", "wait", "why", "on nodes", "under a cap", "energy", "CO2e", "cost"},
                    rows);
}

// What the utility asks of the power inside the steps, and whether it is kept.
std::string grid_html(const json& h) {
  if (!h.contains("grid") || !h.at("grid").is_object()) return "";
  const json& grid = h.at("grid");
  const bool smoothed = grid.at("burned_j").is_number();
  std::vector<std::vector<HtmlCell>> rows;
  for (const auto& [name, key, unit] : {std::tuple{"steepest ramp", "ramp", "W/s"},
                                        {"widest range within the window", "dynamic_range", "W"},
                                        {"strongest line in the band", "amplitude", "W"}})
    for (const char* when : {"before", "after"}) {
      if (!smoothed && std::string(when) == "after") continue;
      const json& answer = grid.at(when).at(key);
      const std::string at = fmt::format("/grid/{}/{}/", when, key);
      const json& kept = answer.at("kept");
      const std::string verdict = kept.is_boolean()                 ? kept.get<bool>() ? "kept" : "NOT KEPT"
                                  : !answer.at("value").is_number() ? "not looked at"
                                                                    : "no limit";
      rows.push_back({{fmt::format("{}{}", name, smoothed ? std::string(", ") + when + " smoothing" : "")},
                      cell_of(answer, "value", unit, 1, at),
                      cell_of(answer, "limit", unit, 1, at),
                      {verdict}});
    }
  return html_table("", {"inside the steps", "value", "limit", "verdict"}, rows);
}

std::string seeds_html(const json& h) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const auto& [key, spread] : h.at("series_of_runs").items()) {
    const std::string at = "/series_of_runs/" + key + "/";
    const auto cell = [&, name = key](const char* of) {
      return number_cell(spread, of, at, [&](double v) { return output_text(name, v); });
    };
    rows.push_back({{key_words(key)}, cell("mean"), cell("p5"), cell("p50"), cell("p95"), {key}});
  }
  if (rows.empty()) return "";
  return html_table("", {"over " + h.at("runs").dump() + " seeds", "mean", "5 %", "median", "95 %", "key"}, rows);
}

}  // namespace

std::string hall_page(const std::string& folder) {
  const json h = json::parse(read_file((std::filesystem::path(folder) / "hall.json").string()));
  const std::string currency = h.at("currency").is_string() ? h["currency"].get<std::string>() : "";
  std::vector<std::vector<HtmlCell>> parts;
  for (const auto& [key, joules] : h.at("energy").items())
    parts.push_back(
        {{key.substr(0, key.size() - 2)}, {in_unit(joules.get<double>(), "J"), joules.dump(), "/energy/" + key}});
  parts.push_back({{"feed"}, cell_of(h, "feed_j", "J")});
  std::vector<std::vector<HtmlCell>> rules;
  for (const auto& [what, rule] : h.at("rules").items()) rules.push_back({{what}, {rule.get<std::string>()}});
  std::string remarks;
  for (const json& w : h.at("warnings")) remarks += "<li>" + html_text(w.get<std::string>()) + "</li>\n";
  std::vector<std::pair<std::string, HtmlCell>> merits{{"energy at the feed", cell_of(h, "feed_j", "J")},
                                                       {"peak at the feed", cell_of(h, "peak_w", "W")},
                                                       {"above the budget", cell_of(h, "above_limit_s", "s")},
                                                       {"utilisation", cell_of(h, "utilisation", "%", 100)},
                                                       {"goodput", cell_of(h, "goodput", "%", 100)},
                                                       {"mean wait", cell_of(h, "wait_mean_s", "s")},
                                                       {"PUE", cell_of(h, "pue", "")},
                                                       {"WUE", cell_of(h, "wue_l_per_kwh", "l/kWh")},
                                                       {"CO2e", cell_of(h, "kg_co2e", "kg")},
                                                       {"embodied CO2e", cell_of(h, "embodied_kg_co2e", "kg")},
                                                       {"cost of energy " + currency, cell_of(h, "cost_energy", "")},
                                                       {"demand charge " + currency, cell_of(h, "cost_demand", "")},
                                                       {"capital " + currency, cell_of(h, "cost_capital", "")}};
  if (h.at("node_failures").get<double>() > 0) merits.push_back({"nodes that failed", cell_of(h, "node_failures", "")});
  merits.erase(std::remove_if(merits.begin(), merits.end(), [](const auto& m) { return m.second.exact == "null"; }),
               merits.end());
  const std::string drawn = figures_html(
      folder, {{"hall", "Jobs and power over time"}, {"spectrum", "Power inside the steps, as the utility sees it"}});
  const std::string body =
      sections_html({{"summary", "Summary", "", merits_html(merits)},
                     {"figures", "Figures", "", drawn.empty() ? "<p>gnuplot was missing.</p>\n" : drawn},
                     {"grid", "Grid", "What the utility sees", grid_html(h)},
                     {"seeds", "Seeds", "Over the seeds", seeds_html(h)},
                     {"jobs", "Jobs", "", jobs_html(h)},
                     {"energy", "Energy", "",
                      html_table("At the feed, by part", {"part", "energy"}, parts) +
                          html_table("Shares of jobs", {"of", "rule"}, rules)},
                     {"warnings", "Warnings", "",
                      remarks.empty() ? "<p>None.</p>\n" : "<ul class=\"warnings\">\n" + remarks + "</ul>\n"}});
  return html_page("Hall " + h.value("hall", ""),
                   "TrainWatt " + h.value("trainwatt", "") + ": many jobs in one hall; inputs sha256 " +
                       h.value("inputs_sha256", ""),
                   body);
}

}  // namespace tw::report
