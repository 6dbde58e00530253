// Stages of the power delivery with their state in simulated time: what a unit takes from above for what it gives
// below, how its state moves meanwhile, what it can give now, and when it lets go.
#pragma once

#include <limits>
#include <string>

#include "power/loss_law.hpp"

namespace tw {

class Stage {
 public:
  virtual ~Stage() = default;
  // What it takes from above while it gives `output_w`, in its present state. `fed`: there is something above.
  virtual double input_w(double output_w, bool fed) const = 0;
  // Time passes at that output; the caller does not step over until_change_s().
  virtual void advance(double dt_s, double output_w, bool fed) = 0;
  // Most it can give now.
  virtual double limit_w(bool fed) const = 0;
  // How long its state lets the present flows last: a battery runs empty or full, a breaker lets go.
  virtual double until_change_s(double output_w, bool fed) const;
  virtual bool tripped() const { return false; }
  std::string name;
};

// Rectifiers, PDU, UPS, transformer: a law of loss and a breaker that lets go by the inverse-time law of IEC 60255
// ("extremely inverse"): at `r` times its rating after trip_s / (r^2 - 1) seconds; below its rating it cools as it
// warmed.
class Converter : public Stage {
 public:
  Converter(std::string name, LossLaw law, double rating_w, double trip_s = 80);
  double input_w(double output_w, bool fed) const override;
  void advance(double dt_s, double output_w, bool fed) override;
  double limit_w(bool fed) const override;
  double until_change_s(double output_w, bool fed) const override;
  bool tripped() const override { return heat_ >= 1; }
  void set_rating(double rating_w) { rating_w_ = rating_w; }

 private:
  double heating(double output_w) const;  // per second
  LossLaw law_;
  double rating_w_, trip_s_;
  double heat_ = 0;  // 1: lets go
};

// A battery shelf (BBU) beside the way of the power: it carries what is below when nothing is above, gives what the
// load wants beyond `shave_above_w`, and takes back what it gave, up to `recharge_w`, when the load leaves room.
struct BatteryType {
  double capacity_j = 0;
  double power_w = 0;  // most it gives
  double discharge_efficiency = 1, charge_efficiency = 1;
  double recharge_w = 0;  // most it takes, at its input
  double shave_above_w = std::numeric_limits<double>::infinity();
};
class BatteryShelf : public Stage {
 public:
  BatteryShelf(std::string name, BatteryType type, double charge = 1);
  double input_w(double output_w, bool fed) const override;
  void advance(double dt_s, double output_w, bool fed) override;
  double limit_w(bool fed) const override;
  double until_change_s(double output_w, bool fed) const override;
  double charge_j() const { return charge_j_; }
  void set_shave_above(double watts) { type_.shave_above_w = watts; }

 private:
  double given_w(double output_w, bool fed) const;  // to the load; negative: taken from above
  double charge_rate_w(double output_w, bool fed) const;
  BatteryType type_;
  double charge_j_;
};

// A span without anything above the topmost stage.
struct Outage {
  double from_s = 0, to_s = 0;
};

// The battery of a bus, beside rectifiers that give `rectifiers_w`.
BatteryType battery_of_bus(const BatteryProfile& profile, double rectifiers_w);

}  // namespace tw
