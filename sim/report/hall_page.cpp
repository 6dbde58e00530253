// The page of `trainwatt hall -o`.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/csv.hpp"
#include "core/files.hpp"
#include "report/hall_report.hpp"
#include "report/numbers.hpp"
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
                    cell("nodes", ""),
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
  const std::string merits = merits_html({{"energy at the feed", cell_of(h, "feed_j", "J")},
                                          {"peak at the feed", cell_of(h, "peak_w", "W")},
                                          {"above the budget", cell_of(h, "above_limit_s", "s")},
                                          {"utilisation", cell_of(h, "utilisation", "%", 100)},
                                          {"goodput", cell_of(h, "goodput", "%", 100)},
                                          {"mean wait", cell_of(h, "wait_mean_s", "s")},
                                          {"CO2e", cell_of(h, "kg_co2e", "kg")},
                                          {"cost of energy " + currency, cell_of(h, "cost_energy", "")}});
  const std::string drawn = figures_html(
      folder, {{"hall", "Jobs and power over time"}, {"spectrum", "Power inside the steps, as the utility sees it"}});
  const std::string body =
      sections_html({{"summary", "Summary", "", merits},
                     {"figures", "Figures", "", drawn.empty() ? "<p>gnuplot was missing.</p>\n" : drawn},
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
