// Measured power over time, from whatever meter, on one clock that begins with the first reading. Written as
// time_s,node_NAME,... (or gpu_NAME): what a scenario's /reference/trace, figures and `compare` read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foreign/foreign.hpp"

namespace tw::foreign {

// What the numbers of a column are.
enum class ReadingKind { watts, joules };  // joules: of a counter that only grows
struct PowerUnit {
  ReadingKind kind = ReadingKind::watts;
  double factor = 1;  // to W or J
  std::string name;   // "kW"
};
// Of a column's name or a value's suffix: "power.draw [W]", "Power (kW)", "energy_uj", "joules_total". Nothing where
// the text names no unit of power or energy.
std::optional<PowerUnit> power_unit_of(const std::string& text);

// Seconds of a time stamp: numbers (seconds, or milliseconds, microseconds and nanoseconds since 1970 by their size),
// "2024-05-17T04:41:44.5Z", "2024/05/17 04:41:44.123". Zones other than UTC as +hh:mm.
std::optional<double> time_of(const std::string& text);

class PowerSeries {
 public:
  void add(const std::string& source, double time_s, double value) { readings_[source].emplace_back(time_s, value); }
  bool empty() const { return readings_.empty(); }

  // `unit` is that of all values. Counters become the mean power between two readings; where one falls (a restart or a
  // wrap) the interval is left out and said. `place` is "node" or "gpu". Faults: fewer than two readings, all at one
  // time, negative watts.
  Reading finish(const Source& file, const PowerUnit& unit, const std::string& place, std::vector<std::string> said,
                 Faults& faults);

 private:
  std::map<std::string, std::vector<std::pair<double, double>>> readings_;
};

}  // namespace tw::foreign
