#include "report/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/outputs.hpp"
#include "report/numbers.hpp"
#include "report/result_json.hpp"
#include "report/run_lines.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

std::vector<std::pair<std::string, double>> parts(const PlanAnswer& a) {
  return outputs<Breakdown>().numbers(&a.result.step.breakdown_s);
}

std::string value_text(PlanObjective objective, double value) {
  switch (objective) {
    case PlanObjective::time:
      return time_text(value);
    case PlanObjective::energy:
      return energy_text(value);
    case PlanObjective::cost:
      return plain(value) + " USD";
    case PlanObjective::carbon:
      return plain(value) + " kg CO2e";
  }
  return "";
}

std::string short_time(double value_s) {
  const std::string text = time_text(value_s);
  return text.substr(0, text.find(" ("));
}

// Parts of a step of the second less those of the first, per sample, largest first.
std::string why_it_wins(const PlanAnswer& best, const PlanAnswer& next) {
  const double a = best.candidate.plan.gbs, b = next.candidate.plan.gbs;
  const double best_s = best.result.step.time_s.value_or(0) / a, next_s = next.result.step.time_s.value_or(0) / b;
  std::string out = fmt::format("Why it wins over {}:\n", plan_text(next.candidate));
  out += fmt::format("  a step of the runner-up takes {} {} a sample\n", plain(1e3 * std::abs(next_s - best_s)) + " ms",
                     next_s >= best_s ? "more" : "less");
  std::vector<std::pair<double, std::string>> changes;
  const auto of_best = parts(best), of_next = parts(next);
  for (size_t i = 0; i < of_best.size(); ++i)
    changes.emplace_back(of_next[i].second / b - of_best[i].second / a, of_best[i].first);
  std::sort(changes.begin(), changes.end(),
            [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  for (const auto& [change, name] : changes)
    if (std::abs(change) > 0.01 * std::abs(next_s - best_s) && std::abs(change) > 1e-9)
      out += fmt::format("    {:<10} {:>+10.3f} ms\n", name, 1e3 * change);
  return out;
}

std::string what_binds(const PlanSearch& s) {
  const PlanAnswer& best = s.answers.front();
  const double total_s = best.result.step.breakdown_s.total();
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [name, part_s] : parts(best)) shares.emplace_back(part_s / total_s, name);
  std::sort(shares.rbegin(), shares.rend());
  std::string out = "What binds it:\n  a step is";
  for (size_t i = 0; i < 4 && shares[i].first > 0.005; ++i)
    out += fmt::format("{} {:.1f} % {}", i ? "," : "", 100 * shares[i].first, shares[i].second);
  const double capacity = best.result.memory.capacity_bytes.value_or(0);
  out += fmt::format("\n  memory: {} of {} on each GPU\n", size_text(best.candidate.memory_bytes), size_text(capacity));
  if (!s.too_large.empty()) {
    const PlanCandidate& c = s.too_large.front();
    out += fmt::format(
        "  memory stands in the way of {} plan{} estimated better, first of all\n    {}: {} a step, but {}\n",
        s.too_large.size(), s.too_large.size() == 1 ? "" : "s", plan_text(c), short_time(c.step_s),
        size_text(c.memory_bytes));
  }
  std::map<std::string, std::pair<size_t, const PlanAnswer*>> limits;
  for (const PlanAnswer& a : s.beyond) {
    if (a.values.empty() || !(a.values.front() < best.values.front())) continue;
    auto& [count, first] = limits[a.beyond];
    if (count++ == 0) first = &a;
  }
  for (const auto& [limit, entry] : limits)
    out += fmt::format("  {} stands in the way of {} better plan{}, first of all {}: {}\n", limit, entry.first,
                       entry.first == 1 ? "" : "s", plan_text(entry.second->candidate),
                       value_text(s.objectives.front(), entry.second->values.front()));
  return out;
}

json plan_of(const PlanCandidate& c) {
  const Plan& p = c.plan;
  json j = described_json(
      PlanResult{p.nodes, p.tp * p.pp * p.cp * p.dp, p.tp, p.pp, p.vp, p.cp, p.dp, p.ep, p.mbs, p.gbs, p.ga()});
  j["sharding"] = choice_name(p.sharding), j["recompute"] = choice_name(c.recompute.recompute);
  j["recompute_modules"] = json::array();
  for (const Module m : c.recompute.modules) j["recompute_modules"].push_back(choice_name(m));
  j["shard_group"] = p.shard_group, j["context"] = choice_name(p.context);
  j["offload_states"] = c.offload_states, j["offload_layers"] = c.offload_layers;
  return j;
}

json answer_json(const PlanSearch& s, const PlanAnswer& a) {
  json j = {{"plan", plan_of(a.candidate)},
            {"own", a.candidate.own},
            {"estimated_step_s", a.candidate.step_s},
            {"memory_bytes", a.candidate.memory_bytes}};
  if (!a.beyond.empty()) j["beyond"] = a.beyond;
  if (a.values.empty()) return j;
  j["front"] = a.front;
  for (size_t i = 0; i < a.values.size(); ++i) j["objectives"][choice_name(s.objectives[i])] = a.values[i];
  const Result& r = a.result;
  j["step_s"] = described_json(r.step.time_s), j["mfu"] = described_json(r.step.mfu);
  j["breakdown_s"] = described_json(r.step.breakdown_s);
  j["time_to_train_s"] = described_json(r.run.time_to_train_s.mean);
  j["facility_j"] = described_json(r.energy.facility_j), j["kg_co2e"] = described_json(r.carbon.kg_co2e);
  j["energy_usd"] = described_json(objective_value(PlanObjective::cost, r));
  j["facility_peak_w"] = r.grid.facility.peak_w, j["peak_bus_w"] = described_json(r.power.peak_bus_w);
  return j;
}

// Of a row, in the order of the columns below.
std::vector<std::string> cells_of(const PlanAnswer& a, size_t place, double best) {
  const Plan& p = a.candidate.plan;
  const Result& r = a.result;
  return {fmt::format("{}{}", a.candidate.own ? "*" : "", place),
          std::to_string(p.nodes),
          std::to_string(p.tp),
          std::to_string(p.pp),
          std::to_string(p.vp),
          std::to_string(p.cp),
          std::to_string(p.ep),
          std::to_string(p.dp),
          std::to_string(p.mbs),
          std::to_string(p.ga()),
          std::to_string(p.gbs),
          recompute_text(a.candidate.recompute),
          choice_name(p.sharding),
          std::to_string(p.shard_group),
          p.cp > 1 ? choice_name(p.context) : "-",
          fmt::format("{:.4g}", a.candidate.offload_states),
          std::to_string(a.candidate.offload_layers),
          or_dash(r.step.time_s, short_time),
          or_dash(r.run.time_to_train_s.mean, short_time),
          or_dash(r.energy.facility_j, energy_text),
          size_text(a.candidate.memory_bytes),
          r.step.mfu ? fmt::format("{:.1f} %", 100 * *r.step.mfu) : "-",
          fmt::format("{:+.2f} %", 100 * (a.values.front() / best - 1))};
}

// Rows of plans, as narrow as they may be: sizes that all plans share stand below, once.
std::string answers_table(const std::vector<const PlanAnswer*>& shown) {
  struct Column {
    std::string name;
    bool size = false;      // of the plan
    bool may_lack = false;  // not told where no plan has it
    std::vector<std::string> cells = {};
  };
  std::vector<Column> columns{{""},
                              {"nodes", true},
                              {"TP", true},
                              {"PP", true},
                              {"VP", true},
                              {"CP", true},
                              {"EP", true},
                              {"DP", true},
                              {"MBS", true},
                              {"GA", true},
                              {"GBS", true},
                              {"recompute", true},
                              {"sharding", true},
                              {"group", true, true},
                              {"context", true, true},
                              {"in host", true, true},
                              {"layers in host", true, true},
                              {"step"},
                              {"train"},
                              {"facility"},
                              {"memory"},
                              {"MFU"},
                              {"of best"}};
  bool own = false;
  for (const PlanAnswer* a : shown) {
    own = own || a->candidate.own;
    const std::vector<std::string> cells = cells_of(*a, columns[0].cells.size() + 1, shown.front()->values.front());
    for (size_t c = 0; c < cells.size(); ++c) columns[c].cells.push_back(cells[c]);
  }
  std::string out, shared;
  std::vector<std::string> lines;
  for (const bool mfu : {true, false}) {  // left out where the table would be wider than a terminal
    lines.assign(shown.size() + 1, " ");
    shared.clear();
    for (const Column& c : columns) {
      const auto& cells = c.cells;
      if (c.name == "MFU" && !mfu) continue;
      // Plans that have no such thing at all ("-") differ in it from no other.
      const auto told = std::find_if(cells.begin(), cells.end(), [](const auto& cell) { return cell != "-"; });
      if (c.size &&
          std::all_of(cells.begin(), cells.end(), [&](const auto& cell) { return cell == "-" || cell == *told; })) {
        if (told != cells.end() && !(c.may_lack && *told == "0"))
          shared += fmt::format("{}{} {}", shared.empty() ? "" : ", ", c.name, *told);
        continue;
      }
      size_t width = c.name.size();
      for (const std::string& cell : cells) width = std::max(width, cell.size());
      for (size_t i = 0; i < lines.size(); ++i)
        lines[i] += fmt::format(" {:>{}}", i == 0 ? c.name : cells[i - 1], width);
    }
    if (lines.front().size() <= 80) break;
  }
  for (const std::string& line : lines) out += line + "\n";
  if (!shared.empty()) out += wrapped((shown.size() > 1 ? "all of them: " : "the plan: ") + shared, "  ", "    ");
  if (own) out += "  * the scenario's own plan\n";
  return out;
}

// What runs of the plans warn of, each once, and the places of those that do, from 1.
std::vector<std::pair<std::string, std::vector<size_t>>> warnings_of(const std::vector<const PlanAnswer*>& plans) {
  std::vector<std::pair<std::string, std::vector<size_t>>> all;
  for (size_t i = 0; i < plans.size(); ++i)
    for (const std::string& warning : plans[i]->result.warnings) {
      auto at = std::find_if(all.begin(), all.end(), [&](const auto& known) { return known.first == warning; });
      if (at == all.end()) at = all.insert(at, {warning, {}});
      if (at->second.empty() || at->second.back() != i + 1) at->second.push_back(i + 1);
    }
  return all;
}

}  // namespace

