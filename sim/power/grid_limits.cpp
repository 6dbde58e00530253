#include "power/grid_limits.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <deque>

#include "core/codec.hpp"
#include "core/outputs.hpp"
#include "core/sum.hpp"

namespace tw {
namespace {

using Complex = std::complex<double>;

// Extremes of a piece: at its ends, and where its slope turns.
std::pair<double, double> range_of(const CurvePiece& p) {
  double low = std::min(p.at(p.begin_s), p.at(p.end_s)), high = std::max(p.at(p.begin_s), p.at(p.end_s));
  if (p.extra_w != 0 && p.slope != 0 && p.slope / (p.extra_w * p.rate) > 0) {
    const double u = -std::log(p.slope / (p.extra_w * p.rate)) / p.rate;
    if (u > 0 && u < p.end_s - p.begin_s) {
      low = std::min(low, p.at(p.begin_s + u));
      high = std::max(high, p.at(p.begin_s + u));
    }
  }
  return {low, high};
}

// What is above the mean the battery gives, what is below it takes; a full or empty one lets all pass.
Curve through_battery(const Smoothing& s, const Curve& load, SmoothedPower& out) {
  Sum energy;
  for (const CurvePiece& p : load) energy.add(p.integral_j());
  const double mean_w = energy.value() / (load.back().end_s - load.front().begin_s);
  const double most_j = s.battery_capacity.value() > 0 ? s.battery_capacity.value() : INFINITY;
  double charge_j = std::isfinite(most_j) ? most_j / 2 : 0, low_j = charge_j, high_j = charge_j;
  Curve curve;
  Sum given, taken, lost;
  for (const CurvePiece& p : load)
    for (double now_s = p.begin_s; now_s < p.end_s;) {
      double give_w = std::clamp(p.level_w - mean_w, -s.battery_power.value(), s.battery_power.value());
      if ((give_w > 0 && std::isfinite(most_j) && charge_j <= 0) || (give_w < 0 && charge_j >= most_j)) give_w = 0;
      double to_s = p.end_s;
      if (std::isfinite(most_j) && give_w != 0) {
        const double room_j = give_w > 0 ? charge_j : most_j - charge_j;
        if (room_j < std::abs(give_w) * (to_s - now_s)) to_s = now_s + room_j / std::abs(give_w);
      }
      charge_j -= give_w * (to_s - now_s);
      if (to_s < p.end_s) charge_j = give_w > 0 ? 0 : most_j;
      low_j = std::min(low_j, charge_j), high_j = std::max(high_j, charge_j);
      (give_w > 0 ? given : taken).add(std::abs(give_w) * (to_s - now_s));
      lost.add(s.battery_loss * std::abs(give_w) * (to_s - now_s));
      if (to_s > now_s) curve.push_back({now_s, to_s, p.level_w - give_w + s.battery_loss * std::abs(give_w), 0, 0, 0});
      now_s = to_s;
    }
  out.battery_given_j = given.value(), out.battery_taken_j = taken.value(), out.battery_lost_j = lost.value();
  out.battery_swing_j = high_j - low_j;
  return curve;
}

// Follows a load that is constant in pieces no faster than the ramps allow; from the end of one period into the next.
Curve through_ramps(const Smoothing& s, const Curve& load, SmoothedPower& out) {
  const double up = s.ramp_up.value() > 0 ? s.ramp_up.value() : INFINITY;
  const double down = s.ramp_down.value() > 0 ? s.ramp_down.value() : INFINITY;
  double at_w = load.back().level_w;
  Curve curve;
  for (int pass = 0; pass < 2; ++pass) {
    curve.clear();
    Sum burned, withheld;
    for (const CurvePiece& p : load) {
      double now_s = p.begin_s;
      const double far = p.level_w - at_w, rate = far > 0 ? up : down;
      if (far != 0 && std::isfinite(rate)) {
        const double to_s = std::min(p.end_s, now_s + std::abs(far) / rate), slope = far > 0 ? rate : -rate;
        const double end_w = to_s < p.end_s ? p.level_w : at_w + slope * (to_s - now_s);
        const double missing_j = (p.level_w - (at_w + end_w) / 2) * (to_s - now_s);
        (missing_j > 0 ? withheld : burned).add(std::abs(missing_j));
        curve.push_back({now_s, to_s, at_w, slope, 0, 0});
        now_s = to_s, at_w = end_w;
      } else {
        at_w = p.level_w;
      }
      if (now_s < p.end_s) curve.push_back({now_s, p.end_s, at_w, 0, 0, 0});
    }
    if (pass == 1) out.burned_j += burned.value(), out.withheld_j = withheld.value();
  }
  return curve;
}

// y' = (x - y) / tau, in the state that repeats.
Curve through_capacitor(double tau_s, const Curve& load, SmoothedPower& out) {
  double start_w = 0;
  Curve curve;
  for (int pass = 0; pass < 2; ++pass) {
    curve.clear();
    double y = start_w;
    for (const CurvePiece& p : load) {
      const double level_w = p.level_w - p.slope * tau_s;
      curve.push_back({p.begin_s, p.end_s, level_w, p.slope, y - level_w, 1 / tau_s});
      y = curve.back().at(p.end_s);
    }
    if (pass == 0) start_w = y / -std::expm1(-(load.back().end_s - load.front().begin_s) / tau_s);
  }
  double low = INFINITY, high = -INFINITY;
  for (const CurvePiece& p : curve) {
    const auto [l, h] = range_of(p);
    low = std::min(low, l), high = std::max(high, h);
  }
  out.capacitor_swing_j = tau_s * (high - low);  // the integral of x - y is tau * y
  return curve;
}

double value_at(const Curve& curve, double time_s, bool before) {
  auto next =
      std::upper_bound(curve.begin(), curve.end(), time_s, [](double t, const CurvePiece& p) { return t < p.begin_s; });
  if (before && next != curve.begin() && std::prev(next)->begin_s >= time_s && std::prev(next) != curve.begin()) --next;
  return next == curve.begin() ? curve.front().at(curve.front().begin_s) : std::prev(next)->at(time_s);
}

// Steepest change over a span of time: it begins or ends where a piece does.
LimitAnswer steepest(const Curve& curve, double over_s) {
  LimitAnswer answer;
  bool looked = false;
  const double first_s = curve.front().begin_s, last_s = curve.back().end_s;
  for (const CurvePiece& p : curve)
    for (const double from_s : {p.begin_s, p.begin_s - over_s}) {
      if (from_s < first_s || from_s + over_s > last_s) continue;
      for (const bool before : {false, true})
        for (const bool after : {false, true}) {
          const double rate =
              std::abs(value_at(curve, from_s + over_s, after) - value_at(curve, from_s, before)) / over_s;
          if (rate > answer.value.value_or(0)) answer.most(rate, from_s);
          looked = true;
        }
    }
  if (looked) answer.most(0, 0);
  return answer;
}

// Highest less lowest within any window.
LimitAnswer widest(const Curve& curve, double window_s) {
  LimitAnswer answer;
  std::deque<std::pair<double, double>> low, high;  // (end of the piece, its extreme), best first
  for (const CurvePiece& p : curve) {
    const auto [least, most] = range_of(p);
    for (auto* list : {&low, &high})
      while (!list->empty() && p.begin_s - list->front().first >= window_s) list->pop_front();
    while (!low.empty() && low.back().second >= least) low.pop_back();
    while (!high.empty() && high.back().second <= most) high.pop_back();
    low.emplace_back(p.end_s, least), high.emplace_back(p.end_s, most);
    const double range_w = high.front().second - low.front().second;
    if (range_w > answer.value.value_or(0)) answer.most(range_w, p.begin_s);
  }
  answer.most(0, 0);
  return answer;
}

void judge(LimitAnswer& answer, double limit) {
  if (!(limit > 0)) return;
  answer.limit = limit;
  if (answer.value) answer.kept = *answer.value <= limit * (1 + 1e-9);
}

}  // namespace

double CurvePiece::at(double time_s) const {
  const double u = time_s - begin_s;
  return level_w + slope * u + (extra_w != 0 ? extra_w * std::exp(-rate * u) : 0);
}

double CurvePiece::integral_j() const {
  const double d = end_s - begin_s;
  return (level_w + slope * d / 2) * d + (extra_w != 0 ? extra_w * -std::expm1(-rate * d) / rate : 0);
}

Curve curve_of(const PiecewiseWatts& power, double from_s, double to_s) {
  Curve curve;
  const auto put = [&](double begin_s, double end_s, double w) {
    begin_s = std::max(begin_s, from_s), end_s = std::min(end_s, to_s);
    if (!(end_s > begin_s)) return;
    if (!curve.empty() && curve.back().level_w == w)
      curve.back().end_s = end_s;
    else
      curve.push_back({begin_s, end_s, w, 0, 0, 0});
  };
  put(from_s, power.begin_s(), power.outside_w());
  for (size_t i = 0; i < power.pieces(); ++i) put(power.piece_begin_s(i), power.piece_end_s(i), power.piece_w(i));
  put(power.end_s(), to_s, power.outside_w());
  return curve;
}

SmoothedPower smooth(const Smoothing& s, const PiecewiseWatts& power, double from_s, double to_s) {
  SmoothedPower out;
  out.curve = curve_of(power, from_s, to_s);
  if (s.floor.value() > 0) {
    Sum burned;
    for (CurvePiece& p : out.curve) {
      burned.add(std::max(0.0, s.floor.value() - p.level_w) * (p.end_s - p.begin_s));
      p.level_w = std::max(p.level_w, s.floor.value());
    }
    out.burned_j = burned.value();
  }
  if (s.battery_power.value() > 0) out.curve = through_battery(s, out.curve, out);
  if (s.ramp_up.value() > 0 || s.ramp_down.value() > 0) out.curve = through_ramps(s, out.curve, out);
  if (s.capacitor.value() > 0) out.curve = through_capacitor(s.capacitor.value(), out.curve, out);
  return out;
}

std::vector<SpectrumLine> spectrum(const Curve& curve, double from_hz, double to_hz) {
  std::vector<SpectrumLine> lines;
  if (curve.empty()) return lines;
  const double span_s = curve.back().end_s - curve.front().begin_s;
  Sum energy;
  for (const CurvePiece& p : curve) energy.add(p.integral_j());
  const double mean_w = energy.value() / span_s;
  // Pieces meet: one turning pointer a meeting, turned on from harmonic to harmonic and set anew before it drifts.
  const size_t n = curve.size();
  std::vector<Complex> pointer(n + 1), turn(n + 1);
  std::vector<double> left(n);  // of the exponential at the end of its piece
  const auto angle = [&](size_t i, double hz) {
    return -2 * M_PI * hz * (i < n ? curve[i].begin_s : curve.back().end_s);
  };
  for (size_t i = 0; i <= n; ++i) turn[i] = std::polar(1.0, angle(i, 1 / span_s));
  for (size_t i = 0; i < n; ++i) left[i] = std::exp(-curve[i].rate * (curve[i].end_s - curve[i].begin_s));
  int64_t turned = 0;
  for (auto k = static_cast<int64_t>(std::max(1.0, std::ceil(from_hz * span_s - 1e-9)));
       static_cast<double>(k) <= to_hz * span_s + 1e-9; ++k) {
    const double hz = static_cast<double>(k) / span_s, omega = 2 * M_PI * hz;
    for (size_t i = 0; i <= n; ++i)
      pointer[i] = turned % 64 == 0 ? std::polar(1.0, angle(i, hz)) : pointer[i] * turn[i];
    ++turned;
    // Over i omega, at the end; quotients of complex numbers are slow.
    Complex levels = 0, sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const CurvePiece& p = curve[i];
      levels += (p.level_w - mean_w) * (pointer[i] - pointer[i + 1]);
      if (p.slope != 0)
        sum += p.slope / (omega * omega) * (pointer[i + 1] * Complex(1, omega * (p.end_s - p.begin_s)) - pointer[i]);
      if (p.extra_w != 0)
        sum += p.extra_w / (p.rate * p.rate + omega * omega) * (pointer[i] - left[i] * pointer[i + 1]) *
               Complex(p.rate, -omega);
    }
    sum += levels / Complex(0, omega);
    lines.push_back({hz, 2 * std::abs(sum) / span_s});
  }
  return lines;
}

