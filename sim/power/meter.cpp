#include "power/meter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/sum.hpp"

namespace tw {
namespace {

double rounded(double watts, double step_w) {
  return step_w > 0 ? std::round(watts / step_w) * step_w : watts;
}

size_t polls(const Meter& meter, double from_s, double to_s) {
  if (!(to_s >= from_s) || !(meter.interval_s > 0)) return 0;
  return static_cast<size_t>(std::floor((to_s - from_s) / meter.interval_s * (1 + 1e-12))) + 1;
}

}  // namespace

Readings sample(const Meter& meter, const PiecewiseWatts& power, double from_s, double to_s) {
  if (!(meter.time_constant_s > 0))
    return sample(
        meter, [&](double t) { return power.at(t); }, from_s, to_s);
  // First-order settling of a piecewise constant input has a closed form from change to change.
  Readings r;
  const size_t count = polls(meter, from_s, to_s);
  double shown_w = power.outside_w(), clock_s = power.begin_s();
  size_t piece = 0;
  const auto settle = [&](double until_s, double target_w) {
    if (until_s > clock_s) {
      shown_w = target_w + (shown_w - target_w) * std::exp(-(until_s - clock_s) / meter.time_constant_s);
      clock_s = until_s;
    }
  };
  for (size_t k = 0; k < count; ++k) {
    const double t = from_s + static_cast<double>(k) * meter.interval_s;
    const double seen_s = t - meter.lag_s;
    while (piece < power.pieces() && power.piece_end_s(piece) <= seen_s) {
      settle(power.piece_end_s(piece), power.piece_w(piece));
      ++piece;
    }
    settle(seen_s, piece < power.pieces() ? power.piece_w(piece) : power.outside_w());
    r.time_s.push_back(t);
    r.watts.push_back(rounded(shown_w, meter.rounding_w));
  }
  return r;
}

Readings sample(const Meter& meter, const std::function<double(double)>& power_w, double from_s, double to_s) {
  Readings r;
  const size_t count = polls(meter, from_s, to_s);
  r.time_s.reserve(count);
  r.watts.reserve(count);
  for (size_t k = 0; k < count; ++k) {
    const double t = from_s + static_cast<double>(k) * meter.interval_s;
    r.time_s.push_back(t);
    r.watts.push_back(rounded(power_w(t - meter.lag_s), meter.rounding_w));
  }
  return r;
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

NodeSeries node_series(const PowerRun& run, const Meter& meter, double from_s, double to_s) {
  NodeSeries series;
  std::vector<Readings> groups;
  for (const PiecewiseWatts& dc : run.group_dc) groups.push_back(sample(meter, dc, from_s, to_s));
  if (groups.empty()) return series;
  series.time_s = groups.front().time_s;
  std::vector<double> watts(run.nodes.size());
  for (size_t k = 0; k < series.time_s.size(); ++k) {
    Sum sum;
    for (size_t i = 0; i < run.nodes.size(); ++i) {
      watts[i] =
          rounded(run.nodes[i].factor * groups[static_cast<size_t>(run.nodes[i].group)].watts[k], meter.rounding_w);
      sum.add(watts[i]);
    }
    std::sort(watts.begin(), watts.end());
    series.mean_w.push_back(sum.value() / static_cast<double>(watts.size()));
    series.p5_w.push_back(quantile(watts, 0.05));
    series.p50_w.push_back(quantile(watts, 0.5));
    series.p95_w.push_back(quantile(watts, 0.95));
  }
  return series;
}

MeasuredTrace MeasuredTrace::load(const std::string& csv_path) {
  const CsvTable table = CsvTable::load(csv_path);
  MeasuredTrace trace;
  for (size_t row = 0; row < table.rows(); ++row) {
    std::vector<double> watts;
    for (const std::string& column : table.columns())
      if (column.rfind("node_", 0) == 0)
        if (const auto w = table.number(row, column)) watts.push_back(*w);
    if (watts.empty()) continue;
    std::sort(watts.begin(), watts.end());
    Sum sum;
    for (const double w : watts) sum.add(w);
    trace.time_s.push_back(table.value(row, "time_s"));
    trace.mean_w.push_back(sum.value() / static_cast<double>(watts.size()));
    trace.p5_w.push_back(quantile(watts, 0.05));
    trace.p95_w.push_back(quantile(watts, 0.95));
  }
  return trace;
}

std::vector<double> logged_events(const std::string& events_csv_path) {
  const CsvTable table = CsvTable::load(events_csv_path);
  std::vector<double> events;
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string& name = table.text(row, "event");
    if (name == "run_start" || name == "eval_start" || name == "eval_stop" || name == "run_stop")
      events.push_back(table.value(row, "time_s"));
  }
  return events;
}

std::vector<double> timeline_events(const Timeline& timeline) {
  std::vector<double> events{timeline.run_begin_s};
  for (const NodeGroup& group : timeline.groups) {
    bool any = false;
    for (const Phase& phase : group.phases) {
      if (phase.kind != PhaseKind::evaluation) continue;
      any = true;
      // An evaluation may come as several phases that touch.
      if (events.size() > 1 && events.back() == phase.begin_s)
        events.back() = phase.end_s;
      else
        events.insert(events.end(), {phase.begin_s, phase.end_s});
    }
    if (any) break;
  }
  events.push_back(timeline.run_end_s);
  return events;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  Sum sum_a, sum_b;
  for (size_t i = 0; i < a.size(); ++i) {
    sum_a.add(a[i]);
    sum_b.add(b[i]);
  }
  const double mean_a = sum_a.value() / n, mean_b = sum_b.value() / n;
  Sum aa, bb, ab;
  for (size_t i = 0; i < a.size(); ++i) {
    aa.add((a[i] - mean_a) * (a[i] - mean_a));
    bb.add((b[i] - mean_b) * (b[i] - mean_b));
    ab.add((a[i] - mean_a) * (b[i] - mean_b));
  }
  const double scale = std::sqrt(aa.value() * bb.value());
  return scale > 0 ? ab.value() / scale : 0;
}

double aligned_correlation(const MeasuredTrace& trace, const std::vector<double>& measured_events,
                           const std::vector<double>& simulated_events,
                           const std::function<double(double)>& simulated_w, const Meter& meter) {
  if (measured_events.size() != simulated_events.size() || measured_events.size() < 2)
    throw SimulationError(fmt::format("{} logged events cannot be aligned with {} simulated ones",
                                      measured_events.size(), simulated_events.size()));
  std::vector<double> measured, simulated;
  for (size_t i = 0; i < trace.time_s.size(); ++i) {
    const double t = trace.time_s[i];
    if (t < measured_events.front() || t > measured_events.back()) continue;
    // The meter's lag is in seconds of the reading, so the place between events is that of the power it shows.
    const double seen_s = std::max(measured_events.front(), t - meter.lag_s);
    const auto next = std::upper_bound(measured_events.begin() + 1, measured_events.end() - 1, seen_s);
    const auto k = static_cast<size_t>(next - measured_events.begin());
    const double length_s = measured_events[k] - measured_events[k - 1];
    const double place = length_s > 0 ? (seen_s - measured_events[k - 1]) / length_s : 0;
    const double there_s = simulated_events[k - 1] + place * (simulated_events[k] - simulated_events[k - 1]);
    measured.push_back(trace.mean_w[i]);
    simulated.push_back(rounded(simulated_w(there_s), meter.rounding_w));
  }
  return correlation(measured, simulated);
}

}  // namespace tw
