// trainwatt compare SCENARIO SERIES: simulated power beside what a meter read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw::cli {

struct MeasuredPower {
  std::string file, place;             // "node" or "gpu"
  std::string text;                    // CSV: time_s, a column a meter
  std::vector<double> time_s, mean_w;  // mean of the meters that have a reading
  size_t meters = 0;
};

// A series as `read` writes it, or a file that it makes one of; nothing for any other file.
std::optional<MeasuredPower> measured_power(const std::string& file, const std::string& text, Faults& faults);

struct SeriesOptions {
  double offset_s = 0;
  std::string folder, json;
};
ExitCode compare_series(const Scenario& scenario, const Result& result, const MeasuredPower& measured,
                        const SeriesOptions& options, Console& console);

}  // namespace tw::cli
