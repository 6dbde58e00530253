#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/csv_field.hpp"
#include "core/outputs.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"
#include "report/study_figures.hpp"

namespace tw::report {
namespace {

void heading(std::string& out, const std::string& text) {
  out += "  " + text + "\n";
}

// " (-3 to +5 % for 80 % of 12 rows like it)".
std::string interval_text(const Result& r, const std::string& key, Maybe value) {
  const auto found = r.intervals.find(key);
  if (found == r.intervals.end() || !value) return "";
  const Interval& i = found->second;
  return fmt::format(" ({:+.0f} to {:+.0f} % for {:.0f} % of {} rows {})", 100 * (i.low / *value - 1),
                     100 * (i.high / *value - 1), 100 * i.level, i.rows, says_work(i.path) ? "like it" : "of all work");
}

void plan_lines(std::string& out, const Result& r) {
  const PlanResult& p = r.plan;
  std::string plan = fmt::format("{} node{}, {} GPUs: TP {}, ", p.nodes, p.nodes == 1 ? "" : "s", p.gpus, p.tp);
  if (p.pp > 1) plan += fmt::format("PP {}, ", p.pp);
  if (p.vp > 1) plan += fmt::format("VP {}, ", p.vp);
  plan += fmt::format("CP {}, DP {}", p.cp, p.dp);
  if (p.etp) plan += fmt::format(", EP {}, ETP {}, EDP {}", p.ep, *p.etp, *p.edp);
  plan += fmt::format("; micro-batch {}, global batch {}, accumulation {}", p.mbs, p.gbs, p.ga);
  out += wrapped(plan, "  ", "  ");
  out += fmt::format("  seed {}, inputs {}\n", r.seed, r.inputs_sha256.substr(0, 16));
}

void step_lines(std::string& out, const Result& r) {
  const StepResult& s = r.step;
  heading(out, "Training step");
  line(out, "time", or_dash(s.time_s, time_text) + interval_text(r, "step", s.time_s));
  std::vector<std::string> rates;
  if (s.samples_per_s) rates.push_back(plain(*s.samples_per_s) + " samples/s");
  if (s.tokens_per_s) rates.push_back(plain(*s.tokens_per_s) + " tokens/s");
  line(out, "throughput", joined(rates));
  line(out, "MFU", or_dash(s.mfu, [](double v) { return fmt::format("{:.1f} %", 100 * v); }));
  const double total = s.breakdown_s.total();
  if (total > 0) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : outputs<Breakdown>().numbers(&s.breakdown_s))
      if (value / total >= 0.0005)
        parts.push_back(tied(fmt::format("{} {:.1f} %", input_name(name), 100 * value / total)));
    out += wrapped(joined(parts), "    critical path              ", "                               ");
  }
  if (r.memory.per_gpu_bytes && r.memory.capacity_bytes)
    line(out, "memory of a GPU",
         fmt::format("{} of {}", size_text(*r.memory.per_gpu_bytes), size_text(*r.memory.capacity_bytes)));
  std::vector<std::string> memory;
  for (const auto& [name, part_bytes] : r.memory.parts_bytes)
    if (part_bytes > 0) memory.push_back(tied(input_name(name) + " " + size_text(part_bytes)));
  if (!memory.empty())
    out += wrapped(joined(memory), "                               ", "                               ");
  if (r.memory.host_bytes)
    line(out, "host memory of a node",
         fmt::format("{} of {}", size_text(*r.memory.host_bytes), or_dash(r.memory.host_capacity_bytes, size_text)));
}

void jobs_lines(std::string& out, const Result& r) {
  if (r.jobs.empty()) return;
  heading(out, "Jobs that share the fabric (a step of this job, a turn of a neighbour)");
  for (const JobResult& job : r.jobs) {
    std::string text = fmt::format("{}, alone {}: {:.3f} times as long", or_dash(job.together_s, time_text),
                                   or_dash(job.alone_s, time_text), job.slow_down.value_or(1));
    if (!job.bottleneck.empty()) text += ", bound by " + job.bottleneck;
    line(out, job.name.size() > 24 ? job.name.substr(0, 24) : job.name, text);
  }
}