GridAnswer ask_grid(const GridLimits& limits, const Curve& curve, const std::vector<SpectrumLine>& lines) {
  GridAnswer answer;
  if (curve.empty()) return answer;
  Sum energy;
  answer.least_w = INFINITY;
  for (const CurvePiece& p : curve) {
    energy.add(p.integral_j());
    const auto [low, high] = range_of(p);
    answer.least_w = std::min(answer.least_w, low), answer.most_w = std::max(answer.most_w, high);
  }
  answer.mean_w = energy.value() / (curve.back().end_s - curve.front().begin_s);
  answer.ramp = steepest(curve, limits.ramp_over.value());
  answer.dynamic_range = widest(curve, limits.window.value());
  bool any = false;
  for (const SpectrumLine& line : lines) {
    if (line.hz < limits.band_from.value() || line.hz > limits.band_to.value()) continue;
    if (line.amplitude_w > answer.amplitude.value.value_or(0)) answer.amplitude.most(line.amplitude_w, line.hz);
    any = true;
  }
  if (any) answer.amplitude.most(0, 0);
  judge(answer.ramp, limits.ramp.value());
  judge(answer.dynamic_range, limits.dynamic_range.value());
  judge(answer.amplitude, limits.amplitude.value());
  return answer;
}

void GridLimits::describe(Description<GridLimits>& d) {
  d.object("grid_limits", "What a utility allows a load to do: three limits.");
  d.optional("ramp", &GridLimits::ramp, "change of power in a second; 0: no limit");
  d.optional("ramp_over", &GridLimits::ramp_over, "time over which a change is looked at", above(0));
  d.optional("dynamic_range", &GridLimits::dynamic_range, "highest less lowest power within a window; 0: no limit");
  d.optional("window", &GridLimits::window, "that window", above(0));
  d.optional("amplitude", &GridLimits::amplitude,
             "amplitude of any line of the spectrum in a band, zero to peak; 0: no limit");
  d.optional("band_from", &GridLimits::band_from, "that band", between(0.05, 20));
  d.optional("band_to", &GridLimits::band_to, "that band", between(0.05, 20));
}

