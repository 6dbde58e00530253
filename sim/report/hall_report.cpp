#include "report/hall_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/csv_field.hpp"
#include "core/files.hpp"
#include "core/outputs.hpp"
#include "report/columns.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;

std::string cell(const Maybe& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string clock_text(double time_s) {  // days and hours, as calendars have them
  return time_s < 3 * 86400.0 ? fmt::format("{:.2f} h", time_s / 3600) : fmt::format("{:.2f} d", time_s / 86400);
}

// The reason that cost most time.
std::string main_reason(const hall::JobOutcome& job) {
  const auto most = std::max_element(job.wait_by_s.begin(), job.wait_by_s.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == job.wait_by_s.end() || most->second <= 0 ? "" : most->first;
}

std::string limits_text(const GridAnswer& g) {
  const auto one = [](const LimitAnswer& a, const char* unit) {
    if (!a.value) return std::string("not looked at");
    return fmt::format("{:.4g} {}{}", *a.value / 1e6, unit, !a.kept ? "" : *a.kept ? " (kept)" : " (NOT KEPT)");
  };
  return fmt::format("ramp {}, range {}, line {}{}", one(g.ramp, "MW/s"), one(g.dynamic_range, "MW"),
                     one(g.amplitude, "MW"), g.amplitude.at ? fmt::format(" at {:.2f} Hz", *g.amplitude.at) : "");
}

constexpr size_t kMostJobsListed = 60;

}  // namespace

std::string hall_json(const HallAnswer& answer) {
  return described_json(answer).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string hall_jobs_csv(const HallAnswer& answer) {
  // The described numbers of a job, and its texts in front.
  std::string out = "name,kind,cluster,state,main_wait";
  const auto& described = outputs<hall::JobOutcome>();
  std::vector<std::string> columns;
  for (const OutputKey& key : described.keys())
    if (!key.unit.empty() || key.path.rfind("cost", 0) == 0)
      if (key.path.find('*') == std::string::npos) columns.push_back(key.path);
  for (const std::string& c : columns) out += "," + c;
  out += "\n";
  for (const hall::JobOutcome& job : answer.outcome.jobs) {
    out += fmt::format("{},{},{},{},{}", csv_field(job.name), csv_field(job.kind), csv_field(job.cluster), job.state,
                       main_reason(job));
    for (const std::string& c : columns) out += "," + cell(described.number(&job, c));
    out += "\n";
  }
  return out;
}

std::string hall_power_csv(const hall::HallOutcome& o) {
  std::string out =
      "time_s,feed_w,limit_w,jobs_w,idle_w,loss_w,network_w,cooling_w,battery_w,charge_j,running,waiting\n";
  const auto row = [&](const hall::Moment& m, double time_s) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", time_s, m.feed_w,
                       std::isfinite(m.limit_w) ? fmt::format("{}", m.limit_w) : "", m.jobs_w, m.idle_w, m.loss_w,
                       m.network_w, m.cooling_w, m.battery_w, m.charge_j, m.running, m.waiting);
  };
  for (const hall::Moment& m : o.power) row(m, m.time_s);
  if (o.power.empty()) return out;
  hall::Moment last = o.power.back();
  last.charge_j = o.battery_charge_j.value_or(0);
  row(last, o.end_s);
  return out;
}

std::string hall_table(const HallAnswer& a) {
  const hall::HallOutcome& o = a.outcome;
  std::string out =
      fmt::format("{}: {} of {} jobs done in {}\n\n", a.hall, o.finished, o.jobs.size(), clock_text(o.end_s));
  std::vector<std::vector<std::string>> jobs;
  for (const hall::JobOutcome& j : o.jobs) {
    if (jobs.size() == kMostJobsListed) break;
    jobs.push_back({j.name, fmt::format("{}", j.nodes), clock_text(j.wait_s), main_reason(j), clock_text(j.run_s),
                    j.state, fmt::format("{:.4g}", j.energy_j / 3.6e9), fmt::format("{:.4g}", j.kg_co2e),
                    j.cost ? plain(*j.cost) : "-"});
  }
  out += columns_text({{"job", true},
                       {"nodes"},
                       {"wait"},
                       {"why"},
                       {"run"},
                       {"state", true},
                       {"MWh"},
                       {"kg CO2e"},
                       {a.currency.empty() ? "cost" : a.currency}},
                      jobs, 1);
  if (o.jobs.size() > kMostJobsListed) out += fmt::format("  and {} more: jobs.csv\n", o.jobs.size() - kMostJobsListed);
  const auto line = [&](const char* what, const std::string& value) {
    out += wrapped(value, fmt::format("{:<26}", what), std::string(26, ' '));
  };
  out += "\n";
  line("energy at the feed", fmt::format("{:.5g} MWh", o.feed_j / 3.6e9));
  for (const auto& [what, joules] : {std::pair{"  nodes with jobs", o.energy.nodes_j},
                                     {"  idle nodes", o.energy.idle_j},
                                     {"  losses", o.energy.loss_j},
                                     {"  network", o.energy.network_j},
                                     {"  cooling, building", o.energy.cooling_j},
                                     {"  left in the battery", o.energy.stored_j}})
    line(what, fmt::format("{:.5g} MWh ({:.1f} %)", joules / 3.6e9, o.feed_j > 0 ? 100 * joules / o.feed_j : 0));
  line("power at the feed", fmt::format("mean {}, peak {}", power_text(o.mean_w), power_text(o.peak_w)));
  line("above the budget", fmt::format("{}, {}", time_text(o.above_limit_s), energy_text(o.above_limit_j)));
  line("utilisation, goodput", fmt::format("{:.1f} %, {:.1f} %", 100 * o.utilisation, 100 * o.goodput));
  line("mean wait", time_text(o.wait_mean_s));
  if (o.node_failures > 0) line("nodes that failed", count_text(o.node_failures));
  if (o.pue) line("PUE", fmt::format("{:.4f}", *o.pue));
  if (o.wue_l_per_kwh) line("WUE", fmt::format("{:.3f} l/kWh", *o.wue_l_per_kwh));
  line("CO2e", fmt::format("{:.5g} t", o.kg_co2e / 1e3));
  for (const auto& [what, value] :
       {std::pair{"cost of energy", o.cost_energy}, {"demand charge", o.cost_demand}, {"capital", o.cost_capital}})
    if (value) line(what, fmt::format("{} {}", plain(*value, 5), a.currency));
  if (a.grid) {
    line("inside the steps", limits_text(a.grid->before));
    if (a.grid->burned_j) line("  smoothed", limits_text(a.grid->after));
  }
  for (const auto& [name, s] : a.series_of_runs)
    line(("over " + std::to_string(a.runs) + " seeds: " + name).c_str(),
         fmt::format(" mean {:.5g}, p5 {:.5g}, p95 {:.5g}", s.mean.value_or(0), s.p5.value_or(0), s.p95.value_or(0)));
  return out;
}