std::string plan_text(const PlanCandidate& c) {
  const Plan& p = c.plan;
  std::string text = fmt::format("TP{} PP{}", p.tp, p.pp);
  if (p.vp > 1) text += fmt::format(" VP{}", p.vp);
  text += fmt::format(" CP{} DP{}", p.cp, p.dp);
  if (p.ep > 1) text += fmt::format(" EP{}", p.ep);
  return text +
         fmt::format(" MBS{} GA{}{}{}", p.mbs, p.ga(),
                     c.recompute.recompute == Recompute::none ? "" : ", recompute " + recompute_text(c.recompute),
                     p.sharding == Sharding::none ? "" : ", " + choice_name(p.sharding)) +
         (p.shard_group > 0 ? fmt::format(" in groups of {}", p.shard_group) : "") +
         (p.cp > 1 && p.context != ContextExchange::ring ? ", context " + choice_name(p.context) : "") +
         (c.offload_states > 0 ? fmt::format(", {:.4g} of states in host memory", c.offload_states) : "") +
         (c.offload_layers > 0 ? fmt::format(", activations of {} layers in host memory", c.offload_layers) : "");
}

std::string plan_table(const PlanSearch& s, size_t most) {
  std::string out = fmt::format("{} plans considered", count_text(static_cast<double>(s.considered)));
  for (const auto& [why, count] : s.left_out)
    out += fmt::format("\n  {:>9} left out: {}", count_text(static_cast<double>(count)), why);
  out += fmt::format("\n  {:>9} estimated, {} simulated", count_text(static_cast<double>(s.estimated)),
                     count_text(static_cast<double>(s.simulated)));
  if (s.simulated > 0)
    out += fmt::format("; steps take {:.3f} to {:.3f} of their estimate", s.least_ratio, s.most_ratio);
  out += '\n';
  for (const auto& [limit, count] : s.fallen)
    out += fmt::format("  {:>9} fell to the limit of {} by their estimate\n", count_text(static_cast<double>(count)),
                       limit);
  if (s.not_simulated > 0)
    out += fmt::format("  {:>9} more might be as good by their estimate; --simulate N looks at more\n",
                       count_text(static_cast<double>(s.not_simulated)));
  if (s.answers.empty()) {
    out += "\nNo plan keeps all limits.\n";
    for (size_t i = 0; i < std::min<size_t>(3, s.beyond.size()); ++i)
      out += fmt::format("  {}: {}\n", plan_text(s.beyond[i].candidate), s.beyond[i].beyond);
    return out;
  }
  const bool front = s.objectives.size() > 1;
  out += front ? "\nThe front: each of these is beaten by none in both objectives\n" : "\nThe best plans\n";
  std::vector<const PlanAnswer*> shown;
  for (const PlanAnswer& a : s.answers)
    if ((!front || a.front == 0) && (shown.size() < most || a.candidate.own)) shown.push_back(&a);
  out += answers_table(shown);
  const PlanAnswer& best = s.answers.front();
  out += "\n";
  for (size_t i = 0; i < s.objectives.size(); ++i)
    out += fmt::format("{} {}: {}\n", i ? "  and" : "The best by", choice_name(s.objectives[i]),
                       value_text(s.objectives[i], best.values[i]));
  if (s.answers.size() > 1) out += why_it_wins(best, s.answers[1]);
  out += what_binds(s);
  const auto warned = warnings_of(shown);
  if (!warned.empty()) out += "Warnings:\n";
  for (const auto& [warning, places] : warned) {
    std::string of;
    for (const size_t place : places) of += fmt::format("{} {}", of.empty() ? " (plan" : ",", place);
    out += wrapped(warning + (places.size() == shown.size() ? "" : of + ")"), "  ! ", "    ");
  }
  return out;
}