void Smoothing::describe(Description<Smoothing>& d) {
  d.object("smoothing", "What smooths a site's power inside the steps, in the order in which it acts.");
  d.optional("floor", &Smoothing::floor, "of the whole site's power: kept up by burning");
  d.optional("battery_power", &Smoothing::battery_power,
             "of a battery that gives what is above the mean and takes what is below");
  d.optional("battery_capacity", &Smoothing::battery_capacity, "half full at first; 0: as much as it needs");
  d.optional("battery_loss", &Smoothing::battery_loss, "of what goes in and out", between(0, 0.5));
  d.optional("ramp_up", &Smoothing::ramp_up, "in a second: boards climb no faster; 0: no limit");
  d.optional("ramp_down", &Smoothing::ramp_down, "in a second: boards burn while they come down; 0: no limit");
  d.optional("capacitor", &Smoothing::capacitor, "time constant of the capacitors of the supplies");
}

void SpectrumLine::describe(Outputs<SpectrumLine>& d) {
  d.output("hz", &SpectrumLine::hz, "Hz", "frequency");
  d.output("amplitude_w", &SpectrumLine::amplitude_w, "W", "zero to peak");
}

void LimitAnswer::describe(Outputs<LimitAnswer>& d) {
  d.output("limit", &LimitAnswer::limit, "", "what is allowed; null: nothing is said");
  d.output("value", &LimitAnswer::value, "", "the worst there is; null: there was nothing to look at");
  d.output("at", &LimitAnswer::at, "", "where: second of the span, or Hz");
  d.output("kept", &LimitAnswer::kept, "", "is it kept? null without a limit, or where there was nothing to look at");
}

void GridAnswer::describe(Outputs<GridAnswer>& d) {
  d.output("ramp", &GridAnswer::ramp, "W/s", "change of power");
  d.output("dynamic_range", &GridAnswer::dynamic_range, "W", "highest less lowest within the window");
  d.output("amplitude", &GridAnswer::amplitude, "W", "strongest line in the band");
  d.output("mean_w", &GridAnswer::mean_w, "W", "mean");
  d.output("least_w", &GridAnswer::least_w, "W", "lowest");
  d.output("most_w", &GridAnswer::most_w, "W", "highest");
}

}  // namespace tw
