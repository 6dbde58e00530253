// A site's power as its utility sees it: ramps, swings and a spectrum between 0.05 and 20 Hz, before and after what
// smooths it. The problem and the three limits: arXiv 2508.14318.
#pragma once

#include <optional>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "power/piecewise.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// Limits as utilities write them; 0: none.
struct GridLimits {
  Power ramp;  // a second
  Time ramp_over = seconds(1);
  Power dynamic_range;
  Time window = seconds(60);
  Power amplitude;
  Frequency band_from = Frequency::from_value(0.1), band_to = Frequency::from_value(20);
  static void describe(Description<GridLimits>& d);
};

// In the order in which they act on the load; 0: absent.
struct Smoothing {
  Power floor;               // of the whole site: kept up by burning
  Power battery_power;       // gives and takes what is above and below the mean
  Energy battery_capacity;   // 0: as much as it needs
  double battery_loss = 0;   // of what goes through it
  Power ramp_up, ramp_down;  // a second: boards that climb slowly, and burn while they come down
  Time capacitor;            // time constant of the supply's capacitors
  static void describe(Description<Smoothing>& d);
};

// Power that is level + slope * u + extra * exp(-rate * u) in each piece, u from its beginning: what passes through
// ramp limits and capacitors.
struct CurvePiece {
  double begin_s = 0, end_s = 0, level_w = 0, slope = 0, extra_w = 0, rate = 0;
  double at(double time_s) const;
  double integral_j() const;
};
using Curve = std::vector<CurvePiece>;
Curve curve_of(const PiecewiseWatts& power, double from_s, double to_s);

struct SmoothedPower {
  Curve curve;
  double burned_j = 0;    // by the floor and while boards come down
  double withheld_j = 0;  // work that waits while boards climb
  double battery_given_j = 0, battery_taken_j = 0, battery_lost_j = 0, battery_swing_j = 0;
  double capacitor_swing_j = 0;  // what the capacitors must hold
};
// Over one period: what happens from `from_s` to `to_s` repeats.
SmoothedPower smooth(const Smoothing& s, const PiecewiseWatts& power, double from_s, double to_s);

// Amplitude (W, zero to peak) of each harmonic of the span up to `to_hz`: exact Fourier integrals, no sampling.
struct SpectrumLine {
  double hz = 0, amplitude_w = 0;
  static void describe(Outputs<SpectrumLine>& d);
};
std::vector<SpectrumLine> spectrum(const Curve& curve, double from_hz, double to_hz);

// One of the limits: what was asked, what is there. Where there is nothing to look at (a ramp over more time than the
// power is known for, a band without a line) it is neither kept nor broken.
struct LimitAnswer {
  std::optional<double> limit;      // null: none is given
  std::optional<double> value, at;  // at: second, or Hz
  std::optional<bool> kept;
  void most(double v, double where) {
    if (!value || v > *value) value = v, at = where;
  }
  static void describe(Outputs<LimitAnswer>& d);
};
struct GridAnswer {
  LimitAnswer ramp, dynamic_range, amplitude;
  double mean_w = 0, least_w = 0, most_w = 0;
  static void describe(Outputs<GridAnswer>& d);
};
GridAnswer ask_grid(const GridLimits& limits, const Curve& curve, const std::vector<SpectrumLine>& lines);

}  // namespace tw