std::string plan_json(const PlanSearch& s, const std::string& scenario) {
  json j = {{"scenario", scenario},
            {"objectives", json::array()},
            {"considered", s.considered},
            {"left_out", json::object()}};
  for (const PlanObjective objective : s.objectives) j["objectives"].push_back(choice_name(objective));
  for (const auto& [why, count] : s.left_out) j["left_out"][why] = count;
  j["estimated"] = s.estimated, j["simulated"] = s.simulated, j["not_simulated"] = s.not_simulated;
  j["fallen"] = json::object();
  for (const auto& [limit, count] : s.fallen) j["fallen"][limit] = count;
  j["simulated_over_estimated"] = {s.least_ratio, s.most_ratio};
  for (const char* key : {"plans", "beyond_limits", "too_large"}) j[key] = json::array();
  std::vector<const PlanAnswer*> plans;
  for (const PlanAnswer& a : s.answers) j["plans"].push_back(answer_json(s, a)), plans.push_back(&a);
  j["warnings"] = json::array();
  for (const auto& [warning, places] : warnings_of(plans)) j["warnings"].push_back(warning);
  for (const PlanAnswer& a : s.beyond) j["beyond_limits"].push_back(answer_json(s, a));
  for (size_t i = 0; i < std::min<size_t>(20, s.too_large.size()); ++i) {
    j["too_large"].push_back({{"plan", plan_of(s.too_large[i])},
                              {"estimated_step_s", s.too_large[i].step_s},
                              {"memory_bytes", s.too_large[i].memory_bytes}});
  }
  return json_text(j);
}

