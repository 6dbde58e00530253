#include "power/step_power.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace tw {
namespace {

enum class Doing { gap, forward, backward, exchange, optimizer };

// What a stage does, as pieces in time.
struct Piece {
  double begin_s = 0, end_s = 0;
  Doing what = Doing::gap;
};

Doing doing(const Span& span) {
  if (span.stream == Span::Stream::network) return Doing::exchange;
  if (std::strcmp(span.what, "optimizer") == 0) return Doing::optimizer;
  return span.visit.backward ? Doing::backward : Doing::forward;
}

std::array<double, 7> components(const NodeParts& parts) {
  std::array<double, 7> w{};
  using A = Activity;
  for (const A a : {A::gemm_bf16, A::gemm_fp8, A::attention_forward, A::attention_backward, A::convolution})
    w[0] += parts.gpus[a];
  for (const A a : {A::memory_bound, A::copy}) w[1] += parts.gpus[a];
  w[2] = parts.gpus[A::collective];
  w[3] = parts.gpus.total() - w[0] - w[1] - w[2];
  w[4] = parts.conversion;
  w[5] = parts.host;
  w[6] = parts.nvswitch + parts.nics + parts.fans;
  return w;
}

// Of each stage, in the order in which they begin.
std::vector<std::vector<Piece>> pieces_of(const std::vector<Span>& spans, const StepOutcome& outcome) {
  std::vector<std::vector<Piece>> pieces(outcome.stage_activity.size());
  for (const Span& span : spans)
    if (const auto s = static_cast<size_t>(span.stage);
        span.stream != Span::Stream::host && s < pieces.size() && span.end_s > span.begin_s)
      pieces[s].push_back({span.begin_s, std::min(span.end_s, outcome.time_s), doing(span)});
  for (auto& list : pieces)
    std::stable_sort(list.begin(), list.end(), [](const Piece& a, const Piece& b) { return a.begin_s < b.begin_s; });
  return pieces;
}

// Moments at which some piece begins or ends.
std::vector<double> piece_edges(const std::vector<std::vector<Piece>>& pieces, double time_s) {
  std::vector<double> edges{0, time_s};
  for (const auto& list : pieces) {
    double last_s = 0;  // most pieces begin where one ended
    for (const Piece& p : list) {
      if (p.begin_s != last_s) edges.push_back(p.begin_s);
      edges.push_back(last_s = p.end_s);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end(), [](double a, double b) { return b - a < 1e-9; }), edges.end());
  return edges;
}

double sum_of(const std::array<double, 7>& w) {
  return std::accumulate(w.begin(), w.end(), 0.0);
}

}  // namespace

double StepPower::total_w(size_t i) const {
  return sum_of(watts[i]);
}

double StepPower::least_w() const {
  double w = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < watts.size(); ++i) w = std::min(w, total_w(i));
  return watts.empty() ? 0 : w;
}

double StepPower::most_w() const {
  double w = 0;
  for (size_t i = 0; i < watts.size(); ++i) w = std::max(w, total_w(i));
  return w;
}

double StepPower::mean_w() const {
  double energy_j = 0;
  for (size_t i = 0; i < watts.size(); ++i)
    energy_j += total_w(i) * ((i + 1 < begin_s.size() ? begin_s[i + 1] : end_s) - begin_s[i]);
  return end_s > 0 ? energy_j / end_s : 0;
}

StepPower step_power(const NodeType& node, const std::vector<Span>& spans, const StepOutcome& outcome, Power gpu_limit,
                     bool over_fabric, bool each_alone, double mean_s) {
  const auto mix = [](const Stretch& s) { return s.time_s > 0 ? s.activity.scaled(1 / s.time_s) : ActivityTimes{}; };
  const std::array<ActivityTimes, 5> mixes{ActivityTimes::only(Activity::spin), mix(outcome.forward),
                                           mix(outcome.backward), ActivityTimes::only(Activity::collective),
                                           ActivityTimes::only(Activity::memory_bound)};
  // Without a limit of their own the pieces keep their uncapped watts, and the excess of the whole step is taken off.
  const Power limit = each_alone ? gpu_limit : watts(1e9);
  std::array<std::array<double, 7>, 5> level{};
  for (size_t i = 0; i < mixes.size(); ++i)
    level[i] = components(node_parts(node, mixes[i], limit, {over_fabric, true}));

  const auto stages = static_cast<int>(outcome.stage_activity.size());
  const auto pieces = pieces_of(spans, outcome);
  const std::vector<double> edges = piece_edges(pieces, outcome.time_s);
  StepPower power;
  power.end_s = outcome.time_s;
  struct Now {
    size_t next = 0;
    std::vector<Piece> open;
    double begins_s = 0, ends_s = 0;  // the next piece; the first of those that are open
    Doing what = Doing::gap;
  };
  std::vector<Now> now(pieces.size());
  auto of_stage = level;
  for (auto& w : of_stage)
    for (double& watts : w) watts /= stages;
  for (size_t e = 0; e + 1 < edges.size(); ++e) {
    const double middle_s = 0.5 * (edges[e] + edges[e + 1]);
    if (middle_s >= outcome.time_s) break;
    std::array<double, 7> w{};
    for (size_t s = 0; s < pieces.size(); ++s) {
      Now& n = now[s];
      if (n.begins_s <= middle_s || n.ends_s < middle_s) {
        while (n.next < pieces[s].size() && pieces[s][n.next].begin_s <= middle_s)
          n.open.push_back(pieces[s][n.next++]);
        std::erase_if(n.open, [&](const Piece& p) { return p.end_s < middle_s; });
        n.begins_s = n.next < pieces[s].size() ? pieces[s][n.next].begin_s : outcome.time_s;
        n.ends_s = outcome.time_s;
        n.what = Doing::gap;
        for (const Piece& p : n.open) {  // kernels hide what travels beside them: work wins over an exchange
          if (n.what == Doing::gap || p.what != Doing::exchange) n.what = p.what;
          n.ends_s = std::min(n.ends_s, p.end_s);
        }
      }
      for (size_t c = 0; c < w.size(); ++c) w[c] += of_stage[static_cast<size_t>(n.what)][c];
    }
    power.begin_s.push_back(edges[e]);
    power.watts.push_back(w);
  }
  if (!each_alone && !power.watts.empty()) {
    ActivityTimes mean;
    for (const ActivityTimes& a : outcome.stage_activity) mean += a;
    const double held_w =
        node_parts(node, mean.scaled(1 / (stages * outcome.time_s)), gpu_limit, {over_fabric, true}).total();
    const double excess_w = power.mean_w() - held_w;
    double compute_w = 0;  // mean of what the clock can lower
    for (size_t i = 0; i < power.watts.size(); ++i)
      compute_w += power.watts[i][0] *
                   ((i + 1 < power.begin_s.size() ? power.begin_s[i + 1] : power.end_s) - power.begin_s[i]) /
                   power.end_s;
    if (excess_w > 0 && compute_w > 0)
      for (auto& w : power.watts) w[0] *= std::max(0.0, 1 - excess_w / compute_w);
  }
  if (mean_s > power.end_s && !power.watts.empty()) {
    power.begin_s.push_back(power.end_s);
    power.watts.push_back(level[static_cast<size_t>(Doing::gap)]);
    power.end_s = mean_s;
  }
  return power;
}

}  // namespace tw
