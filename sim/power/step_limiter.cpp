#include "power/step_limiter.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/board_limiter.hpp"
#include "power/piecewise.hpp"

namespace tw {
namespace {

constexpr size_t kGpuParts = 4;  // of kStepPowerNames: what boards draw
constexpr int kPhases = 8;       // moments of decision, spread over a period
constexpr size_t kMostPieces = 4000;
constexpr double kMeter_s = 0.01;     // peaks are means of that
constexpr double kMostSteps = 20000;  // played, however short
constexpr double kSettle_s = 3, kWatched_s = 2;

double length_s(const StepPower& p, size_t i) {
  return (i + 1 < p.begin_s.size() ? p.begin_s[i + 1] : p.end_s) - p.begin_s[i];
}

double gpus_w(const std::array<double, 7>& w) {
  double sum = 0;
  for (size_t c = 0; c < kGpuParts; ++c) sum += w[c];
  return sum;
}

std::array<double, 7> mean_of(const StepPower& p) {
  std::array<double, 7> mean{};
  const double all_s = p.end_s - p.begin_s.front();
  for (size_t i = 0; i < p.watts.size(); ++i)
    for (size_t c = 0; c < mean.size(); ++c) mean[c] += p.watts[i][c] * length_s(p, i) / all_s;
  return mean;
}

// Equal parts with the same means, where there are very many pieces.
StepPower coarse(const StepPower& p) {
  if (p.watts.size() <= kMostPieces) return p;
  StepPower out;
  const double from_s = p.begin_s.front(), part_s = (p.end_s - from_s) / static_cast<double>(kMostPieces);
  out.end_s = p.end_s;
  size_t i = 0;
  for (size_t k = 0; k < kMostPieces; ++k) {
    const double begin_s = from_s + static_cast<double>(k) * part_s, end_s = begin_s + part_s;
    std::array<double, 7> w{};
    while (i > 0 && p.begin_s[i] > begin_s) --i;
    for (; i < p.watts.size() && p.begin_s[i] < end_s; ++i) {
      const double in_s = std::min(end_s, p.begin_s[i] + length_s(p, i)) - std::max(begin_s, p.begin_s[i]);
      if (in_s <= 0) continue;
      for (size_t c = 0; c < w.size(); ++c) w[c] += p.watts[i][c] * in_s / part_s;
    }
    if (i > 0) --i;  // a piece may reach into the next part
    out.begin_s.push_back(begin_s);
    out.watts.push_back(w);
  }
  return out;
}

// Boards of one node, each with moments of decision of its own; all do the same.
class Boards {
 public:
  Boards(const NodeType& node, Power limit)
      : period_s_(node.accelerator.power.limiter->period.value()),
        window_s_(node.accelerator.power.limiter->window.value()) {
    const double resting_w = node.accelerator.power.spin.value();
    for (int k = 0; k < kPhases; ++k) {
      boards_.emplace_back(node.accelerator.power, limit, resting_w);
      const double until_s = period_s_ * (k + 0.5) / kPhases;
      boards_.back().pass(period_s_ - until_s, resting_w);
      next_s_.push_back(until_s);
    }
  }

  // Time passes; calls take(from_s, to_s, watts of a board, mean over boards) for each stretch without a decision. Work
  // that lasts long has settled: then windows like the last one are one stretch.
  template <class Take>
  void pass(double to_s, double wanted_w, const Take& take) {
    const double alike = std::floor((to_s - now_s_ - kSettle_s) / window_s_) - 2;
    if (alike > 0) {
      play(now_s_ + kSettle_s, wanted_w, take);
      double joules = 0;
      const double from_s = now_s_;
      play(from_s + window_s_, wanted_w, [&](double begin_s, double end_s, double w) {
        joules += w * (end_s - begin_s);
        take(begin_s, end_s, w);
      });
      take(now_s_, now_s_ + alike * window_s_, joules / (now_s_ - from_s));
      now_s_ += alike * window_s_;
      for (double& next_s : next_s_) next_s += alike * window_s_;
    }
    play(to_s, wanted_w, take);
  }