const char* rule_meaning(const std::string& rule) {
  if (rule == "as_published") return "used leaves whole, spines by units in use";
  if (rule == "as_stated") return "ports in use over ports, for every switch";
  if (rule == "whole_switches") return "every switch that carries the job's traffic";
  if (rule == "by_load") return "by the traffic the switch carries";
  return "";
}

void power_lines(std::string& out, const Result& r) {
  const PowerResult& p = r.power;
  heading(out, "Power (DC at the node, unless said otherwise)");
  std::string mean = or_dash(p.mean, power_text);
  if (p.min && p.max && *p.max - *p.min > 0.5)
    mean += fmt::format("; lowest node {}, highest {}", power_text(*p.min), power_text(*p.max));
  line(out, "node, mean of the run", mean);
  line(out, "node, steady training", or_dash(p.steady, power_text));
  std::vector<std::string> levels;
  if (p.evaluation) levels.push_back("evaluating " + power_text(*p.evaluation));
  if (p.wait) levels.push_back("waiting " + power_text(*p.wait));
  if (p.idle) levels.push_back("idle " + power_text(*p.idle));
  line(out, "node, otherwise", joined(levels));
  line(out, "GPU, steady training", or_dash(p.gpu_steady, power_text));
  if (p.peak_bus_w)
    line(out, "bus, peak",
         power_text(*p.peak_bus_w) +
             (p.shelf_headroom ? fmt::format("; {:.0f} % of its rectifiers' rating left", 100 * *p.shelf_headroom)
                               : ""));
  if (p.network_w) {
    std::string text = power_text(*p.network_w);
    if (p.network_w_per_node && *p.network_w > 0)
      text += fmt::format(", {} per node", power_text(*p.network_w_per_node));
    line(out, "network share", text + ", rule " + p.network_rule);
  }
  for (const auto& entry : Choices<NetworkRule>::table()) {
    const auto found = p.network_w_by_rule.find(entry.first);
    if (found == p.network_w_by_rule.end()) continue;
    out += fmt::format("      {:<16} {:>10}  {}\n", entry.first, or_dash(found->second, power_text),
                       rule_meaning(entry.first));
  }
}

// Headroom of every stage with a rating, and how the building's power moves.
void grid_lines(std::string& out, const Result& r) {
  const GridResult& g = r.grid;
  const PowerSwings& f = g.facility;
  if (f.peak_w <= 0) return;
  heading(out, "Power delivery and grid");
  for (const StageTotals& t : g.stages) {
    if (t.rating_w <= 0) continue;
    const double left_w = t.spare_headroom_w;
    line(out, t.stage + ", peak",
         fmt::format("{} of {} ({} at {:.1f} s); {} {}", power_text(t.peak_w), power_text(t.rating_w), t.peak_unit,
                     t.peak_at_s, power_text(std::abs(left_w)), left_w >= 0 ? "left" : "short"));
  }
  line(out, "facility, mean and peak",
       fmt::format("{}, {}; over time p5 {}, p50 {}, p95 {}", power_text(f.mean_w), power_text(f.peak_w),
                   power_text(f.p5_w), power_text(f.p50_w), power_text(f.p95_w)));
  for (const Ramp& ramp : f.ramps)
    line(out, fmt::format("ramp over {:g} s", ramp.window_s),
         fmt::format("up {}/s, down {}/s", power_text(ramp.up_w_per_s), power_text(ramp.down_w_per_s)));
  line(out, "swing inside a step", or_dash(g.facility.step_swing_w, power_text));
}