std::string fit_table(const HallFit& f) {
  std::string out =
      fmt::format("How many nodes of {} the hall carries,\nin numbers that are multiples of {}\n", f.scenario, f.step);
  out += fmt::format("  {:<14} {:>9} {:>6} {:>6} {:>10} {:>10}  {}\n", "by", "limit", "nodes", "batch", "peak",
                     "switches", "bound by");
  for (const HallCount& a : f.answers)
    out += fmt::format("  {:<14} {:>9} {:>6} {:>6} {:>10} {:>10}  {}\n", a.by, power_text(a.limit_w), a.nodes,
                       a.nodes > 0 ? fmt::format("{}", a.gbs) : "-", a.nodes > 0 ? power_text(a.peak_w) : "-",
                       a.nodes > 0 ? power_text(a.network_w) : "-", a.bound);
  return out + wrapped(fmt::format("A node: {} at its simulated peak, {} by nameplate (boards at their limit, the rest "
                                   "at full load). Peaks are those of the building: switches and cooling included. {} "
                                   "runs simulated.",
                                   power_text(f.node_peak_w), power_text(f.node_nameplate_w), f.simulated),
                       "", "");
}

std::string fit_json(const HallFit& f) {
  json j = {{"scenario", f.scenario},       {"multiple_of", f.step},
            {"node_peak_w", f.node_peak_w}, {"node_nameplate_w", f.node_nameplate_w},
            {"simulated", f.simulated},     {"fit", json::array()}};
  for (const HallCount& a : f.answers)
    j["fit"].push_back({{"by", a.by},
                        {"limit_w", a.limit_w},
                        {"nodes", a.nodes},
                        {"gbs", a.nodes > 0 ? json(a.gbs) : json(nullptr)},
                        {"facility_peak_w", a.nodes > 0 ? json(a.peak_w) : json(nullptr)},
                        {"network_w", a.nodes > 0 ? json(a.network_w) : json(nullptr)},
                        {"bound", a.bound}});
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string plan_scenario(const PlanCandidate& c, const std::string& use, const std::string& name) {
  const Plan& p = c.plan;
  json modules = json::array();
  for (const Module m : c.recompute.modules) modules.push_back(choice_name(m));
  const json j = {{"use", use},
                  {"name", name},
                  {"plan",
                   {{"nodes", p.nodes},
                    {"tp", p.tp},
                    {"pp", p.pp},
                    {"vp", p.vp},
                    {"cp", p.cp},
                    {"ep", p.ep},
                    {"dp", nullptr},
                    {"mbs", p.mbs},
                    {"gbs", p.gbs},
                    {"sharding", choice_name(p.sharding)},
                    {"shard_group", p.shard_group},
                    {"context", choice_name(p.context)},
                    {"layout", p.layout.empty() ? json(nullptr) : json(p.layout)},
                    {"etp", p.etp > 0 ? json(p.etp) : json(nullptr)}}},
                  {"training",
                   {{"recompute", choice_name(c.recompute.recompute)},
                    {"recompute_modules", modules},
                    {"offload_states", c.offload_states},
                    {"offload_layers", c.offload_layers}}},
                  // What was measured belongs to the plan it was measured with.
                  {"reference", nullptr}};
  return json_text(j);
}

}  // namespace tw::report
