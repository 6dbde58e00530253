#include "study/limiter_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/codec.hpp"
#include "core/csv.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/sum.hpp"
#include "hardware/board_limiter.hpp"
#include "power/piecewise.hpp"
#include "study/validate.hpp"

namespace tw {
namespace {

struct Burst {
  double begin_s = 0, end_s = 0;
};
struct BurstReading {
  double time_s = 0, value = 0;
};

// One run of the laboratory.
struct BurstRun {
  std::string kernel;
  std::vector<Burst> bursts;
  std::vector<BurstReading> watts, joules;  // each renewal
  std::vector<BurstReading> mhz;            // read with every sample
  double rest_w = 0;
};

std::map<int, BurstRun> burst_runs(const CsvTable& bursts, const CsvTable& samples, double still_w) {
  std::map<int, BurstRun> runs;
  for (size_t i = 0; i < bursts.rows(); ++i) {
    BurstRun& run = runs[static_cast<int>(bursts.value(i, "run"))];
    run.kernel = bursts.text(i, "kernel");
    run.bursts.push_back({bursts.value(i, "begin_s"), bursts.value(i, "end_s")});
  }
  std::map<int, std::vector<double>> resting;
  for (size_t i = 0; i < samples.rows(); ++i) {
    const int number = static_cast<int>(samples.value(i, "run"));
    BurstRun& run = runs[number];
    const double time_s = samples.value(i, "t_s"), watts = samples.value(i, "instant_w");
    if (watts < 1.25 * still_w) resting[number].push_back(watts);
    const double joules = samples.value(i, "energy_j");
    if (run.watts.empty() || run.watts.back().value != watts) run.watts.push_back({time_s, watts});
    if (run.joules.empty() || run.joules.back().value != joules) run.joules.push_back({time_s, joules});
    run.mhz.push_back({time_s, samples.value(i, "sm_mhz")});
  }
  for (auto& [number, run] : runs) {
    Sum rest_w;
    for (const double w : resting[number]) rest_w.add(w);
    run.rest_w = rest_w.value() / std::max<double>(1, static_cast<double>(resting[number].size()));
    // What stood there when the recording began was renewed earlier.
    for (std::vector<BurstReading>* list : {&run.watts, &run.joules})
      if (!list->empty()) list->erase(list->begin());
  }
  return runs;
}

// When the driver decides: as it renews the energy counter.
std::set<double> decisions(const BurstRun& run, double period_s) {
  double last_s = run.joules.front().time_s;
  std::set<double> times;
  for (double t = last_s; t > 0; t -= period_s) times.insert(t);
  for (const BurstReading& renewal : run.joules) {
    const double next_s = renewal.time_s, count = std::round((next_s - last_s) / period_s);
    for (double k = 1; k < count; ++k) times.insert(last_s + (next_s - last_s) * k / count);
    times.insert(last_s = next_s);
  }
  return times;
}

struct BurstCurves {
  PiecewiseWatts watts;
  std::vector<std::pair<double, double>> clock_hz;  // from a time on
  double clock_at(double time_s) const {
    const auto next = std::upper_bound(clock_hz.begin(), clock_hz.end(), std::pair(time_s, 1e300));
    return next == clock_hz.begin() ? clock_hz.front().second : std::prev(next)->second;
  }
};

BurstCurves play_bursts(const BurstRun& run, const GpuPower& power, Power limit, double wanted_w) {
  const double end_s = std::max(run.bursts.back().end_s, run.joules.back().time_s) + 1;
  const std::set<double> decides = decisions(run, power.limiter->period.value());
  std::set<double> edges = decides;
  for (const Burst& b : run.bursts) edges.insert({b.begin_s, b.end_s});
  edges.insert(end_s);
  BoardLimiter board(power, limit, run.rest_w);
  BurstCurves played;
  played.watts.begin(0);
  played.clock_hz.emplace_back(0, board.clock_hz());
  double now_s = 0;
  size_t next = 0;
  for (const double edge_s : edges) {
    if (edge_s > end_s) break;
    while (next < run.bursts.size() && run.bursts[next].end_s <= now_s) ++next;
    const bool busy = next < run.bursts.size() && run.bursts[next].begin_s <= now_s;
    const double w = busy ? wanted_w : run.rest_w;
    played.watts.append(edge_s, board.watts(w));
    board.pass(edge_s - now_s, w);
    now_s = edge_s;
    if (decides.count(edge_s) == 0) continue;
    board.decide();
    played.clock_hz.emplace_back(now_s, board.clock_hz());
  }
  return played;
}

struct BurstPair {
  double measured = 0, predicted = 0;
  int count = 0;
  void add(double m, double p) { measured += m, predicted += p, ++count; }
};

RowOutcome burst_row(const LimiterBursts& b, const std::string& id, const char* quantity, const char* unit,
                     const BurstPair& p, bool fitted, double bound_pct) {
  RowOutcome row;
  row.row.id = id, row.row.quantity = quantity, row.row.unit = unit;
  row.row.measured = p.measured / p.count;
  row.row.kind = fitted ? RowKind::fitted : RowKind::in_view;
  row.row.bound_pct = bound_pct;
  row.row.source = b.samples;
  row.predicted = p.predicted / p.count;
  row.error_pct = error_pct(row.predicted, row.row.measured);
  return row;
}

}  // namespace

std::vector<RowOutcome> limiter_rows(const LimiterBursts& b, Faults& faults) {
  const size_t before = faults.size();
  const Document document = Document::load(b.accelerator, description<Accelerator>().info(), {}, faults);
  if (faults.size() != before) return {};
  const auto board = read<Accelerator>(document, faults);
  const auto bursts_csv = find_input_file(b.bursts, ""), samples_csv = find_input_file(b.samples, "");
  for (const std::string* file : {&b.bursts, &b.samples})
    if (!find_input_file(*file, "")) faults.add({*file, "", "there is no such table", ""});
  if (!board.power.limiter) faults.add({b.accelerator, "/power/limiter", "the board's limiter is not known", ""});
  if (faults.size() != before) return {};

  std::vector<RowOutcome> rows;
  std::map<std::string, std::vector<BurstPair>> watts, clock;  // by kernel, one a time
  for (const auto& [number, run] :
       burst_runs(CsvTable::load(*bursts_csv), CsvTable::load(*samples_csv), board.power.context.value())) {
    const auto kernel = b.kernels.find(run.kernel);
    if (kernel == b.kernels.end() || run.joules.size() < 2) {
      faults.add({b.bursts, "/kernel", fmt::format("the suite does not describe \"{}\"", run.kernel), ""});
      return {};
    }
    const double mean_s = b.reading_mean.value(), lag_s = b.reading_lag.value();
    const BurstCurves played = play_bursts(run, board.power, board.board_limit, board.power.of(kernel->second).value());
    watts[run.kernel].resize(b.times.size()), clock[run.kernel].resize(b.times.size());
    for (size_t k = 0; k < b.times.size(); ++k) {
      const double at_s = b.times[k].value(), near_s = std::min(0.05, at_s);
      for (const Burst& burst : run.bursts) {
        const auto near = [&](double time_s) {
          return time_s <= burst.end_s && std::abs(time_s - burst.begin_s - at_s) <= near_s;
        };
        for (const BurstReading& r : run.watts) {
          const double to_s = r.time_s - lag_s, from_s = to_s - mean_s;
          if (from_s >= burst.begin_s && r.time_s <= burst.end_s && near(0.5 * (from_s + to_s)))
            watts[run.kernel][k].add(r.value, played.watts.integral(from_s, to_s) / mean_s);
        }
        for (const BurstReading& r : run.mhz)
          if (near(r.time_s - lag_s)) clock[run.kernel][k].add(r.value, played.clock_at(r.time_s - lag_s) / 1e6);
      }
    }
    const BurstReading &first = run.joules.front(), &last = run.joules.back();
    const double count = static_cast<double>(run.bursts.size());
    const BurstPair joules{(last.value - first.value) / count, played.watts.integral(first.time_s, last.time_s) / count,
                           1};
    const bool fitted = std::count(b.fitted_runs.begin(), b.fitted_runs.end(), number) > 0;
    rows.push_back(
        burst_row(b, fmt::format("run-{}/{}", number, run.kernel), "burst_j", "J", joules, fitted, b.energy_bound_pct));
  }
  for (const auto& [kernel, pairs] : watts)
    for (size_t k = 0; k < pairs.size(); ++k) {
      if (pairs[k].count == 0) continue;
      const std::string id = fmt::format("{}/{:g} ms", kernel, b.times[k].value() * 1e3);
      const bool fitted = b.kernels.at(kernel) != Activity::copy && !b.fitted_runs.empty();
      rows.push_back(burst_row(b, id, "burst_w", "W", pairs[k], fitted, b.bound_pct));
      rows.push_back(burst_row(b, id, "burst_mhz", "MHz", clock[kernel][k], fitted, b.bound_pct));
    }
  return rows;
}

void LimiterBursts::describe(Description<LimiterBursts>& d) {
  d.object("limiter_bursts",
           "Bursts of kernels with rests between, and what the board's driver read meanwhile: rows burst_w and "
           "burst_mhz at times after a burst's beginning, and burst_j from one beginning to the next.");
  d.required("bursts", &LimiterBursts::bursts, "the table: columns run, kernel, begin_s, end_s");
  d.required("samples", &LimiterBursts::samples, "its readings: columns run, t_s, instant_w, energy_j, sm_mhz");
  d.required("accelerator", &LimiterBursts::accelerator, "profile of the board");
  d.required("kernels", &LimiterBursts::kernels, "what each kernel is");
  d.required("times", &LimiterBursts::times, "after the beginning of a burst");
  d.required("reading_mean", &LimiterBursts::reading_mean, "a reading of the watts is the mean over that", above(0));
  d.required("reading_lag", &LimiterBursts::reading_lag, "and so much older than the moment it appears");
  d.optional("fitted_runs", &LimiterBursts::fitted_runs, "runs that constants of the limiter were chosen by");
  d.optional("bound_pct", &LimiterBursts::bound_pct, "largest error allowed, in percent", above(0));
  d.optional("energy_bound_pct", &LimiterBursts::energy_bound_pct, "and of energies", above(0));
}

}  // namespace tw
