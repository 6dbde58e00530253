#include "report/power_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/files.hpp"
#include "report/figures.hpp"
#include "report/numbers.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& folder, const char* kind, const std::string& name) {
  return (fs::path(folder) / fmt::format("{}-{}", kind, file_name_of(name))).string();
}

// A node of the flow: where its bar stands and how much of either side is taken.
struct Bar {
  int column = 0;
  double joules = 0, low = 0, out_at = 0, in_at = 0;
};

constexpr double kGap = 0.035;      // between bars, of the whole
constexpr double kBarWidth = 0.05;  // of the distance between columns

double smooth(double x) {
  return x * x * (3 - 2 * x);
}

// No more pieces than a figure can show: neighbours share their mean.
StepPower coarser(const StepPower& p) {
  constexpr size_t kPieces = 400;
  if (p.begin_s.size() <= kPieces) return p;
  StepPower out;
  out.end_s = p.end_s;
  for (size_t i = 0; i < p.begin_s.size();) {
    std::array<double, kStepPowerNames.size()> mean{};
    const double begin_s = p.begin_s[i], until_s = begin_s + (p.end_s - p.begin_s.front()) / kPieces;
    double end_s = begin_s;
    for (; i < p.begin_s.size() && (p.begin_s[i] < until_s || end_s <= begin_s); ++i) {
      const double next_s = i + 1 < p.begin_s.size() ? p.begin_s[i + 1] : p.end_s;
      for (size_t c = 0; c < mean.size(); ++c) mean[c] += p.watts[i][c] * (next_s - end_s);
      end_s = next_s;
    }
    for (double& w : mean) w /= end_s - begin_s;
    out.begin_s.push_back(begin_s), out.watts.push_back(mean);
  }
  return out;
}

}  // namespace

std::vector<EnergyFlow> energy_flows(const Result& r) {
  const EnergyResult& e = r.energy;
  if (!e.facility_j || !e.total_dc_j || !e.nodes_dc_j) return {};
  std::vector<EnergyFlow> flows;
  const auto add = [&](const char* from, const std::string& to, double joules) {
    if (joules > 1e-9 * *e.facility_j) flows.push_back({from, to, joules});
  };
  const double tank_j = e.ppue_j.value_or(0), loss_j = e.rectifier_loss_j.value_or(0);
  add("facility", "nodes", *e.nodes_dc_j);
  add("facility", "network", e.network_j.value_or(0));
  add("facility", "rectifiers", loss_j);
  add("facility", "tank cooling", tank_j);
  // A PUE that is stated on DC has the rectifiers' loss inside its overhead.
  add("facility", "hall", *e.facility_j - *e.total_dc_j - loss_j - tank_j);
  double gpus_j = 0;
  std::map<std::string, double> others;
  for (const auto& [name, joules] : r.grid.parts_j) (name.rfind("gpu_", 0) == 0 ? gpus_j : others[name]) += joules;
  add("nodes", "GPUs", gpus_j);
  for (const auto& [name, joules] : others) add("nodes", name == "nics" ? "NICs" : name, joules);
  for (const auto& [name, joules] : r.grid.parts_j) {
    if (name.rfind("gpu_", 0) != 0) continue;
    std::string what = name.substr(4);
    std::replace(what.begin(), what.end(), '_', ' ');
    add("GPUs", what, joules);
  }
  return flows;
}

Figures energy_flow_figure(const std::string& folder, const Result& result) {
  const std::vector<EnergyFlow> flows = energy_flows(result);
  if (flows.empty()) return {};
  const double whole_j = *result.energy.facility_j;
  std::map<std::string, Bar> bars;
  std::vector<std::vector<std::string>> columns{{"facility"}, {}, {}, {}};
  bars["facility"] = {0, whole_j, 0, 0, 0};
  for (const EnergyFlow& flow : flows) {
    const int column = bars[flow.from].column + 1;
    bars[flow.to] = {column, flow.joules, 0, 0, 0};
    columns[static_cast<size_t>(column)].push_back(flow.to);
  }
  // Children stand in the order of their flows, from the top; the ones with children of their own first.
  for (size_t c = 0; c < columns.size(); ++c) {
    // The bands to the last column spread below the GPUs' bar: its neighbours keep out of their way.
    const double gap = c == 2 ? 3 * kGap : kGap;
    double top = 1;
    for (const std::string& name : columns[c]) {
      Bar& bar = bars[name];
      bar.low = top - bar.joules / whole_j;
      bar.out_at = bar.in_at = top;
      top = bar.low - gap;
    }
  }
  // Blocks of x, low, high, separated by blank lines: the bands, then the bars.
  std::string data = "x,low,high\n", labels = "x,y,label\n", table = "from,to,joules\n";
  int bands = 0;
  for (const EnergyFlow& flow : flows) {
    table += fmt::format("{},{},{}\n", flow.from, flow.to, flow.joules);
    Bar &from = bars[flow.from], &to = bars[flow.to];
    const double high = flow.joules / whole_j, x0 = from.column + kBarWidth, x1 = to.column;
    for (int k = 0; k <= 40; ++k) {
      const double t = k / 40.0, y = from.out_at + (to.in_at - from.out_at) * smooth(t);
      data += fmt::format("{},{},{}\n", x0 + (x1 - x0) * t, y - high, y);
    }
    data += "\n\n";
    from.out_at -= high;
    to.in_at -= high;
    ++bands;
  }
  int blocks = bands;
  for (size_t c = 0; c < columns.size(); ++c) {
    double lowest = 2;  // labels of thin bars move down until they no longer overlap
    for (const std::string& name : columns[c]) {
      const Bar& bar = bars[name];
      const double x = static_cast<double>(c), high = bar.low + bar.joules / whole_j;
      data += fmt::format("{},{},{}\n{},{},{}\n\n\n", x, bar.low, high, x + kBarWidth, bar.low, high);
      ++blocks;
      const double y = std::min(0.5 * (bar.low + high), lowest - 0.045);
      lowest = y;
      labels += fmt::format("{},{},\"{}  {} ({:.1f} %)\"\n", x + kBarWidth + 0.02, y, name, energy_text(bar.joules),
                            100 * bar.joules / whole_j);
    }
  }
  const std::string stem = stem_of(folder, "energy-flow", result.scenario);
  write_file(stem + ".csv", data);
  write_file(stem + "-labels.csv", labels);
  write_file(stem + "-table.csv", table);
  return {{{"energy_flow.gp",
            stem,
            {result.scenario + ": energy of the run, from the grid to what the GPUs do", stem + "-labels.csv",
             fmt::format("{}", bands), fmt::format("{}", blocks)}}},
          {}};
}

Figures step_power_figure(const std::string& folder, const Result& result) {
  if (result.grid.step.begin_s.empty()) return {};
  const StepPower p = coarser(result.grid.step);
  std::string data = "time_ms";
  for (const std::string_view name : kStepPowerNames) data += fmt::format(",{}_w", name);
  data += "\n";
  // Both ends of each piece, so that lines drawn through the points are steps.
  for (size_t i = 0; i < p.begin_s.size(); ++i)
    for (const double at_s : {p.begin_s[i], i + 1 < p.begin_s.size() ? p.begin_s[i + 1] : p.end_s}) {
      data += fmt::format("{}", 1e3 * at_s);
      for (const double w : p.watts[i]) data += fmt::format(",{}", w);
      data += "\n";
    }
  const std::string stem = stem_of(folder, "step-power", result.scenario);
  write_file(stem + ".csv", data);
  return {{{"step_power.gp", stem, {result.scenario + ": power of a node through one training step"}}}, {}};
}

}  // namespace tw::report
