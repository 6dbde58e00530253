#include "mlperf/meter_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/sum.hpp"

namespace tw {
namespace {

constexpr int64_t kHour_ms = 3'600'000;
constexpr double kMostWatts = 1e7;         // of a node or a switch
constexpr double kFarthest_s = 7 * 86400;  // of a reading from its run

bool possible_watts(const MllogValue& value) {
  return value.number && *value.number >= 0 && *value.number <= kMostWatts;
}

// conversion_eff turns the measured side into the other: a loss, or its reciprocal.
bool possible_factor(const MllogValue& value) {
  return value.number && *value.number > 0.1 && *value.number < 10;
}

double seconds_of(int64_t ms) {
  return static_cast<double>(ms) / 1000;
}

// Joules between two stamps, both those of the readings.
double trapezoids_j(const std::vector<MeterReading>& r, int64_t from_ms, int64_t to_ms) {
  const auto at = [&](int64_t t) {  // watts
    const auto after = std::lower_bound(r.begin(), r.end(), t,
                                        [](const MeterReading& a, int64_t time_ms) { return a.time_ms < time_ms; });
    if (after == r.begin()) return r.front().watts;
    if (after == r.end()) return r.back().watts;
    const MeterReading &a = *(after - 1), &b = *after;
    return a.watts +
           (b.watts - a.watts) * static_cast<double>(t - a.time_ms) / static_cast<double>(b.time_ms - a.time_ms);
  };
  Sum sum;
  MeterReading last{from_ms, at(from_ms)};
  const auto to = [&](const MeterReading& next) {
    sum.add((last.watts + next.watts) / 2 * seconds_of(next.time_ms - last.time_ms));
    last = next;
  };
  for (const MeterReading& next : r)
    if (next.time_ms > from_ms && next.time_ms < to_ms) to(next);
  to({to_ms, at(to_ms)});
  return sum.value();
}

// As result_summarizer computes it. Without a stop that lies after the start, the last reading ends the measurement.
std::optional<double> scoring_rule_j(const MeterFile& f, double run_s) {
  const int64_t start_ms = f.start_ms.value_or(f.readings.front().time_ms);
  const int64_t stop_ms = f.stop_ms && *f.stop_ms > start_ms ? *f.stop_ms : f.readings.back().time_ms;
  Sum sum;
  int64_t last_ms = start_ms;
  for (const MeterReading& r : f.readings) {
    if (r.time_ms < start_ms || r.time_ms > stop_ms) continue;
    sum.add(r.watts * seconds_of(r.time_ms - last_ms));
    last_ms = r.time_ms;
  }
  if (stop_ms <= start_ms) return std::nullopt;
  return f.conversion * sum.value() * run_s / seconds_of(stop_ms - start_ms);
}

// Milliseconds of a run that lie between two stamps.
int64_t common_ms(int64_t from_ms, int64_t to_ms, int64_t start_ms, int64_t stop_ms) {
  return std::max<int64_t>(0, std::min(to_ms, stop_ms) - std::max(from_ms, start_ms));
}

int64_t mismatch_ms(int64_t from_ms, int64_t to_ms, int64_t start_ms, int64_t stop_ms) {
  return std::max(std::abs(from_ms - start_ms), std::abs(to_ms - stop_ms));
}

struct Match {
  int shift_h = 0;
  const RunSpan* other = nullptr;
  bool covers = false;
};

// A file that does not cover its run is that of another run, or its clock is whole hours away (a time zone): whichever
// fits start and end better.
Match match_run(int64_t from_ms, int64_t to_ms, const ImportedRun& run, const std::vector<RunSpan>& others) {
  const auto covers = [&](int64_t from, int64_t to, int64_t start, int64_t stop) {
    return common_ms(from, to, start, stop) * 2 > stop - start;
  };
  Match match;
  if (covers(from_ms, to_ms, run.start_ms, run.stop_ms)) {
    match.covers = true;
    return match;
  }
  int64_t best_ms = INT64_MAX;
  for (const RunSpan& other : others) {
    const int64_t off_ms = mismatch_ms(from_ms, to_ms, other.start_ms, other.stop_ms);
    if (!covers(from_ms, to_ms, other.start_ms, other.stop_ms) || off_ms >= best_ms) continue;
    best_ms = off_ms;
    match.other = &other;
  }
  for (int h = -14; h <= 14; ++h) {
    const int64_t by_ms = h * kHour_ms;
    const int64_t off_ms = mismatch_ms(from_ms - by_ms, to_ms - by_ms, run.start_ms, run.stop_ms);
    if (!covers(from_ms - by_ms, to_ms - by_ms, run.start_ms, run.stop_ms) || off_ms >= best_ms) continue;
    best_ms = off_ms;
    match = {h, nullptr, true};
  }
  return match;
}

// Intervals between readings: the median of all, gaps and falls short inside the run.
void check_times(const MeterFile& f, const ImportedRun& run, NodeMeter& node, std::vector<LogFinding>& findings) {
  const auto find = [&](const char* kind, std::string what) {
    findings.push_back({node.file, 0, kind, std::move(what)});
  };
  std::vector<int64_t> intervals;
  for (size_t i = 1; i < f.readings.size(); ++i) intervals.push_back(f.readings[i].time_ms - f.readings[i - 1].time_ms);
  std::nth_element(intervals.begin(), intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2),
                   intervals.end());
  node.interval_s = seconds_of(intervals[intervals.size() / 2]);
  const double allowed_s = 3 * std::max(node.interval_s, 1e-3);
  int gaps = 0;
  for (size_t i = 1; i < f.readings.size(); ++i) {
    const int64_t a = f.readings[i - 1].time_ms, b = f.readings[i].time_ms;
    if (a < run.start_ms || b > run.stop_ms) continue;
    node.longest_gap_s = std::max(node.longest_gap_s, seconds_of(b - a));
    if (seconds_of(b - a) > allowed_s) ++gaps;
  }
  if (gaps > 0)
    find("gap", fmt::format("{} gap{} between readings inside the run, the longest {:.1f} s (median interval {:.2f} s)",
                            gaps, gaps > 1 ? "s" : "", node.longest_gap_s, node.interval_s));
  if (-node.before_s > allowed_s) find("late_start", fmt::format("starts {:.1f} s after run_start", -node.before_s));
  if (-node.after_s > allowed_s) find("early_end", fmt::format("ends {:.1f} s before run_stop", -node.after_s));
}

}  // namespace

