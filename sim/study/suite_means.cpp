#include "study/suite_means.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace tw {
namespace {

constexpr size_t kSmallestChoice = 5;  // plans; fewer say nothing about an order

// What a result says about work, free of the time it predicts: seconds at the peak of its accelerators, or, of a
// profiled workload, samples an accelerator.
struct Work {
  std::string kind;  // of what may be compared: networks among each other, a profiled workload with itself
  double amount = 0;
};

std::optional<Work> work_of(const Result& r, const SuiteCase& c) {
  if (!r.step.time_s) return std::nullopt;
  if (r.step.mfu) return Work{"network", *r.step.mfu * *r.step.time_s};
  return Work{c.scenario, static_cast<double>(r.plan.gbs) / r.plan.gpus};
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) rank[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
    begin = end;
  }
  return rank;
}

// The rows of a quantity that nothing was fitted on, of one group if it is named. Those that were in view are held to
// the bounds, too: calling a row so lets nothing slip.
std::vector<const RowOutcome*> rows_of(const SuiteOutcome& out, const std::string& quantity,
                                       const std::string& group = "") {
  std::vector<const RowOutcome*> rows;
  for (const RowOutcome& r : out.rows)
    if ((r.row.kind == RowKind::predicted || r.row.kind == RowKind::in_view) && r.row.counted &&
        r.row.quantity == quantity && r.error_pct && (group.empty() || r.row.group == group))
      rows.push_back(&r);
  return rows;
}

MeanOutcome mean_of(const std::string& name, const std::vector<const RowOutcome*>& rows, Maybe bound) {
  MeanOutcome m;
  m.name = name;
  m.bound = bound;
  m.rows = rows.size();
  m.in_view = static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const RowOutcome* r) { return r->row.kind == RowKind::in_view; }));
  double sum = 0, null_sum = 0;
  bool null_known = !rows.empty();
  for (const RowOutcome* r : rows) {
    sum += std::abs(*r->error_pct);
    null_known = null_known && r->null_error_pct;
    null_sum += std::abs(r->null_error_pct.value_or(0));
  }
  const auto count = static_cast<double>(rows.size());
  if (!rows.empty()) m.value = sum / count;
  if (null_known) m.null_value = null_sum / count;
  return m;
}

std::vector<MeanOutcome> ranking(const RankingBounds& bounds, const SuiteOutcome& out) {
  std::map<std::string, std::vector<const RowOutcome*>> choices;
  for (const RowOutcome& r : out.rows)
    if (!r.row.choice.empty() && r.error_pct && r.row.quantity == "step_s") choices[r.row.choice].push_back(&r);
  double correlations = 0, losses = 0, worst = 0;
  size_t ordered = 0, chosen = 0;
  for (const auto& [name, rows] : choices) {
    std::vector<double> predicted, measured;
    for (const RowOutcome* r : rows) {
      predicted.push_back(*r->predicted);
      measured.push_back(r->row.measured);
    }
    if (rows.size() < 2) continue;
    const auto taken = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
    const double loss =
        100 * (measured[static_cast<size_t>(taken)] / *std::min_element(measured.begin(), measured.end()) - 1);
    losses += loss;
    worst = std::max(worst, loss);
    ++chosen;
    if (rows.size() < kSmallestChoice) continue;
    if (const Maybe rho = spearman(predicted, measured)) {
      correlations += *rho;
      ++ordered;
    }
  }
  const auto over = [](double sum, size_t count) {
    return count == 0 ? std::nullopt : Maybe(sum / static_cast<double>(count));
  };
  const auto outcome = [](const char* name, Maybe value, double bound, size_t rows) {
    MeanOutcome m;
    m.name = name, m.value = value, m.bound = bound, m.rows = rows;
    return m;
  };
  MeanOutcome rho = outcome("spearman", over(correlations, ordered), bounds.spearman, ordered);
  rho.high = true;
  return {rho, outcome("loss_mean_pct", over(losses, chosen), bounds.loss_mean_pct, chosen),
          outcome("loss_worst_pct", chosen == 0 ? std::nullopt : Maybe(worst), bounds.loss_worst_pct, chosen)};
}

}  // namespace

Maybe spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || a.size() != b.size()) return std::nullopt;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = 0.5 * static_cast<double>(a.size() - 1);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? Maybe(xy / std::sqrt(xx * yy)) : std::nullopt;
}

void add_null_model(const Suite& suite, const std::vector<Outcome>& outcomes, SuiteOutcome& out) {
  struct Smallest {
    int gpus = 0;
    double per_work = 0;  // seconds
  };
  std::map<std::string, Smallest> rates;
  if (suite.null_mfu) rates["network"] = {0, 1 / *suite.null_mfu};
  std::map<std::string, std::pair<std::optional<Work>, int>> of_row;
  for (size_t c = 0; c < suite.cases.size(); ++c) {
    const auto work = work_of(outcomes[c].result, suite.cases[c]);
    const int gpus = outcomes[c].result.plan.gpus;
    for (const SuiteRow& row : suite.cases[c].rows) {
      if (row.quantity != "step_s" || !work) continue;
      of_row[row.id] = {work, gpus};
      if (row.kind != RowKind::fitted) continue;
      const auto known = rates.find(work->kind);
      // A rate of no row (null_mfu) gives way to any.
      if (known == rates.end() || gpus < known->second.gpus || known->second.gpus == 0)
        rates[work->kind] = {gpus, row.measured / work->amount};
    }
  }
  for (RowOutcome& r : out.rows) {
    const auto found = of_row.find(r.row.id);
    if (found == of_row.end()) continue;
    const Work& work = *found->second.first;
    const auto rate = rates.find(work.kind);
    if (rate == rates.end()) continue;
    r.null_predicted = work.amount * rate->second.per_work;
    r.null_error_pct = error_pct(r.null_predicted, r.row.measured);
  }
}

std::vector<MeanOutcome> suite_means(const Suite& suite, const SuiteOutcome& out) {
  const std::vector<const RowOutcome*> steps = rows_of(out, "step_s"), runs = rows_of(out, "run_s");
  std::set<std::string> groups;
  for (const RowOutcome& r : out.rows)
    if (!r.row.group.empty()) groups.insert(r.row.group);
  std::vector<MeanOutcome> means;
  if (!steps.empty() || suite.step_mape_bound_pct) means.push_back(mean_of("step_s", steps, suite.step_mape_bound_pct));
  if (!runs.empty() || suite.run_mape_bound_pct) means.push_back(mean_of("run_s", runs, suite.run_mape_bound_pct));
  for (const std::string& group : groups) {
    const auto rows = rows_of(out, "step_s", group);
    if (rows.empty()) continue;
    const auto bound = suite.group_mape_bound_pct.find(group);
    means.push_back(
        mean_of(group, rows, bound == suite.group_mape_bound_pct.end() ? std::nullopt : Maybe(bound->second)));
  }
  if (suite.ranking)
    for (MeanOutcome& m : ranking(*suite.ranking, out)) means.push_back(std::move(m));
  return means;
}

}  // namespace tw