void energy_lines(std::string& out, const Result& r) {
  // A run that no meter's file reaches beyond and no factor scales has one window.
  const bool scored = r.energy_mlperf_v4_0.rcp_factor &&
                      (*r.energy_mlperf_v4_0.rcp_factor != 1 ||
                       std::abs(r.energy_mlperf_v4_0.nodes_dc_j.value_or(0) - r.energy.nodes_dc_j.value_or(0)) >
                           1e-9 * r.energy.nodes_dc_j.value_or(0));
  heading(out, "Energy");
  out += fmt::format("    {:<30} {:>16} {:>16}\n", "window", "run", scored ? "mlperf_v4_0" : "");
  const auto second = [&](Maybe v, const auto& text) { return scored ? or_dash(v, text) : std::string(); };
  const auto row = [&](const char* name, Maybe a, Maybe b) {
    if (a || b) out += fmt::format("    {:<30} {:>16} {:>16}\n", name, or_dash(a, energy_text), second(b, energy_text));
  };
  const auto kwh = [](double v) { return plain(v / joules_per_kwh) + " kWh"; };
  const EnergyResult &a = r.energy, &b = r.energy_mlperf_v4_0;
  row("nodes, DC", a.nodes_dc_j, b.nodes_dc_j);
  row("network", a.network_j, b.network_j);
  row("total, DC", a.total_dc_j, b.total_dc_j);
  row("rectifier loss", a.rectifier_loss_j, b.rectifier_loss_j);
  row("total, AC", a.total_ac_j, b.total_ac_j);
  out += fmt::format("    {:<30} {:>16} {:>16}\n", "facility (x PUE)", or_dash(a.facility_j, kwh),
                     second(b.facility_j, kwh));
  if (a.ppue_j || b.ppue_j)
    out += fmt::format("    {:<30} {:>16} {:>16}\n", "  tank cooling in it (pPUE)", or_dash(a.ppue_j, kwh),
                       second(b.ppue_j, kwh));
  const auto kg = [](double v) { return plain(v) + " kg CO2e"; };
  out +=
      fmt::format("    {:<30} {:>16} {:>16}\n",
                  r.carbon.intensity_kg_per_kwh ? fmt::format("carbon ({:.3f} kg/kWh)", *r.carbon.intensity_kg_per_kwh)
                                                : std::string("carbon"),
                  or_dash(r.carbon.kg_co2e, kg), second(r.carbon.kg_co2e_mlperf_v4_0, kg));
  const GridResult& g = r.grid;
  const auto joules = [](double v) { return v < 1 ? plain(1e3 * v) + " mJ" : plain(v) + " J"; };
  if (g.kg_co2e_market)
    out += fmt::format("    {:<30} {:>16}\n", "carbon, market-based", or_dash(g.kg_co2e_market, kg));
  if (g.dc_per_sample_j)
    out += fmt::format("    {:<30} {:>16}\n", "DC for each sample", or_dash(g.dc_per_sample_j, joules));
  if (g.dc_per_token_j)
    out += fmt::format("    {:<30} {:>16}\n", "DC for each token", or_dash(g.dc_per_token_j, joules));
  if (g.hourly && !g.hourly->start.empty())
    out += fmt::format("    hourly, started {}: {}, {} USD\n", g.hourly->start, or_dash(g.hourly->kg_co2e, kg),
                       or_dash(g.hourly->cost_usd, [](double v) { return plain(v); }));
  if (g.hourly && !g.hourly->least_carbon_start.empty())
    out += fmt::format("    least carbon: start {}, {} (worst hour {})\n", g.hourly->least_carbon_start,
                       or_dash(g.hourly->least_kg_co2e, kg), or_dash(g.hourly->most_kg_co2e, kg));
  if (g.hourly && !g.hourly->least_cost_start.empty())
    out += fmt::format("    least cost: start {}, {} USD (worst hour {} USD)\n", g.hourly->least_cost_start,
                       or_dash(g.hourly->least_cost_usd, [](double v) { return plain(v); }),
                       or_dash(g.hourly->most_cost_usd, [](double v) { return plain(v); }));
  for (const auto& [name, value] : r.cost) {  // such as "energy_usd", of the window run
    const bool dollars = name.size() > 4 && name.compare(name.size() - 4, 4, "_usd") == 0;
    const std::string what = dollars ? name.substr(0, name.size() - 4) : name;
    if (value) out += fmt::format("    {:<30} {:>16}\n", "cost of " + what, plain(*value) + (dollars ? " USD" : ""));
  }
  if (!scored) return;
  out += wrapped(
      fmt::format(
          "run: from run_start to run_stop. mlperf_v4_0: mean power of the whole meter file x run time, network "
          "included{}; the rule of MLPerf Training v4.0.",
          b.rcp_factor ? fmt::format(", x RCP factor {}", plain(*b.rcp_factor, 6)) : ""),
      "    ", "    ");
}