MeterFile read_meter_file(const std::string& path, const std::string& file, std::vector<LogFinding>& findings) {
  MeterFile f;
  Fingerprint fingerprint;
  size_t repeated = 0, backward = 0, first_repeated = 0, first_backward = 0, first_odd = 0, more = 0;
  int64_t last_ms = INT64_MIN;
  size_t stop_line = 0;
  bool sorted = true;
  const LogScan scan = read_mllog(path, file, findings, [&](const MllogEvent& e) {
    if (e.key == "power_measurement_start") {
      if (!f.start_ms) f.start_ms = e.time_ms;
    } else if (e.key == "power_measurement_stop") {
      f.stop_ms = e.time_ms;
      stop_line = e.line;
    } else if (e.key == "conversion_eff") {
      if (possible_factor(e.value))
        f.conversion = *e.value.number;
      else if (++f.impossible == 1)
        first_odd = e.line;
    } else if (e.key == "power_reading") {
      if (!possible_watts(e.value)) {
        if (++f.impossible == 1) first_odd = e.line;
        return;
      }
      if (f.readings.size() >= kMostReadings) {
        if (more++ == 0)
          findings.push_back(
              {file, e.line, "too_long", fmt::format("only its first {} readings are read", kMostReadings)});
        return;
      }
      if (e.time_ms == last_ms && repeated++ == 0) first_repeated = e.line;
      if (e.time_ms < last_ms) {
        sorted = false;
        if (backward++ == 0) first_backward = e.line;
      }
      last_ms = e.time_ms;
      f.readings.push_back({e.time_ms, *e.value.number});
      fingerprint.add(e.time_ms);
      fingerprint.add(static_cast<int64_t>(std::llround(*e.value.number * 1000)));
    }
  });
  f.fingerprint = fingerprint.value();
  if (!sorted)
    std::stable_sort(f.readings.begin(), f.readings.end(),
                     [](const MeterReading& a, const MeterReading& b) { return a.time_ms < b.time_ms; });
  const auto find = [&](size_t line, const char* kind, std::string what) {
    findings.push_back({file, line, kind, std::move(what)});
  };
  if (repeated > 0)
    find(first_repeated, "repeated_stamp", fmt::format("readings that repeat the stamp before: {}", repeated));
  if (backward > 0)
    find(first_backward, "backward_stamp",
         fmt::format("readings stamped before their predecessor: {}; sorted by time", backward));
  if (f.impossible > 0)
    find(first_odd, "odd_reading",
         fmt::format("readings or factors that cannot be (negative, no number, beyond {:.0e} W): {}; no energy",
                     kMostWatts, f.impossible));
  if (scan.events == 0) return f;
  if (f.readings.empty()) find(0, "no_readings", "holds no power_reading");
  if (!f.start_ms) find(0, "no_start", "has no power_measurement_start; its first reading is taken");
  if (!f.readings.empty() && !f.stop_ms) find(0, "cut_off", "has no power_measurement_stop; its last reading is taken");
  if (!f.readings.empty() && f.stop_ms && *f.stop_ms < f.readings.back().time_ms)
    find(stop_line, "wrong_stop",
         fmt::format("power_measurement_stop is {:.1f} s before the last reading",
                     seconds_of(f.readings.back().time_ms - *f.stop_ms)));
  return f;
}