 private:
  template <class Take>
  void play(double to_s, double wanted_w, const Take& take) {
    while (now_s_ < to_s) {
      const double stop_s = std::min(to_s, *std::min_element(next_s_.begin(), next_s_.end()));
      if (stop_s > now_s_) {
        double w = 0;
        for (BoardLimiter& board : boards_) {
          w += board.watts(wanted_w) / kPhases;
          board.pass(stop_s - now_s_, wanted_w);
        }
        take(now_s_, stop_s, w);
        now_s_ = stop_s;
      }
      for (size_t k = 0; k < boards_.size(); ++k)
        if (next_s_[k] <= now_s_) boards_[k].decide(), next_s_[k] += period_s_;
    }
  }

  double period_s_, window_s_, now_s_ = 0;
  std::vector<BoardLimiter> boards_;
  std::vector<double> next_s_;
};

// Watts of the node's parts with so much for its boards: taken from the kernels that follow the clock first.
std::array<double, 7> with_gpus(std::array<double, 7> w, double target_w) {
  double excess_w = gpus_w(w) - target_w;
  for (size_t c = 0; c < kGpuParts && excess_w > 0; ++c) {
    const double taken_w = std::min(excess_w, w[c]);
    w[c] -= taken_w, excess_w -= taken_w;
  }
  return w;
}

}  // namespace

LimitedStep limit_in_time(const NodeType& node, const StepPower& wanted, const StepPower& held, Power gpu_limit) {
  LimitedStep out;
  out.steady = held;
  if (wanted.watts.empty() || !(wanted.end_s > wanted.begin_s.front())) return out;
  const StepPower step = coarse(wanted);
  const double begin_s = step.begin_s.front(), step_s = step.end_s - begin_s, gpus = node.gpus;
  const std::array<double, 7> mean = mean_of(held);
  const double settle = std::min(kMostSteps, std::ceil(kSettle_s / step_s));
  const double watched = std::min(kMostSteps, std::ceil(kWatched_s / step_s));
  Boards boards(node, gpu_limit);
  PiecewiseWatts start;
  start.begin(0);
  std::vector<double> joules(step.watts.size(), 0);  // of a board, by piece, once settled
  for (double n = 0; n < settle + watched; ++n)
    for (size_t i = 0; i < step.watts.size(); ++i) {
      const double to_s = n * step_s + step.begin_s[i] + length_s(step, i) - begin_s;
      boards.pass(to_s, gpus_w(step.watts[i]) / gpus, [&](double from_s, double until_s, double w) {
        if (from_s < kSettle_s)
          start.append(until_s, w * gpus * (1 + node.power.conversion_loss) + step.watts[i][5] + mean[6]);
        if (n >= settle) joules[i] += w * (until_s - from_s);
      });
    }
  for (double t = 0; t + kMeter_s <= start.end_s() + 1e-12; t += kMeter_s)
    out.peak_w = std::max(out.peak_w, start.integral(t, t + kMeter_s) / kMeter_s);

  out.steady = step;
  double compute_w = 0, total_w = 0;
  for (size_t i = 0; i < step.watts.size(); ++i) {
    auto& w = out.steady.watts[i];
    w = with_gpus(w, gpus * joules[i] / (watched * length_s(step, i)));
    w[4] = node.power.conversion_loss * gpus_w(w);
    w[6] = mean[6];
    const double share = length_s(step, i) / step_s;
    compute_w += w[0] * share;
    for (const double part : w) total_w += part * share;
  }
  // The books are kept by what the run's mean draws: kernels that follow the clock carry the small difference.
  double held_w = 0;
  for (const double part : mean) held_w += part;
  if (compute_w > 0)
    for (auto& w : out.steady.watts) w[0] *= std::max(0.0, 1 + (held_w - total_w) / compute_w);
  return out;
}

}  // namespace tw
