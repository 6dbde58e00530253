#include "cli/calibrate_power.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/compare_series.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"
#include "study/power_fit.hpp"

namespace tw::cli {
namespace {

std::string value_text(const FittedWatts& c, double value) {
  return c.unit.empty() ? fmt::format("{:.4f}", value) : fmt::format("{:.1f} {}", value, c.unit);
}

// The profile as a file.
std::string profile_text(const NodePower& p, const std::string& source) {
  nlohmann::ordered_json j;
  const auto power = [&](const char* key, const Power& w) {
    if (w.value() > 0) j[key] = fmt::format("{:.6g} W", w.value());
  };
  power("host_base", p.host_base);
  if (p.conversion_loss > 0) j["conversion_loss"] = p.conversion_loss;
  if (p.gap_power) power("gap_power", *p.gap_power);
  power("nvswitch_load", p.nvswitch_load);
  power("nic_load", p.nic_load);
  power("fan_idle", p.fan_idle);
  power("fan_full", p.fan_full);
  power("fan_full_heat", p.fan_full_heat);
  if (p.fan_full.value() > 0) j["fan_exponent"] = p.fan_exponent;
  if (p.spread > 0) j["spread"] = p.spread;
  j["source"] = source;
  return "// Made by trainwatt calibrate --power.\n" + j.dump(2) + "\n";
}

std::string table(const PowerFit& f, const MeasuredPower& m) {
  std::string out =
      fmt::format("Power of a {} over {} readings, mean {:.1f} W\n  {:<16} {:>10} {:>10} {:>10}\n",
                  m.place == "gpu" ? "GPU" : m.place, f.readings, f.measured_w, "", "profile", "fitted", "+-");
  for (const FittedWatts& c : f.constants) {
    const std::string before = fmt::format("  {:<16} {:>10}", c.name, value_text(c, c.before));
    if (c.held.empty())
      out +=
          before + fmt::format(" {:>10} {:>10}\n", value_text(c, c.after), value_text(c, c.standard_error.value_or(0)));
    else
      out += report::wrapped("held: " + c.held, before + "  ", std::string(31, ' '));
  }
  for (const auto& [name, before, after] : {std::tuple{"residual, rms", f.rms_before_w, f.rms_after_w},
                                            std::tuple{"residual, mean", f.bias_before_w, f.bias_after_w}})
    out += fmt::format("  {:<16} {:>8.1f} W {:>8.1f} W\n", name, before, after);
  // Errors that hang together in time make the standard errors too small.
  constexpr double kAligned = 0.05;
  if (f.rms_after_w > kAligned * f.measured_w)
    out += report::wrapped(
        fmt::format("what is left over is {:.0f} % of the mean: simulation and readings do not do the same at the same "
                    "time (--offset, another run), and the constants carry it",
                    100 * f.rms_after_w / f.measured_w),
        "  ! ", "    ");
  return out;
}

}  // namespace

ExitCode calibrate_power(const PowerCalibration& a, Console& console) {
  Faults& faults = console.faults;
  const auto path = named_file(a.series, faults);
  if (a.scenario.empty())
    faults.add({"--scenario", "", "is missing: what did the nodes do meanwhile?", "a file of scenarios/"});
  faults.throw_if_any();
  const auto measured = measured_power(a.series, read_file(*path), faults);
  if (!measured) faults.add({a.series, "", "is no power series", "what trainwatt read makes one of"});
  const LoadedScenario scenario = load_scenario(a.scenario, {}, faults);
  faults.throw_if_any();
  PowerReadings readings{measured->time_s, measured->mean_w, measured->place == "gpu"};
  for (double& t : readings.at_s) t -= a.offset_s;
  const PowerFit fit = fit_power(scenario, readings, workers(0));
  std::string fitted;
  for (const FittedWatts& c : fit.constants)
    if (c.held.empty()) fitted += (fitted.empty() ? "" : ", ") + c.name;
  const std::string source =
      fmt::format("{} fitted on {} ({} readings, rms {:.1f} W) by trainwatt calibrate --power with {}; the rest: {}",
                  fitted.empty() ? "nothing" : fitted, std::filesystem::path(a.series).filename().string(),
                  fit.readings, fit.rms_after_w, scenario.scenario.name, scenario.scenario.cluster.node.power.source);
  write_output(console, a.output, profile_text(fit.profile, source));
  const std::string said = table(fit, *measured);
  if (a.output == "-")
    console.message(said);
  else
    console.result(said);
  return ExitCode::done;
}

}  // namespace tw::cli