NodeMeter read_node_meter(const std::string& path, const std::string& file, const ImportedRun& run,
                          const std::vector<RunSpan>& others, std::vector<LogFinding>& findings) {
  NodeMeter node;
  node.file = file;
  node.name = std::filesystem::path(file).stem().string();
  MeterFile f = read_meter_file(path, file, findings);
  node.readings = f.readings.size();
  node.fingerprint = f.fingerprint;
  if (f.readings.empty() || !run.finished()) return node;
  const auto find = [&](const char* kind, std::string what) { findings.push_back({file, 0, kind, std::move(what)}); };
  if (f.readings.size() < 2 || f.readings.front().time_ms == f.readings.back().time_ms) {
    find("too_few_readings", "has too few readings for an energy");
    return node;
  }
  const Match match = match_run(f.readings.front().time_ms, f.readings.back().time_ms, run, others);
  if (match.other != nullptr) {
    find("other_run", fmt::format("is the meter of another run, {}; left out", match.other->id));
    return node;
  }
  if (!match.covers) {
    const double from_s = seconds_of(f.readings.front().time_ms - run.start_ms),
                 to_s = seconds_of(f.readings.back().time_ms - run.start_ms);
    find("other_time",
         fmt::format("covers {:.0f} s to {:.0f} s after run_start, less than half of the run; left out", from_s, to_s));
    return node;
  }
  const double early_s = seconds_of(run.start_ms - f.readings.front().time_ms),
               late_s = seconds_of(f.readings.back().time_ms - run.stop_ms);
  if (std::max(early_s, late_s) > kFarthest_s || f.impossible > 0) {
    if (f.impossible == 0)
      find("odd_reading",
           fmt::format("holds readings {:.3g} days from its run; no energy", std::max(early_s, late_s) / 86400));
    return node;
  }
  node.usable = true;
  node.mlperf_j = scoring_rule_j(f, *run.run_s);
  node.shift_h = match.shift_h;
  if (match.shift_h != 0) {
    find("clock_offset", fmt::format("its clock is {} h {} that of the run; read with the hours taken off",
                                     std::abs(match.shift_h), match.shift_h > 0 ? "ahead of" : "behind"));
    for (MeterReading& r : f.readings) r.time_ms -= match.shift_h * kHour_ms;
  }
  node.before_s = seconds_of(run.start_ms - f.readings.front().time_ms);
  node.after_s = seconds_of(f.readings.back().time_ms - run.stop_ms);
  node.run_j = f.conversion * trapezoids_j(f.readings, run.start_ms, run.stop_ms);
  check_times(f, run, node, findings);
  return node;
}

std::optional<double> read_switch_estimate(const std::string& path, const std::string& file,
                                           std::vector<LogFinding>& findings) {
  std::optional<double> watts;
  double conversion = 1;
  size_t readings = 0;
  const LogScan scan = read_mllog(path, file, findings, [&](const MllogEvent& e) {
    const bool factor = e.key == "conversion_eff", estimate = e.key == "interconnect_power_est";
    if (factor ? !possible_factor(e.value) : estimate && !possible_watts(e.value))
      findings.push_back({file, e.line, "odd_reading", e.key + " cannot be; left out"});
    else if (factor)
      conversion = *e.value.number;
    else if (estimate && !watts)
      watts = e.value.number;
    readings += e.key == "power_reading" ? 1 : 0;
  });
  if (scan.events > 0 && !watts)
    findings.push_back({file, 0, "no_readings",
                        fmt::format("holds no interconnect_power_est{}; its switches count as 0 W",
                                    readings > 0 ? " (readings alone do not count by the rules)" : "")});
  return watts ? std::optional(*watts * conversion) : watts;
}

}  // namespace tw
