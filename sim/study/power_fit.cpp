#include "study/power_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/least_squares.hpp"
#include "study/simulate.hpp"

namespace tw {
namespace {

// A constant, how far it is moved to see what it does, and its least value.
struct Constant {
  const char *name, *unit;
  double step;
  double (*get)(const NodeType&);
  void (*set)(NodeType&, double);
};

constexpr const char* kWatts = "W";

// In the order of what a meter tells most of: an earlier one is fitted where the series cannot tell it from a later
// one.
const std::vector<Constant>& constants() {
  static const std::vector<Constant> all{
      {"host_base", kWatts, 100, [](const NodeType& n) { return n.power.host_base.value(); },
       [](NodeType& n, double v) { n.power.host_base = watts(v); }},
      {"gap_power", kWatts, 20,
       [](const NodeType& n) { return n.power.gap_power.value_or(n.accelerator.power.spin).value(); },
       [](NodeType& n, double v) { n.power.gap_power = watts(v); }},
      {"nvswitch_load", kWatts, 50, [](const NodeType& n) { return n.power.nvswitch_load.value(); },
       [](NodeType& n, double v) { n.power.nvswitch_load = watts(v); }},
      {"nic_load", kWatts, 50, [](const NodeType& n) { return n.power.nic_load.value(); },
       [](NodeType& n, double v) { n.power.nic_load = watts(v); }},
      {"conversion_loss", "", 0.01, [](const NodeType& n) { return n.power.conversion_loss; },
       [](NodeType& n, double v) { n.power.conversion_loss = v; }}};
  return all;
}

// Simulated watts at each reading.
std::vector<double> at_readings(const Result& r, const PowerReadings& readings, double of) {
  const auto& t = r.series.time_s;
  const auto& w = r.series.mean_w;
  std::vector<double> out;
  for (const double at : readings.at_s) {
    const auto next = static_cast<size_t>(std::lower_bound(t.begin(), t.end(), at) - t.begin());
    if (next == 0 || next >= t.size()) {
      out.push_back((next == 0 ? w.front() : w.back()) / of);
      continue;
    }
    const double share = (at - t[next - 1]) / (t[next] - t[next - 1]);
    out.push_back((w[next - 1] + share * (w[next] - w[next - 1])) / of);
  }
  return out;
}

class Fit {
 public:
  Fit(const LoadedScenario& base, const PowerReadings& readings, int jobs)
      : base_(base), readings_(readings), jobs_(jobs) {
    // A GPU's meter sees nothing of the node around it.
    if (readings.gpu) {
      NodePower bare;
      bare.gap_power = base.scenario.cluster.node.power.gap_power;
      base_.scenario.cluster.node.power = bare;
    }
  }

  // Of the node as it is, then with each constant moved by its step.
  std::vector<std::vector<double>> simulated(const std::vector<const Constant*>& moved) {
    std::vector<LoadedScenario> all(moved.size() + 1, base_);
    for (size_t i = 0; i < moved.size(); ++i) {
      NodeType& node = all[i + 1].scenario.cluster.node;
      moved[i]->set(node, moved[i]->get(node) + moved[i]->step);
    }
    std::vector<std::vector<double>> out;
    for (const Result& r : results(all))
      out.push_back(at_readings(r, readings_, readings_.gpu ? base_.scenario.cluster.node.gpus : 1));
    return out;
  }

  // Readings beyond the simulated run say nothing.
  void cut_to_run(PowerReadings& readings) const {
    const double end_s = results({base_}).front().series.time_s.back();
    PowerReadings inside;
    for (size_t i = 0; i < readings.at_s.size(); ++i)
      if (readings.at_s[i] >= 0 && readings.at_s[i] <= end_s)
        inside.at_s.push_back(readings.at_s[i]), inside.watts.push_back(readings.watts[i]);
    if (inside.at_s.size() < kFewest)
      throw InputError(
          {{"--power", "", fmt::format("{} readings lie in the {:.0f} s of the run", inside.at_s.size(), end_s),
            fmt::format("{} at least; --offset says where the run begins", kFewest)}});
    readings.at_s = inside.at_s, readings.watts = inside.watts;
  }