void reference_lines(std::string& out, const Result& r) {
  if (r.reference.rows.empty()) return;
  heading(out, "Against the measurement");
  if (!r.reference.source.empty()) out += wrapped(r.reference.source, "    ", "    ");
  for (const char* kind : {"predicted", "fitted", "given"}) {
    bool first = true;
    for (const ReferenceRow& row : r.reference.rows) {
      if (row.kind != kind) continue;
      if (std::exchange(first, false))
        out += fmt::format("    {:<26} {:>16} {:>16} {:>10}\n", kind, "simulated", "measured", "error");
      const auto text = [&](double v) { return in_unit(v, row.unit); };
      const bool known = quantity_unit(row.quantity).has_value();
      out +=
          fmt::format("      {:<24} {:>16} {:>16} {:>10}\n", row.quantity + (known ? "" : " (?)"),
                      or_dash(row.predicted, text), or_dash(row.measured, text), or_dash(row.error_pct, percent_text));
    }
  }
  out += "    predicted: nothing was fitted on it. fitted: a constant was.\n    given: follows from inputs.\n";
}

Maybe measured_of(const Result& r, const std::string& quantity) {
  for (const ReferenceRow& row : r.reference.rows)
    if (row.quantity == quantity) return row.measured;
  return std::nullopt;
}

}  // namespace

std::string result_table(const Result& r) {
  std::string out = r.scenario + "\n";
  if (!r.error.empty()) return out + "  failed: " + r.error.substr(0, r.error.find('\n')) + "\n\n";
  plan_lines(out, r);
  step_lines(out, r);
  jobs_lines(out, r);
  out += run_lines(r);
  power_lines(out, r);
  grid_lines(out, r);
  energy_lines(out, r);
  reference_lines(out, r);
  std::vector<std::string> warnings = r.warnings;
  for (std::string& w : reference_warnings(r)) warnings.push_back(std::move(w));
  if (!warnings.empty()) heading(out, "Warnings");
  for (const std::string& warning : warnings) out += wrapped(warning, "    ! ", "      ");
  return out + "\n";
}

