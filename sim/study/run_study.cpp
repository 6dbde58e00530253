#include "study/run_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/quantile.hpp"
#include "core/sum.hpp"
#include "facility/facility.hpp"
#include "network/process.hpp"
#include "power/energy_window.hpp"
#include "power/meter.hpp"
#include "run/benchmark.hpp"
#include "run/scoring.hpp"
#include "run/step_source.hpp"

namespace tw {
namespace {

constexpr int kPools = 8;   // seeds whose noisy pipeline steps all runs of a long series draw from
constexpr int kPieces = 8;  // of a long series: a fixed number, so that results do not depend on the workers
constexpr int kShortSeries = 24;
constexpr double kZ95 = 1.959963984540054;  // of the normal distribution, two-sided

Spread spread_of(std::vector<double> values) {
  Spread s;
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  Sum sum, squares;
  for (const double v : values) sum.add(v);
  const double mean = sum.value() / n;
  for (const double v : values) squares.add((v - mean) * (v - mean));
  s.mean = mean;
  if (values.size() > 1) s.sd = std::sqrt(squares.value() / (n - 1));
  s.p5 = quantile(values, 0.05), s.p50 = quantile(values, 0.5), s.p95 = quantile(values, 0.95);
  return s;
}

template <class Member>
std::vector<double> values_of(const std::vector<RunSample>& samples, Member member) {
  std::vector<double> values;
  for (const RunSample& s : samples) values.push_back(s.*member);
  return values;
}

double mean_of(const std::vector<double>& values) {
  Sum sum;
  for (const double v : values) sum.add(v);
  return sum.value() / static_cast<double>(values.size());
}

void play_range(PlayedRuns& runs, const RunSeries& series, int begin, int end) {
  for (int i = begin; i < end; ++i) add_sample(runs, *series.scenario, play_one(series, i));
}

// The joules of the nodes, then the samples.
static_assert(std::is_trivially_copyable_v<RunSample>);
std::string bytes_of(const PlayedRuns& runs) {
  std::string out(reinterpret_cast<const char*>(runs.node_j.data()), runs.node_j.size() * sizeof(double));
  return out.append(reinterpret_cast<const char*>(runs.samples.data()), runs.samples.size() * sizeof(RunSample));
}
void add_bytes(PlayedRuns& runs, const std::string& bytes) {
  if (bytes.empty()) return;  // a piece without runs
  std::vector<double> node_j(runs.node_j.size());
  const size_t head = node_j.size() * sizeof(double), count = (bytes.size() - head) / sizeof(RunSample);
  std::memcpy(node_j.data(), bytes.data(), head);
  for (size_t i = 0; i < node_j.size(); ++i) runs.node_j[i] += node_j[i];
  const size_t at = runs.samples.size();
  runs.samples.resize(at + count);
  std::memcpy(&runs.samples[at], bytes.data() + head, count * sizeof(RunSample));
}

// Runs that a score drops at each end: what the benchmark says, where that leaves any.
int dropped(const Scenario& s, size_t runs) {
  const Benchmark* benchmark = find_benchmark(s.benchmark);
  const int drop = benchmark != nullptr ? benchmark->dropped_each_side : 1;
  return runs > 2 * static_cast<size_t>(drop) ? drop : 0;
}

// The runs that a score is taken over: all but `drop` of the fastest and of the slowest.
std::vector<RunSample> in_score(const std::vector<RunSample>& samples, int drop) {
  if (drop == 0) return samples;
  std::vector<ScoredRun> scored;
  for (const RunSample& one : samples) scored.push_back({one.time_s, one.meter_dc_j, 0});
  std::vector<RunSample> kept;
  for (const size_t i : official_score(scored, drop, 1).in_score) kept.push_back(samples[i]);
  return kept;
}

// From a failure until training goes on, the interval in use, and what others would give.
void fill_intervals(FailuresResult& f, const RunInputs& in, const RunModel& model, const RunPlan& run) {
  const CheckpointCost cost = checkpoint_cost(in.step, *run.checkpoints);
  const double blocked_s = run.checkpoints->asynchronous ? cost.snapshot_s : cost.write_s;
  const double down_s = restart_s(in, cost.read_s), step_s = std::max(model.quiet.time_s, model.input.batch_s);
  // Theory and trials count work between checkpoints, the scenario from the beginning of one to that of the next.
  f.daly_interval_s = daly_interval_s(blocked_s, *f.mtbf_s) + blocked_s;
  const auto trials = try_intervals(cost.write_s, blocked_s, down_s, *f.mtbf_s, step_s, 1);
  f.best_interval_s = trials.front().interval_s + blocked_s, f.best_goodput = trials.front().goodput;
  const double present_s = run.checkpoints->interval.value() > 0 ? run.checkpoints->interval.value()
                                                                 : run.checkpoints->every_steps * step_s + blocked_s;
  f.present_goodput =
      interval_goodput(std::max(step_s, present_s - blocked_s), cost.write_s, blocked_s, down_s, *f.mtbf_s, 1);
}

}  // namespace

double submission_factor(const Scenario& s, const std::vector<double>& target_samples, std::string& rule) {
  if (s.run.mlperf_v4_0.rcp_factor) {
    rule = "given";
    return *s.run.mlperf_v4_0.rcp_factor;
  }
  const Benchmark* benchmark = find_benchmark(s.benchmark);
  const Convergence* convergence = nullptr;
  if (s.run.convergence)  // one draw or two say nothing of how a submission converges
    convergence = target_samples.size() < 3 ? nullptr : &*s.run.convergence;
  else if (benchmark != nullptr && benchmark->convergence && s.run.samples &&
           (s.run.evaluation_interval > 0 || benchmark->offline_interval > 0) &&
           convergence_problem(*benchmark->convergence, s.plan.gbs).empty())
    convergence = &*benchmark->convergence;
  if (convergence == nullptr || target_samples.empty()) return 1;
  rule = "convergence data";
  return rcp_factor(reference_samples(*convergence, s.plan.gbs),
                    olympic_mean(target_samples, dropped(s, target_samples.size())));
}

double days_per_trillion_tokens(double tokens_per_s) {
  return 1e12 / tokens_per_s / 86400;
}

double runs_needed(double relative_sd, double relative_error) {
  const double runs = std::pow(kZ95 * relative_sd / relative_error, 2);
  return std::max(1.0, std::ceil(runs - 1e-9));
}

SimulatedRun play_one(const RunSeries& series, int index) {
  SeriesRun one;
  one.seed = series.seed + static_cast<uint64_t>(index);
  one.index = static_cast<size_t>(index);
  one.pool_seed = series.seed + static_cast<uint64_t>(index % kPools);
  one.pools = series.pools;
  SimulatedRun run = play_run(*series.inputs, *series.model, *series.engine, one);
  // The run counts its nodes from 0; here they get their places.
  for (NodeGroup& group : run.timeline.groups)
    for (int& node : group.nodes) node = (*series.inputs->placed)[static_cast<size_t>(node)];
  return run;
}

bool PlayedRuns::finished() const {
  return std::all_of(samples.begin(), samples.end(), [](const RunSample& s) { return s.finished; });
}

void add_sample(PlayedRuns& runs, const Scenario& s, const SimulatedRun& run) {
  const Cluster& cluster = s.cluster;
  const MlperfWindow& window = s.run.mlperf_v4_0;
  const Timeline& t = run.timeline;
  RunSample sample;
  sample.finished = !run.stopped;
  sample.time_s = t.run_end_s - t.run_begin_s;
  sample.samples = run.samples, sample.target_samples = run.target_samples;
  sample.goodput = sample.time_s > 0 ? run.useful_s / sample.time_s : 0;
  sample.lost_s = run.rework_s + run.restart_s + run.supply_lost_s;
  const JobEnergy inside = job_energy(cluster, t, run.power, t.run_begin_s, t.run_end_s);
  sample.nodes_dc_j = inside.nodes_dc_j, sample.rectifier_loss_j = inside.rectifier_loss_j;
  sample.gpus_j = inside.parts.gpus;
  for (size_t k = 0; k < kNodePartNames.size(); ++k)
    sample.others_j[k] = inside.parts.others.at(std::string(kNodePartNames[k]));
  const double from_s = t.run_begin_s - window.meter_before.value(), to_s = t.run_end_s + window.meter_after.value();
  const bool same = to_s - from_s == sample.time_s;
  const JobEnergy metered = same ? inside : job_energy(cluster, t, run.power, from_s, to_s);
  const double scale = same ? 1 : sample.time_s / (to_s - from_s);
  sample.meter_dc_j = metered.nodes_dc_j * scale, sample.meter_loss_j = metered.rectifier_loss_j * scale;
  runs.samples.push_back(sample);
  runs.node_j.resize(inside.node_j.size());
  size_t at = 0;
  for (const auto& [node, joules] : inside.node_j) runs.node_j[at++] += joules;
}

void play_series(PlayedRuns& runs, const RunSeries& series, int workers) {
  if (series.runs <= kShortSeries) return play_range(runs, series, 1, series.runs);
  std::vector<uint64_t> seeds;
  for (int k = 0; k < kPools; ++k) seeds.push_back(series.seed + static_cast<uint64_t>(k));
  fill_pools(*series.model, *series.engine, seeds, *series.pools);
  const auto begin_of = [&](size_t piece) {
    return 1 + static_cast<int>(static_cast<size_t>(series.runs - 1) * piece / kPieces);
  };
  const auto answers = in_children(kPieces,
                                   [&](size_t piece) {
                                     PlayedRuns own;
                                     play_range(own, series, begin_of(piece), begin_of(piece + 1));
                                     return bytes_of(own);
                                   },
                                   {workers, 0, {}, {}});
  for (const ChildResult& answer : answers) {
    rethrow(answer);
    add_bytes(runs, answer.value);
  }
}

Distribution time_distribution(const Scenario& scenario, const PlayedRuns& runs, double rcp_factor) {
  Distribution d;
  if (!runs.finished()) return d;
  const std::vector<RunSample>& samples = runs.samples;
  const Spread s = spread_of(values_of(samples, &RunSample::time_s));
  d.mean = s.mean, d.sd = s.sd, d.p5 = s.p5, d.p50 = s.p50, d.p95 = s.p95;
  d.olympic = olympic_mean(values_of(samples, &RunSample::time_s), dropped(scenario, samples.size()));
  d.official = *d.olympic * rcp_factor;
  return d;
}

SeriesResult series_result(const Scenario& s, const PlayedRuns& runs, Maybe network_w) {
  const std::vector<RunSample>& samples = runs.samples;
  SeriesResult r;
  r.count = static_cast<int>(samples.size());
  r.finished = static_cast<int>(
      std::count_if(samples.begin(), samples.end(), [](const RunSample& one) { return one.finished; }));
  std::vector<double> dc, ac, facility, kg;
  std::vector<ScoredRun> scored;
  for (const RunSample& one : samples) {
    PowerRun power;
    power.run_end_s = one.time_s;
    power.nodes_dc_j = one.nodes_dc_j, power.rectifier_loss_j = one.rectifier_loss_j;
    const EnergyWindow window = run_window(power, network_w);
    const FacilityEnergy building = facility_energy(s.site, window);
    if (window.total_dc_j) dc.push_back(*window.total_dc_j);
    if (window.total_ac_j) ac.push_back(*window.total_ac_j);
    if (building.facility_j) facility.push_back(*building.facility_j);
    if (building.kg_co2e) kg.push_back(*building.kg_co2e);
    scored.push_back({one.time_s, one.meter_dc_j, network_w.value_or(0)});
  }
  r.samples = spread_of(values_of(samples, &RunSample::samples));
  r.total_dc_j = spread_of(dc), r.total_ac_j = spread_of(ac), r.facility_j = spread_of(facility);
  r.kg_co2e = spread_of(kg);
  r.lost_s = spread_of(values_of(samples, &RunSample::lost_s));
  if (!runs.finished()) return r;  // no score, and no time whose scatter would say how sure it is
  r.goodput = spread_of(values_of(samples, &RunSample::goodput));
  r.rcp_factor = submission_factor(s, values_of(samples, &RunSample::target_samples), r.rcp_rule);
  if (const int drop = dropped(s, samples.size()); drop > 0 && network_w)
    r.official_dc_j = official_score(scored, drop, *r.rcp_factor).energy_j;
  const Spread time = spread_of(values_of(samples, &RunSample::time_s));
  if (time.sd && *time.mean > 0) {
    const auto n = static_cast<double>(samples.size());
    const double relative_sd = *time.sd / *time.mean;
    const double t = student_quantile(n - 1, 0.975);
    r.half_width_pct = 100 * t * relative_sd / std::sqrt(n);
    r.needed_1pct = runs_needed(relative_sd, 0.01), r.needed_2pct = runs_needed(relative_sd, 0.02);
    r.needed_5pct = runs_needed(relative_sd, 0.05);
  }
  return r;
}

EnergyWindow mean_window(const PlayedRuns& runs, Maybe network_w) {
  PowerRun mean;
  mean.run_end_s = mean_of(values_of(runs.samples, &RunSample::time_s));
  mean.nodes_dc_j = mean_of(values_of(runs.samples, &RunSample::nodes_dc_j));
  mean.rectifier_loss_j = mean_of(values_of(runs.samples, &RunSample::rectifier_loss_j));
  return run_window(mean, network_w);
}

EnergyWindow mean_mlperf_window(const Scenario& scenario, const PlayedRuns& runs, Maybe network_w, double rcp_factor) {
  const std::vector<RunSample> kept = in_score(runs.samples, dropped(scenario, runs.samples.size()));
  PowerRun mean;
  mean.run_end_s = mean_of(values_of(kept, &RunSample::time_s)) * rcp_factor;
  mean.nodes_dc_j = mean_of(values_of(kept, &RunSample::meter_dc_j)) * rcp_factor;
  mean.rectifier_loss_j = mean_of(values_of(kept, &RunSample::meter_loss_j)) * rcp_factor;
  EnergyWindow window = run_window(mean, network_w);
  window.rcp_factor = rcp_factor;
  return window;
}

void take_means(Result& r, const PlayedRuns& runs) {
  const auto n = static_cast<double>(runs.samples.size());
  const double time_s = mean_of(values_of(runs.samples, &RunSample::time_s));
  if (r.run.days) r.run.days = time_s / 86400;
  for (auto& [name, joules] : r.grid.parts_j) joules = 0;
  for (const RunSample& one : runs.samples) {
    for (const auto& [name, activity] : Choices<Activity>::table())
      if (one.gpus_j[activity] > 0) r.grid.parts_j["gpu_" + name] += one.gpus_j[activity] / n;
    for (size_t k = 0; k < kNodePartNames.size(); ++k)
      r.grid.parts_j[std::string(kNodePartNames[k])] += one.others_j[k] / n;
  }
  if (runs.node_j.size() != r.power.per_node.size() || runs.node_j.empty()) return;
  Sum watts;
  for (size_t i = 0; i < runs.node_j.size(); ++i) {
    NodePowerResult& node = r.power.per_node[i];
    node.dc_j = runs.node_j[i] / n;
    if (time_s > 0) node.mean_w = node.dc_j / time_s;
    watts.add(node.mean_w);
    r.power.min = i == 0 ? node.mean_w : std::min(*r.power.min, node.mean_w);
    r.power.max = i == 0 ? node.mean_w : std::max(*r.power.max, node.mean_w);
  }
  r.power.mean = watts.value() / static_cast<double>(runs.node_j.size());
}

RunResult run_result(const Scenario& s, const RunInputs& in, const RunModel& model, const SimulatedRun& run,
                     const StepResult& step) {
  RunResult r;
  r.steps = run.steps, r.samples = run.samples, r.evaluations = run.evaluations;
  r.target_samples = run.target_samples;
  if (run.evaluations > 0) r.eval_s = run.eval_s, r.eval_first_s = run.eval_first_s;
  r.init_s = run.init_s, r.first_step_s = run.first_step_s, r.wait_s = run.wait_s;
  r.checkpoint_s = run.checkpoint_s;
  r.lost_s = run.rework_s + run.restart_s + run.supply_lost_s;
  const double time_s = run.timeline.run_end_s - run.timeline.run_begin_s;
  r.slow_s = run.slow_s;
  if (run.stopped)
    r.status = "stopped", r.stopped_at_s = time_s;
  else
    r.days = time_s / 86400, r.goodput = time_s > 0 ? Maybe(run.useful_s / time_s) : std::nullopt;
  if (step.tokens_per_s) {
    r.days_per_1T_tokens = days_per_trillion_tokens(*step.tokens_per_s);
    r.tokens = run.samples * static_cast<double>(s.training->sequence);
    if (*r.tokens > 0 && r.days) r.days_per_1T_tokens_effective = time_s / *r.tokens * 1e12 / 86400;
  }
  if (s.run.checkpoints) {
    const CheckpointCost cost = checkpoint_cost(in.step, *s.run.checkpoints);
    CheckpointResult& c = r.checkpoints;
    c.bytes = cost.bytes, c.count = run.checkpoints, c.write_s = cost.write_s, c.read_s = cost.read_s;
    c.blocked_s = s.run.checkpoints->asynchronous ? cost.snapshot_s : cost.write_s;
    c.wait_s = run.checkpoint_wait_s, c.bottleneck = cost.bottleneck;
    c.interval_s = s.run.checkpoints->interval.value() > 0 ? s.run.checkpoints->interval.value()
                                                           : s.run.checkpoints->every_steps * run.step_s;
  }
  if (s.run.reliability) {
    FailuresResult& f = r.failures;
    f.count = run.failed(), f.rework_s = run.rework_s, f.restart_s = run.restart_s, f.spare_wait_s = run.spare_s;
    for (size_t i = 0; i < kComponentNames.size(); ++i)
      if (run.failures[i] > 0) f.by_component[std::string(kComponentNames[i])] = run.failures[i];
    const double rate = job_failure_rates(in).total();
    if (rate > 0) {
      f.mtbf_s = 1 / rate;
      if (s.run.checkpoints) fill_intervals(f, in, model, s.run);
    }
  }
  if (model.input.batch_s > 0)
    r.data.batch_s = model.input.batch_s, r.data.wait_s = run.input_s, r.data.bottleneck = model.input.bottleneck;
  return r;
}

std::vector<std::string> run_warnings(const Scenario& s, const Result& result, const SimulatedRun& run) {
  std::vector<std::string> warnings;
  const RunResult& r = result.run;
  if (s.run.convergence) {
    const std::string extrapolated = convergence_warning(*s.run.convergence, s.plan.gbs);
    if (!extrapolated.empty()) warnings.push_back(extrapolated);
    if (!s.run.convergence->note.empty())
      warnings.push_back(
          fmt::format("samples are drawn from the reference runs of {}, which hold for the learning "
                      "rates that those were tuned to",
                      s.run.convergence->name));
  }
  if (run.evaluations_queue)
    warnings.push_back(fmt::format(
        "an evaluation takes {:.4g} s, longer than the time to the next one: evaluations wait for one another and the "
        "run ends later; more evaluation nodes or a longer interval",
        r.eval_s.value_or(0)));
  if (r.data.wait_s.value_or(0) > 1e-3 * result.step.time_s.value_or(0))
    warnings.push_back(
        fmt::format("steps starve: a batch takes {:.4g} s to read, bound by {}, and a step waits {:.4g} s "
                    "for it",
                    *r.data.batch_s, r.data.bottleneck, *r.data.wait_s));
  if (s.run.checkpoints && r.checkpoints.count.value_or(0) > 0 && *r.checkpoints.write_s > *r.checkpoints.interval_s)
    warnings.push_back(fmt::format("a checkpoint takes {:.4g} s to write, longer than the {:.4g} s to the next one{}",
                                   *r.checkpoints.write_s, *r.checkpoints.interval_s,
                                   s.run.checkpoints->asynchronous ? ": checkpoints wait for one another" : ""));
  if (s.run.reliability && !s.run.checkpoints)
    warnings.push_back("failures without checkpoints: every failure sends the run back to its start");
  return warnings;
}

}  // namespace tw