namespace {

// Rows of the Gantt figure: one a job, waits and stays.
std::string gantt_csv(const hall::HallOutcome& o) {
  std::string out = "row,from_s,to_s,what,cap_w,job\n";
  std::map<int, int> row;
  const auto row_of = [&](int job) { return row.emplace(job, static_cast<int>(row.size())).first->second; };
  std::vector<int> order(o.jobs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return o.jobs[static_cast<size_t>(a)].arrival_s < o.jobs[static_cast<size_t>(b)].arrival_s;
  });
  const auto put = [&](int job, double from_s, double to_s, int what, double cap_w) {
    out += fmt::format("{},{},{},{},{},{}\n", row_of(job), from_s, to_s, what, cap_w,
                       csv_field(o.jobs[static_cast<size_t>(job)].name));
  };
  for (const int job : order) {
    const hall::JobOutcome& j = o.jobs[static_cast<size_t>(job)];
    if (j.arrival_s >= o.end_s) continue;
    put(job, j.arrival_s, j.end_s.value_or(o.end_s), 0, 0);  // behind the stays: what is left is waiting
  }
  for (const hall::Stay& s : o.stays)
    put(s.job, s.from_s, s.to_s, s.what == "run" ? (s.cap_w > 0 ? 3 : 2) : 1, s.cap_w);
  return out;
}

// As much as plots/spectrum.gp shows.
std::string curve_csv(const Curve& before, const Curve& after) {
  constexpr double kShown_s = 20, kBend_s = 5e-3;  // shorter ones are straight to the eye
  std::string out = "which,time_s,mw\n";
  int which = 0;
  for (const Curve* curve : {&before, &after}) {
    for (const CurvePiece& p : *curve) {
      if (p.begin_s > kShown_s) break;
      const int steps = p.extra_w != 0 && p.end_s - p.begin_s > kBend_s ? 6 : 1;
      for (int k = 0; k <= steps; ++k) {
        const double t = p.begin_s + (p.end_s - p.begin_s) * k / steps;
        out += fmt::format("{},{},{}\n", which, t, p.at(t) / 1e6);
      }
    }
    out += "\n\n";
    ++which;
  }
  return out;
}

}  // namespace

Figures hall_figures(const std::string& folder, const HallAnswer& a) {
  Figures figures;
  const hall::HallOutcome& o = a.outcome;
  const auto stem = [&](const char* name) { return (fs::path(folder) / name).string(); };
  write_file(stem("power.csv"), hall_power_csv(o));
  write_file(stem("hall.csv"), gantt_csv(o));
  const bool days = o.end_s > 4 * 86400.0;
  const bool limited = !o.power.empty() && std::isfinite(o.power.front().limit_w);
  figures.drawings.push_back({"hall.gp",
                              stem("hall"),
                              {a.hall + ": jobs and power", stem("power.csv"), days ? "days" : "hours",
                               fmt::format("{}", o.jobs.size()), limited ? "limit" : ""}});
  if (!a.grid) return figures;
  std::string lines = "hz,before_w,after_w\n";
  for (size_t i = 0; i < a.grid->lines_before.size(); ++i)
    lines += fmt::format("{},{},{}\n", a.grid->lines_before[i].hz, a.grid->lines_before[i].amplitude_w,
                         a.grid->lines_after[i].amplitude_w);
  write_file(stem("spectrum.csv"), lines);
  write_file(stem("spectrum-time.csv"), curve_csv(a.grid->curve_before, a.grid->curve_after));
  figures.drawings.push_back(
      {"spectrum.gp",
       stem("spectrum"),
       {a.hall + ": power inside the steps", stem("spectrum-time.csv"), a.grid->burned_j ? "smoothed" : "",
        a.grid->before.amplitude.limit ? fmt::format("{}", *a.grid->before.amplitude.limit) : ""}});
  return figures;
}

}  // namespace tw::report
