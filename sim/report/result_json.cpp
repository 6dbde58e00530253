#include "report/result_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/intervals_json.hpp"

namespace tw::report {
namespace {

using nlohmann::ordered_json;
using json = ordered_json;  // keys in the order of the contract

json number(Maybe v) {
  return v && std::isfinite(*v) ? json(*v) : json(nullptr);
}
// Counts are written as integers.
json count(Maybe v) {
  if (!v || !std::isfinite(*v)) return nullptr;
  if (*v == std::floor(*v) && std::abs(*v) < 9e15) return static_cast<int64_t>(*v);
  return *v;
}

template <class Value>
json map_of(const std::map<std::string, Value>& values) {
  json out = json::object();
  for (const auto& [name, value] : values) out[name] = number(value);
  return out;
}

json plan_json(const PlanResult& p) {
  return {{"nodes", p.nodes}, {"gpus", p.gpus}, {"tp", p.tp},   {"pp", p.pp},   {"vp", p.vp}, {"cp", p.cp},
          {"dp", p.dp},       {"ep", p.ep},     {"mbs", p.mbs}, {"gbs", p.gbs}, {"ga", p.ga}};
}

json step_json(const StepResult& s) {
  const Breakdown& b = s.breakdown_s;
  return {{"time_s", number(s.time_s)},
          {"tokens_per_s", number(s.tokens_per_s)},
          {"samples_per_s", number(s.samples_per_s)},
          {"mfu", number(s.mfu)},
          {"breakdown_s",
           {{"compute", number(b.compute)},
            {"host", number(b.host)},
            {"tp", number(b.tp)},
            {"cp", number(b.cp)},
            {"pp", number(b.pp)},
            {"dp", number(b.dp)},
            {"ep", number(b.ep)},
            {"bubble", number(b.bubble)},
            {"optimizer", number(b.optimizer)},
            {"jitter", number(b.jitter)},
            {"other", number(b.other)}}}};
}

json spread_json(const Spread& s) {
  return {{"mean", number(s.mean)},
          {"sd", number(s.sd)},
          {"p5", number(s.p5)},
          {"p50", number(s.p50)},
          {"p95", number(s.p95)}};
}

// What the seeded runs say together.
json series_json(const SeriesResult& r) {
  return {{"count", r.count},
          {"samples", spread_json(r.samples)},
          {"total_dc_j", spread_json(r.total_dc_j)},
          {"total_ac_j", spread_json(r.total_ac_j)},
          {"facility_j", spread_json(r.facility_j)},
          {"kg_co2e", spread_json(r.kg_co2e)},
          {"goodput", spread_json(r.goodput)},
          {"lost_s", spread_json(r.lost_s)},
          {"official_dc_j", number(r.official_dc_j)},
          {"rcp_factor", number(r.rcp_factor)},
          {"rcp_rule", r.rcp_rule.empty() ? json(nullptr) : json(r.rcp_rule)},
          {"half_width_95_pct", number(r.half_width_pct)},
          {"runs_needed_95",
           {{"1_pct", count(r.needed_1pct)}, {"2_pct", count(r.needed_2pct)}, {"5_pct", count(r.needed_5pct)}}}};
}

json checkpoints_json(const CheckpointResult& c) {
  if (!c.bytes) return nullptr;
  return {{"bytes", number(c.bytes)},     {"count", count(c.count)},    {"interval_s", number(c.interval_s)},
          {"write_s", number(c.write_s)}, {"read_s", number(c.read_s)}, {"blocked_s", number(c.blocked_s)},
          {"wait_s", number(c.wait_s)},   {"bottleneck", c.bottleneck}};
}

json failures_json(const FailuresResult& f) {
  if (!f.count) return nullptr;
  return {{"mtbf_s", number(f.mtbf_s)},
          {"count", count(f.count)},
          {"by_component", map_of(f.by_component)},
          {"rework_s", number(f.rework_s)},
          {"restart_s", number(f.restart_s)},
          {"spare_wait_s", number(f.spare_wait_s)},
          {"daly_interval_s", number(f.daly_interval_s)},
          {"best_interval_s", number(f.best_interval_s)},
          {"best_goodput", number(f.best_goodput)},
          {"present_goodput", number(f.present_goodput)}};
}

json data_json(const DataResult& d) {
  if (!d.batch_s) return nullptr;
  return {{"batch_s", number(d.batch_s)}, {"wait_s", number(d.wait_s)}, {"bottleneck", d.bottleneck}};
}

json run_json(const RunResult& r) {
  const Distribution& t = r.time_to_train_s;
  return {{"time_to_train_s",
           {{"mean", number(t.mean)},
            {"sd", number(t.sd)},
            {"p5", number(t.p5)},
            {"p50", number(t.p50)},
            {"p95", number(t.p95)},
            {"olympic", number(t.olympic)},
            {"official", number(t.official)}}},
          {"steps", count(r.steps)},
          {"samples", count(r.samples)},
          {"evaluations", count(r.evaluations)},
          {"eval_s", number(r.eval_s)},
          {"eval_first_s", number(r.eval_first_s)},
          {"init_s", number(r.init_s)},
          {"first_step_s", number(r.first_step_s)},
          {"wait_s", number(r.wait_s)},
          {"checkpoint_s", number(r.checkpoint_s)},
          {"lost_s", number(r.lost_s)},
          {"days_per_1T_tokens", number(r.days_per_1T_tokens)},
          {"days_per_1T_tokens_effective", number(r.days_per_1T_tokens_effective)},
          {"days", number(r.days)},
          {"tokens", count(r.tokens)},
          {"target_samples", number(r.target_samples)},
          {"goodput", number(r.goodput)},
          {"slow_s", number(r.slow_s)},
          {"checkpoints", checkpoints_json(r.checkpoints)},
          {"failures", failures_json(r.failures)},
          {"data", data_json(r.data)}};
}

json power_json(const PowerResult& p) {
  json nodes = json::array();
  for (const NodePowerResult& n : p.per_node)
    nodes.push_back(
        {{"node", n.node}, {"mean_w", number(n.mean_w)}, {"peak_w", number(n.peak_w)}, {"dc_j", number(n.dc_j)}});
  json rules = json::object();
  for (const auto& entry : Choices<NetworkRule>::table()) {
    const auto found = p.network_w_by_rule.find(entry.first);
    rules[entry.first] = number(found == p.network_w_by_rule.end() ? std::nullopt : found->second);
  }
  return {{"node_dc_w",
           {{"mean", number(p.mean)},
            {"min", number(p.min)},
            {"max", number(p.max)},
            {"steady", number(p.steady)},
            {"idle", number(p.idle)}}},
          {"wait_w", number(p.wait)},
          {"eval_w", number(p.evaluation)},
          {"gpu_w", number(p.gpu_steady)},
          {"per_node", nodes},
          {"network_w", number(p.network_w)},
          {"network_w_per_node", number(p.network_w_per_node)},
          {"network_rule", p.network_rule.empty() ? json(nullptr) : json(p.network_rule)},
          {"network_w_by_rule", rules},
          {"peak_bus_w", number(p.peak_bus_w)},
          {"shelf_headroom", number(p.shelf_headroom)}};
}

// The grid's view: what operators of feeds and of grids ask.
json facility_json(const GridResult& g) {
  const PowerSwings& f = g.facility;
  json ramps = json::array();
  for (const Ramp& r : f.ramps)
    ramps.push_back({{"window_s", number(r.window_s)},
                     {"up_w_per_s", number(r.up_w_per_s)},
                     {"up_at_s", number(r.up_at_s)},
                     {"down_w_per_s", number(r.down_w_per_s)},
                     {"down_at_s", number(r.down_at_s)}});
  return {{"mean_w", number(f.mean_w)},
          {"sd_w", number(f.sd_w)},
          {"least_w", number(f.least_w)},
          {"p5_w", number(f.p5_w)},
          {"p50_w", number(f.p50_w)},
          {"p95_w", number(f.p95_w)},
          {"p99_w", number(f.p99_w)},
          {"peak_w", number(f.peak_w)},
          {"largest_step_w", number(f.largest_step_w)},
          {"largest_step_at_s", number(f.largest_step_at_s)},
          {"step_swing_w", number(g.step_swing_w)},
          {"ramps", ramps}};
}

json delivery_json(const GridResult& g) {
  json stages = json::array();
  for (const StageTotals& t : g.stages)
    stages.push_back({{"stage", t.stage},
                      {"units", t.units},
                      {"output_j", number(t.output_j)},
                      {"loss_j", number(t.loss_j)},
                      {"peak_w", number(t.peak_w)},
                      {"peak_unit", t.peak_unit},
                      {"peak_at_s", number(t.peak_at_s)},
                      {"rating_w", t.rating_w > 0 ? number(t.rating_w) : json(nullptr)},
                      {"headroom_w", t.rating_w > 0 ? number(t.headroom_w) : json(nullptr)},
                      {"spare_headroom_w", t.rating_w > 0 ? number(t.spare_headroom_w) : json(nullptr)},
                      {"redundant", t.redundant}});
  return {{"stages", stages}, {"grid_j", number(g.grid_j)}};
}

json hourly_json(const std::optional<HourlyResult>& h) {
  if (!h) return nullptr;
  const auto text = [](const std::string& t) { return t.empty() ? json(nullptr) : json(t); };
  return {{"start", text(h->start)},
          {"kg_co2e", number(h->kg_co2e)},
          {"kg_co2e_market", number(h->kg_co2e_market)},
          {"cost_usd", number(h->cost_usd)},
          {"least_carbon_start", text(h->least_carbon_start)},
          {"least_kg_co2e", number(h->least_kg_co2e)},
          {"most_kg_co2e", number(h->most_kg_co2e)},
          {"least_cost_start", text(h->least_cost_start)},
          {"least_cost_usd", number(h->least_cost_usd)},
          {"most_cost_usd", number(h->most_cost_usd)}};
}

json energy_json(const EnergyResult& e) {
  return {{"nodes_dc_j", number(e.nodes_dc_j)}, {"network_j", number(e.network_j)},
          {"total_dc_j", number(e.total_dc_j)}, {"rectifier_loss_j", number(e.rectifier_loss_j)},
          {"total_ac_j", number(e.total_ac_j)}, {"facility_j", number(e.facility_j)},
          {"ppue_j", number(e.ppue_j)}};
}

json result_json(const Result& r) {
  json power = power_json(r.power);
  power["facility"] = facility_json(r.grid);
  power["delivery"] = delivery_json(r.grid);
  power["failures"] = r.grid.failures;
  json energy = energy_json(r.energy);
  energy["dc_per_sample_j"] = number(r.grid.dc_per_sample_j);
  energy["dc_per_token_j"] = number(r.grid.dc_per_token_j);
  energy["facility_per_sample_j"] = number(r.grid.facility_per_sample_j);
  energy["facility_per_token_j"] = number(r.grid.facility_per_token_j);
  energy["nodes_parts_j"] = map_of(r.grid.parts_j);
  json mlperf = energy_json(r.energy_mlperf_v4_0);
  mlperf["rcp_factor"] = number(r.energy_mlperf_v4_0.rcp_factor);
  json rows = json::array();
  for (const ReferenceRow& row : r.reference.rows)
    rows.push_back({{"quantity", row.quantity},
                    {"unit", row.unit},
                    {"measured", number(row.measured)},
                    {"predicted", number(row.predicted)},
                    {"error_pct", number(row.error_pct)},
                    {"kind", row.kind}});
  json jobs = json::array();
  for (const JobResult& job : r.jobs)
    jobs.push_back({{"name", job.name},
                    {"alone_s", number(job.alone_s)},
                    {"together_s", number(job.together_s)},
                    {"slow_down", number(job.slow_down)},
                    {"bottleneck", job.bottleneck.empty() ? json(nullptr) : json(job.bottleneck)},
                    {"narrowest_link", job.narrowest.empty() ? json(nullptr) : json(job.narrowest)}});
  json warnings = r.warnings;
  for (const std::string& warning : reference_warnings(r)) warnings.push_back(warning);
  return {{"trainwatt", TW_VERSION},
          {"scenario", r.scenario},
          {"seed", r.seed},
          {"inputs_sha256", r.inputs_sha256},
          {"plan", plan_json(r.plan)},
          {"step", step_json(r.step)},
          {"memory",
           {{"per_gpu_bytes", number(r.memory.per_gpu_bytes)},
            {"capacity_bytes", number(r.memory.capacity_bytes)},
            {"parts_bytes", map_of(r.memory.parts_bytes)}}},
          {"run", run_json(r.run)},
          {"runs", series_json(r.series_of_runs)},
          {"power", power},
          {"energy", energy},
          {"energy_mlperf_v4_0", mlperf},
          {"carbon",
           {{"kg_co2e", number(r.carbon.kg_co2e)},
            {"kg_co2e_mlperf_v4_0", number(r.carbon.kg_co2e_mlperf_v4_0)},
            {"intensity_kg_per_kwh", number(r.carbon.intensity_kg_per_kwh)},
            {"kg_co2e_market", number(r.grid.kg_co2e_market)},
            {"hourly", hourly_json(r.grid.hourly)}}},
          {"cost", map_of(r.cost)},
          {"jobs", jobs},
          {"reference",
           {{"source", r.reference.source.empty() ? json(nullptr) : json(r.reference.source)}, {"rows", rows}}},
          {"warnings", warnings}};
}

std::string written(const json& j) {
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string status(const RowOutcome& row) {
  if (!row.row.refused.empty()) return "REFUSED";
  const auto met = row.met();
  if (!met) return "REPORTED";
  return *met ? "MET" : "NOT MET";
}

}  // namespace

std::string results_json(const std::vector<Outcome>& outcomes) {
  json all = json::array();
  for (const Outcome& o : outcomes) {
    if (o.result.error.empty()) {
      all.push_back(result_json(o.result));
      put_intervals(all.back(), o.result);
    } else {
      all.push_back({{"scenario", o.result.scenario}, {"error", o.result.error}});
    }
  }
  return written(all);
}

std::string suites_json(const std::vector<SuiteOutcome>& suites) {
  json all = json::array();
  for (const SuiteOutcome& suite : suites) {
    json rows = json::array();
    for (const RowOutcome& r : suite.rows) {
      rows.push_back({{"id", r.row.id},
                      {"quantity", r.row.quantity},
                      {"unit", r.row.unit},
                      {"measured", number(r.row.measured)},
                      {"predicted", number(r.predicted)},
                      {"error_pct", number(r.error_pct)},
                      {"kind", choice_name(r.row.kind)},
                      {"rule", r.row.rule.empty() ? json(nullptr) : json(r.row.rule)},
                      {"bound_pct", number(r.row.bound_pct)},
                      {"status", status(r)},
                      {"known_gap_pct", number(r.known_gap_pct)},
                      {"null_predicted", number(r.null_predicted)},
                      {"null_error_pct", number(r.null_error_pct)},
                      {"counted", r.row.counted},
                      {"group", r.row.group},
                      {"refused", r.row.refused},
                      {"source", r.row.source}});
    }
    json means = json::array();
    for (const MeanOutcome& m : suite.means)
      means.push_back({{"name", m.name},
                       {"value", number(m.value)},
                       {"bound", number(m.bound)},
                       {"known_gap", number(m.known)},
                       {"null_value", number(m.null_value)},
                       {"rows", m.rows}});
    all.push_back({{"name", suite.name},
                   {"rows", rows},
                   {"means", means},
                   {"mape_pct",
                    {{"fitted", number(suite.mape_pct(RowKind::fitted))},
                     {"in_view", number(suite.mape_pct(RowKind::in_view))},
                     {"predicted", number(suite.mape_pct(RowKind::predicted))}}},
                   {"errors", suite.errors}});
  }
  return written({{"suites", all}});
}

std::vector<std::string> reference_warnings(const Result& result) {
  Maybe facility_j, carbon_kg;
  for (const ReferenceRow& row : result.reference.rows) {
    if (row.quantity == "facility_mlperf_j") facility_j = row.measured;
    if (row.quantity == "kg_co2e_mlperf") carbon_kg = row.measured;
  }
  const Maybe factor = result.carbon.intensity_kg_per_kwh;
  if (!facility_j || !carbon_kg || !factor || *facility_j <= 0) return {};
  const double kwh = *facility_j / joules_per_kwh;
  const double implied = *carbon_kg / kwh;
  // Published to three digits: a rounding of the mass or of the energy moves the factor by less than half a percent.
  if (std::abs(implied / *factor - 1) < 0.005) return {};
  return {
      fmt::format("the published carbon, {:.2f} kg CO2e for {:.3f} kWh, implies {:.3f} kg/kWh and does not follow from "
                  "the site's own {:.3f} kg/kWh, which gives {:.3f} kg; results here use the site's factor",
                  *carbon_kg, kwh, implied, *factor, kwh * *factor)};
}

}  // namespace tw::report