std::string side_by_side(const std::vector<Outcome>& outcomes) {
  if (outcomes.size() < 2) return "";
  struct Shown {
    const char* name;
    const char* unit;
    const char* quantity;
    double factor;
  };
  // Energies in the window of the published figures.
  static constexpr Shown columns[] = {{"time", "s", "run_s", 1},
                                      {"node DC", "W", "node_dc_w", 1},
                                      {"network", "W", "network_w", 1},
                                      {"DC *", "MJ", "dc_mlperf_j", 1e-6},
                                      {"AC *", "MJ", "ac_mlperf_j", 1e-6},
                                      {"site *", "kWh", "facility_mlperf_j", 1 / joules_per_kwh},
                                      {"carbon *", "kg CO2e", "kg_co2e_mlperf", 1}};
  const auto row = [](const char* name, const auto& cell) {
    std::string line = fmt::format("  {:<11}", name);
    for (const Shown& c : columns) line += fmt::format(" {:>8}", cell(c));
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string out = "Side by side\n" + row("", [](const Shown& c) { return c.name; }) +
                    row("", [](const Shown& c) { return c.unit; });
  for (const Outcome& o : outcomes) {
    const Result& r = o.result;
    out += "  " + r.scenario + "\n";
    if (!r.error.empty()) {
      out += wrapped("failed: " + r.error.substr(0, r.error.find('\n')), "    ", "    ");
      continue;
    }
    const auto text = [](Maybe v, double factor) { return or_dash(v, [&](double x) { return plain(x * factor, 5); }); };
    out += row("  simulated", [&](const Shown& c) { return text(result_quantity(r, c.quantity), c.factor); });
    if (std::none_of(std::begin(columns), std::end(columns),
                     [&](const Shown& c) { return measured_of(r, c.quantity).has_value(); }))
      continue;
    out += row("  measured", [&](const Shown& c) { return text(measured_of(r, c.quantity), c.factor); });
    out += row("  error", [&](const Shown& c) {
      const Maybe m = measured_of(r, c.quantity);
      return m ? or_dash(error_pct(result_quantity(r, c.quantity), *m), percent_text) : std::string();
    });
  }
  return out + "  * energy in the window mlperf_v4_0, network included; site: times PUE\n\n";
}

std::string suite_table(const SuiteOutcome& suite) {
  std::string out = "Suite " + suite.name + "\n";
  for (const RowKind kind : {RowKind::predicted, RowKind::in_view, RowKind::fitted, RowKind::given}) {
    bool first = true;
    for (const RowOutcome& r : suite.rows) {
      if (r.row.kind != kind || !r.row.refused.empty()) continue;
      if (std::exchange(first, false))
        out += fmt::format("  {:<25} {:>9} {:>9} {:>9} {:>6}\n", choice_name(kind), "simulated", "measured", "error",
                           "bound");
      const auto text = [&](double v) { return in_unit(v, r.row.unit); };
      std::string bound, status;
      if (const auto met = r.met()) {
        bound = *r.row.bound_pct == 0 ? "exact" : fmt::format("{:g} %", *r.row.bound_pct);
        status = *met ? "MET" : "NOT MET";
        if (r.worse_than_known() && r.known_gap_pct)
          status += fmt::format(", known {:.2f} %", *r.known_gap_pct);
        else if (!*met && !r.worse_than_known())
          status += ", known";
      }
      const bool above = r.row.id.size() > 25;  // a line of its own
      if (above) out += "  " + r.row.id + "\n";
      const std::string numbers =
          fmt::format("  {:<25} {:>9} {:>9} {:>9} {:>6}", above ? "" : r.row.id, or_dash(r.predicted, text),
                      text(r.row.measured), or_dash(r.error_pct, percent_text), bound);
      out += status.empty() ? numbers + "\n" : wrapped(status, numbers + "  ", std::string(66, ' '));
    }
    if (const Maybe mape = suite.mape_pct(kind); mape && kind != RowKind::given)
      out += fmt::format("  mean absolute error of the {} rows: {:.2f} %\n", choice_name(kind), *mape);
  }
  for (const MeanOutcome& m : suite.means) {
    if (!m.value) continue;
    const bool share = m.name == "spearman";
    const auto text = [&](double v) { return share ? fmt::format("{:.3f}", v) : fmt::format("{:.2f} %", v); };
    const std::string seen = m.in_view > 0 ? fmt::format(" ({} in view)", m.in_view) : "";
    std::string line = fmt::format("  {} over {}{}: {}", m.name, m.rows, seen, text(*m.value));
    if (m.null_value) line += fmt::format(" (null model {})", text(*m.null_value));
    if (m.bound)
      line += fmt::format(", bound {}  {}", share ? fmt::format("{:g}", *m.bound) : fmt::format("{:g} %", *m.bound),
                          *m.met() ? "MET" : "NOT MET");
    if (m.met() == false && !m.worse_than_known()) line += ", known";
    out += wrapped(line.substr(2), "  ", "    ");
  }
  std::map<std::string, std::vector<std::string>> refused;
  for (const RowOutcome& r : suite.rows)
    if (!r.row.refused.empty()) refused[r.row.refused].push_back(r.row.id);
  for (const auto& [reason, ids] : refused)
    out += wrapped(fmt::format("refused, {}: {}", reason, fmt::join(ids, " ")), "  ", "    ");
  for (const std::string& error : suite.errors) out += wrapped("failed: " + error, "  ", "    ");
  return out + "\n";
}

std::string results_csv(const std::vector<Outcome>& outcomes) {
  std::string out = "scenario,seed,nodes,gpus,tp,pp,cp,dp,mbs,gbs,ga";
  for (const auto& [name, unit] : quantity_units()) {
    out += "," + name;
    (void)unit;
  }
  out += ",error\n";
  for (const Outcome& o : outcomes) {
    const Result& r = o.result;
    const PlanResult& p = r.plan;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}", csv_field(r.scenario), r.seed, p.nodes, p.gpus, p.tp, p.pp,
                       p.cp, p.dp, p.mbs, p.gbs, p.ga);
    for (const auto& entry : quantity_units()) {
      const Maybe v = r.error.empty() ? result_quantity(r, entry.first) : std::nullopt;
      out += v && std::isfinite(*v) ? fmt::format(",{}", *v) : ",";
    }
    out += "," + csv_field(r.error) + "\n";
  }
  return out;
}

}  // namespace tw::report