  LeastSquares round(const std::vector<const Constant*>& free) {
    auto columns = simulated(free);
    const std::vector<double> now = std::move(columns.front());
    columns.erase(columns.begin());
    std::vector<double> missing;
    for (size_t i = 0; i < now.size(); ++i) missing.push_back(readings_.watts[i] - now[i]);
    for (size_t c = 0; c < columns.size(); ++c)
      for (size_t i = 0; i < now.size(); ++i) columns[c][i] = (columns[c][i] - now[i]) / free[c]->step;
    return least_squares(columns, missing);
  }

  NodeType& node() { return base_.scenario.cluster.node; }

 private:
  std::vector<Result> results(const std::vector<LoadedScenario>& all) const {
    std::vector<Result> out;
    for (const Outcome& o : simulate_all(all, {}, jobs_, kDeadline_s, {})) {
      if (!o.result.error.empty()) throw SimulationError(o.result.error);
      if (o.result.series.time_s.size() < 2) throw SimulationError("the run has no power over time");
      out.push_back(o.result);
    }
    return out;
  }

  static constexpr size_t kFewest = 20;
  LoadedScenario base_;
  const PowerReadings& readings_;
  int jobs_;
  static constexpr double kDeadline_s = 600;
};

void errors(const std::vector<double>& simulated, const PowerReadings& r, double& rms, double& bias) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < simulated.size(); ++i) {
    const double e = simulated[i] - r.watts[i];
    sum += e, squares += e * e;
  }
  const auto n = static_cast<double>(simulated.size());
  rms = std::sqrt(squares / n), bias = sum / n;
}

std::string reason(const LeastSquares::Held& held, const std::vector<const Constant*>& free) {
  if (held.like.empty()) return "nothing in the series depends on it";
  std::string names;
  for (const size_t k : held.like) names += (names.empty() ? "" : ", ") + std::string(free[k]->name);
  return "the series cannot tell it from " + names;
}

}  // namespace

PowerFit fit_power(const LoadedScenario& scenario, PowerReadings readings, int jobs) {
  PowerFit out;
  Fit fit(scenario, readings, jobs);
  fit.cut_to_run(readings);
  out.readings = readings.at_s.size();
  for (const double w : readings.watts) out.measured_w += w / static_cast<double>(out.readings);
  errors(fit.simulated({}).front(), readings, out.rms_before_w, out.bias_before_w);
  std::vector<const Constant*> free;
  for (const Constant& c : constants())
    if (!readings.gpu || std::string(c.name) == "gap_power") free.push_back(&c);
  for (const Constant* c : free) out.constants.push_back({c->name, c->unit, c->get(fit.node()), 0, {}, ""});
  const auto entry = [&](const Constant* c) -> FittedWatts& {
    return *std::find_if(out.constants.begin(), out.constants.end(),
                         [&](const FittedWatts& f) { return f.name == c->name; });
  };
  // What comes out below 0 goes back to where it was, and the others are fitted again.
  for (int round = 0; round < 2;) {
    const LeastSquares found = fit.round(free);
    std::vector<const Constant*> next = free;
    bool refused = false;
    for (const auto& held : found.held) {
      entry(free[held.unknown]).held = reason(held, free);
      std::erase(next, free[held.unknown]);
    }
    for (size_t c = 0; c < free.size() && found.held.size() < free.size(); ++c) {
      if (free[c]->get(fit.node()) + found.change[c] >= 0) continue;
      entry(free[c]).held = "it would be negative";
      std::erase(next, free[c]);
      refused = true;
    }
    if (!refused) {
      for (size_t c = 0; c < free.size(); ++c) {
        free[c]->set(fit.node(), free[c]->get(fit.node()) + found.change[c]);
        if (entry(free[c]).held.empty()) entry(free[c]).standard_error = found.standard_error[c];
      }
      ++round;
    } else {
      for (const Constant* c : free) c->set(fit.node(), entry(c).before);
      round = 0;
    }
    free = next;
    if (free.empty()) break;
  }
  errors(fit.simulated({}).front(), readings, out.rms_after_w, out.bias_after_w);
  out.profile = scenario.scenario.cluster.node.power;
  NodeType node = scenario.scenario.cluster.node;
  for (const Constant& c : constants())
    for (FittedWatts& f : out.constants)
      if (f.name == c.name) {
        f.after = c.get(fit.node());
        if (f.held.empty()) c.set(node, f.after);
      }
  out.profile = node.power;
  return out;
}

}  // namespace tw
