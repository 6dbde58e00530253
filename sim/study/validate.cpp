#include "study/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/suite_means.hpp"

namespace tw {
namespace {

struct LoadedSuite {
  Suite suite;
  std::vector<LoadedScenario> scenarios;  // one a case that is not refused
  std::vector<size_t> case_of;            // of each scenario
  std::vector<RowOutcome> laboratory;     // rows that need no run
};

Maybe speedup(const Suite& suite, const std::vector<Outcome>& outcomes, size_t at, const std::string& over) {
  const Maybe own = outcomes[at].result.run.time_to_train_s.mean;
  for (size_t c = 0; c < suite.cases.size(); ++c)
    for (const SuiteRow& row : suite.cases[c].rows)
      if (const Maybe base = outcomes[c].result.run.time_to_train_s.mean; row.id == over && base && own)
        return *base / *own;
  return std::nullopt;
}

LoadedSuite load_with_scenarios(const std::string& name, Faults& faults) {
  LoadedSuite loaded;
  const size_t before = faults.size();
  loaded.suite = load_suite(name, faults);
  const bool sound = faults.size() == before;
  for (const PowerPhases& phases : loaded.suite.power_phases)
    if (sound)
      for (RowOutcome& row : phase_rows(phases, faults)) loaded.laboratory.push_back(std::move(row));
  for (const LimiterBursts& bursts : loaded.suite.limiter_bursts)
    if (sound)
      for (RowOutcome& row : limiter_rows(bursts, faults)) loaded.laboratory.push_back(std::move(row));
  for (size_t i = 0; i < loaded.suite.cases.size(); ++i) {
    const SuiteCase& c = loaded.suite.cases[i];
    if (!c.refused.empty() || c.scenario.empty()) continue;
    std::vector<std::string> overrides = loaded.suite.set;
    overrides.insert(overrides.end(), c.set.begin(), c.set.end());
    loaded.scenarios.push_back(load_scenario(c.scenario, overrides, faults));
    loaded.case_of.push_back(i);
  }
  return loaded;
}

Maybe known_gap(const KnownGaps& known, const std::string& key) {
  const auto gap = known.gaps.find(key);
  return gap == known.gaps.end() ? std::nullopt : Maybe(gap->second);
}

// `outcomes` and `scenarios`: one a case; those of refused cases are not looked at.
SuiteOutcome compare(const Suite& suite, const std::vector<const LoadedScenario*>& scenarios,
                     const std::vector<Outcome>& outcomes) {
  SuiteOutcome out;
  out.name = suite.name;
  for (size_t c = 0; c < suite.cases.size(); ++c) {
    const SuiteCase& one = suite.cases[c];
    const Result& result = outcomes[c].result;
    out.exit_code = std::max(out.exit_code, outcomes[c].exit_code);
    const std::string label = one.rows.empty() ? one.scenario : one.rows.front().id;
    if (!result.error.empty()) out.errors.push_back(fmt::format("{}: {}", label, result.error));
    for (const std::string& warning : result.warnings) out.warnings.push_back(fmt::format("{}: {}", label, warning));
    for (const SuiteRow& row : one.rows) {
      RowOutcome r;
      r.row = row;
      if (!one.refused.empty()) r.row.refused = one.refused;
      if (r.row.refused.empty() && result.error.empty())
        r.predicted = row.quantity == kSpeedup ? speedup(suite, outcomes, c, row.over)
                                               : result_quantity(result, row.quantity, row.rule);
      r.error_pct = error_pct(r.predicted, row.measured);
      if (r.predicted) {
        r.run_class = run_class(scenarios[c]->scenario, result);
        r.software = scenarios[c]->scenario.software.name;
        r.cluster = scenarios[c]->scenario.cluster.name;
      }
      out.rows.push_back(std::move(r));
    }
  }
  add_null_model(suite, outcomes, out);
  return out;
}

}  // namespace

Maybe error_pct(Maybe predicted, double measured) {
  if (!predicted || !std::isfinite(*predicted)) return std::nullopt;
  if (*predicted == measured) return 0.0;
  if (measured == 0) return std::nullopt;
  return 100 * (*predicted - measured) / std::abs(measured);
}

std::optional<bool> RowOutcome::met() const {
  if (!row.bound_pct || !row.refused.empty()) return std::nullopt;
  // "Exact" allows the last bits of a sum.
  return error_pct.has_value() && std::abs(*error_pct) <= *row.bound_pct + 1e-9;
}

bool RowOutcome::worse_than_known() const {
  if (met().value_or(true)) return false;
  // Known gaps are written with two decimals.
  return !known_gap_pct || !error_pct || std::abs(*error_pct) > std::abs(*known_gap_pct) + 0.005;
}

Maybe SuiteOutcome::mape_pct(RowKind kind, const std::string& quantity) const {
  double sum = 0;
  int count = 0;
  for (const RowOutcome& r : rows) {
    if (r.row.kind != kind || !r.row.counted || !r.error_pct || (!quantity.empty() && r.row.quantity != quantity))
      continue;
    sum += std::abs(*r.error_pct);
    ++count;
  }
  return count == 0 ? std::nullopt : Maybe(sum / count);
}

std::optional<bool> MeanOutcome::met() const {
  if (!bound || !value) return std::nullopt;
  return high ? *value >= *bound : *value <= *bound;
}

bool MeanOutcome::worse_than_known() const {
  if (met().value_or(true)) return false;
  // Known gaps are written with two decimals.
  return !known || (high ? *value < *known - 0.005 : *value > *known + 0.005);
}

std::vector<SuiteOutcome> validate(const std::vector<std::string>& suites, const SimulationOptions& options, int jobs,
                                   double deadline_s, const std::function<void(size_t done, size_t all)>& progress) {
  const std::vector<std::string> names = suites.empty() ? suite_names() : suites;
  if (names.empty()) throw InputError({{"reference/suites", "", "there is no suite to validate against", ""}});
  Faults faults;
  std::vector<LoadedSuite> loaded;
  size_t all = 0;
  for (const std::string& name : names) {
    loaded.push_back(load_with_scenarios(name, faults));
    all += loaded.back().scenarios.size();
  }
  const KnownGaps known = load_known_gaps(faults);
  faults.throw_if_any();

  std::vector<SuiteOutcome> outcomes;
  size_t finished = 0;
  for (const LoadedSuite& one : loaded) {
    SimulationOptions chosen = options;
    chosen.runs = std::max(options.runs, one.suite.runs);
    std::vector<Outcome> simulated = simulate_all(one.scenarios, chosen, jobs, deadline_s,
                                                  [&](size_t done, size_t) { progress(finished + done, all); });
    finished += one.scenarios.size();
    std::vector<Outcome> by_case(one.suite.cases.size());
    std::vector<const LoadedScenario*> scenarios(one.suite.cases.size(), nullptr);
    for (size_t i = 0; i < simulated.size(); ++i) {
      by_case[one.case_of[i]] = std::move(simulated[i]);
      scenarios[one.case_of[i]] = &one.scenarios[i];
    }
    SuiteOutcome out = compare(one.suite, scenarios, by_case);
    out.rows.insert(out.rows.end(), one.laboratory.begin(), one.laboratory.end());
    for (RowOutcome& row : out.rows) row.known_gap_pct = known_gap(known, out.name + "/" + row.row.id);
    out.means = suite_means(one.suite, out);
    for (MeanOutcome& mean : out.means) mean.known = known_gap(known, out.name + "/mean/" + mean.name);
    outcomes.push_back(std::move(out));
  }
  return outcomes;
}

KnownGaps shrunk(KnownGaps known, const std::vector<SuiteOutcome>& suites) {
  const auto round = [](double v) { return std::round(v * 100) / 100; };
  for (const SuiteOutcome& suite : suites) {
    for (const RowOutcome& r : suite.rows) {
      const auto gap = known.gaps.find(suite.name + "/" + r.row.id);
      if (gap == known.gaps.end() || !r.row.refused.empty()) continue;
      if (r.met().value_or(true))
        known.gaps.erase(gap);
      else if (r.error_pct)
        gap->second = std::min(gap->second, round(std::abs(*r.error_pct)));
    }
    for (const MeanOutcome& m : suite.means) {
      const auto gap = known.gaps.find(suite.name + "/mean/" + m.name);
      if (gap == known.gaps.end() || !m.value) continue;
      if (m.met().value_or(true))
        known.gaps.erase(gap);
      else
        gap->second = m.high ? std::max(gap->second, round(*m.value)) : std::min(gap->second, round(*m.value));
    }
  }
  return known;
}

}  // namespace tw
