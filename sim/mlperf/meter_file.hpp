// Power files of MLPerf Training v4.0: readings of one node's meter, and the estimate for the switches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mlperf/imported_run.hpp"

namespace tw {

struct MeterReading {
  int64_t time_ms = 0;
  double watts = 0;
};

// A node_*.txt as it stands, readings sorted by time.
struct MeterFile {
  std::vector<MeterReading> readings;
  std::optional<int64_t> start_ms, stop_ms;  // power_measurement_start, _stop
  double conversion = 1;                     // conversion_eff
  size_t impossible = 0;                     // readings or factors that cannot be: the file gives no energy
  uint64_t fingerprint = 0;                  // of all readings
};

// More readings than this are not read (50 days at one in 2 s): what is held in memory has a bound.
constexpr size_t kMostReadings = 2'000'000;

MeterFile read_meter_file(const std::string& path, const std::string& file, std::vector<LogFinding>& findings);

// When a run took place, to see which run a meter file belongs to.
struct RunSpan {
  std::string id;
  int64_t start_ms = 0, stop_ms = 0;
};

// What a meter file says of its run. Energies in J, powers in W, times in s.
struct NodeMeter {
  std::string name, file;
  size_t readings = 0;
  bool usable = false;  // the readings cover the run
  // Trapezoids between readings from run_start to run_stop, the power at either end interpolated; beyond the first or
  // last reading the nearest one holds. This reproduces reference/smc_v4.0/runs.csv.
  std::optional<double> run_j;
  // The scoring rule of v4.0: sum of P_i (t_i - t_(i-1)) from power_measurement_start to _stop, over the time between
  // them, scaled to that of the run.
  std::optional<double> mlperf_j;
  double before_s = 0, after_s = 0;  // how far the file reaches beyond the run; negative: it falls short
  double interval_s = 0;             // median between readings
  double longest_gap_s = 0;          // between readings inside the run
  int shift_h = 0;                   // hours taken off its stamps for the run window
  uint64_t fingerprint = 0;
};

// `others`: runs of the same folder, one of which the file may belong to by mistake.
NodeMeter read_node_meter(const std::string& path, const std::string& file, const ImportedRun& run,
                          const std::vector<RunSpan>& others, std::vector<LogFinding>& findings);

// Watts of a sw_*.txt (interconnect_power_est), an estimate and no measurement; absent: it holds none.
std::optional<double> read_switch_estimate(const std::string& path, const std::string& file,
                                           std::vector<LogFinding>& findings);

}  // namespace tw
