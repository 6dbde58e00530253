// Simulated power beside a measured trace, event by event.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/csv.hpp"
#include "power/meter.hpp"

namespace tw::test {

// Events that measured and simulated logs share: run_start, the end of the wait for loaders after the first step, the
// begin of the wait before the first evaluation, then begin and end of every evaluation, run_stop.
inline std::vector<double> logged_events(const std::string& csv_file) {
  const CsvTable table = CsvTable::load(csv_file);
  std::vector<double> events;
  for (size_t row = 0; row < table.rows(); ++row)
    for (const char* name : {"run_start", "loaders_ready", "train_stop", "eval_start", "eval_stop", "run_stop"})
      if (table.text(row, "event") == name) events.push_back(table.value(row, "time_s"));
  return events;
}

inline std::vector<double> timeline_events(const Timeline& timeline) {
  std::vector<double> events{timeline.run_begin_s};
  for (const NodeGroup& group : timeline.groups) {
    const Phase* before = nullptr;
    for (const Phase& phase : group.phases) {
      if (phase.kind == PhaseKind::evaluation) {
        // An evaluation may come as several phases that touch.
        if (events.size() == 2 && before && before->kind == PhaseKind::wait) events.push_back(before->begin_s);
        if (before && before->kind == PhaseKind::evaluation && events.back() == phase.begin_s)
          events.back() = phase.end_s;
        else
          events.insert(events.end(), {phase.begin_s, phase.end_s});
      }
      if (phase.kind == PhaseKind::wait && events.size() == 1) events.push_back(phase.end_s);
      before = &phase;
    }
    if (events.size() > 1) break;
  }
  events.push_back(timeline.run_end_s);
  return events;
}

inline double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  };
  const double mean_a = mean(a), mean_b = mean(b);
  double aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
    ab += (a[i] - mean_a) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// A DC meter of the reference cluster renews what it shows every so often, out of step with the polls: a reading is as
// old as dc_meter's lag, give or take half of this, whichever age as likely as another (smc_v4.0/README.md, data
// quality 6: fitted on evaluations of the 1- and 8-node runs).
inline constexpr double meter_renewal_s = 1.15;

// Where an instant of the log is on the simulated clock: time is stretched so that each logged event falls on its
// simulated counterpart.
inline double simulated_time(const std::vector<double>& logged, const std::vector<double>& simulated, double t) {
  t = std::clamp(t, logged.front(), logged.back());
  const auto k = static_cast<size_t>(std::upper_bound(logged.begin() + 1, logged.end() - 1, t) - logged.begin());
  const double length_s = logged[k] - logged[k - 1];
  const double place = length_s > 0 ? (t - logged[k - 1]) / length_s : 1;
  return simulated[k - 1] + place * (simulated[k] - simulated[k - 1]);
}

// Pearson correlation of what meters at the nodes read inside a run (STEM_dc.csv, its events in STEM_events.csv), mean
// over the nodes, with simulated watts: of each reading the mean over the ages that it may have when it was polled
// (STEM_dc_polled_s.csv). `simulated_j`: energy from one simulated time to another. A reading to the watt as the one
// before was not renewed (data quality 7) and is left out.
inline double trace_correlation(const std::string& stem, const Timeline& timeline,
                                const std::function<double(double, double)>& simulated_j) {
  const std::vector<double> logged = logged_events(stem + "_events.csv"), simulated = timeline_events(timeline);
  if (logged.size() != simulated.size() || logged.size() < 2) throw std::runtime_error(stem + ": events do not match");
  const CsvTable trace = CsvTable::load(stem + "_dc.csv"), polled = CsvTable::load(stem + "_dc_polled_s.csv");
  std::vector<double> measured_w, there_w;
  for (size_t row = 0; row < trace.rows(); ++row) {
    double sum = 0, there = 0, count = 0;
    for (const std::string& column : trace.columns()) {
      if (column.rfind("node_", 0) != 0) continue;
      const auto w = trace.number(row, column), t = polled.number(row, column);
      if (!w || !t || *t < logged.front() || *t > logged.back()) continue;
      if (row > 0 && trace.number(row - 1, column) == w) continue;
      const double from_s = simulated_time(logged, simulated, *t - dc_meter.lag_s - meter_renewal_s / 2);
      const double to_s = simulated_time(logged, simulated, *t - dc_meter.lag_s + meter_renewal_s / 2);
      if (!(to_s > from_s)) continue;  // all of it before the run
      sum += *w, ++count;
      there += std::round(simulated_j(from_s, to_s) / (to_s - from_s));
    }
    if (count == 0) continue;
    measured_w.push_back(sum / count);
    there_w.push_back(there / count);
  }
  return correlation(measured_w, there_w);
}

}  // namespace tw::test
