#include "power/stage.hpp"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kHair = 1e-9;  // a load at a rating is not beyond it

}  // namespace

double Stage::until_change_s(double, bool) const {
  return kNever;
}

Converter::Converter(std::string n, LossLaw law, double rating_w, double trip_s)
    : law_(law), rating_w_(rating_w), trip_s_(trip_s) {
  name = std::move(n);
}

double Converter::input_w(double output_w, bool fed) const {
  return fed && !tripped() ? law_.input_w(output_w) : 0;
}

double Converter::heating(double output_w) const {
  const double ratio = output_w / rating_w_;
  return ratio > 1 + kHair || heat_ > 0 ? (ratio * ratio - 1) / trip_s_ : 0;
}

void Converter::advance(double dt_s, double output_w, bool) {
  heat_ = std::max(0.0, heat_ + heating(output_w) * dt_s);
  if (heat_ > 1 - 1e-12) heat_ = 1;
}

double Converter::limit_w(bool fed) const {
  return fed && !tripped() ? kNever : 0;  // it gives more than its rating, for a while
}

double Converter::until_change_s(double output_w, bool) const {
  const double rate = heating(output_w);
  if (rate > 0) return (1 - heat_) / rate;
  return rate < 0 ? heat_ / -rate : kNever;
}

BatteryShelf::BatteryShelf(std::string n, BatteryType type, double charge)
    : type_(type), charge_j_(charge * type.capacity_j) {
  name = std::move(n);
}

double BatteryShelf::given_w(double output_w, bool fed) const {
  const double most_w = charge_j_ > 0 ? type_.power_w : 0;
  if (!fed) return std::min(output_w, most_w);
  if (output_w > type_.shave_above_w) return std::min(output_w - type_.shave_above_w, most_w);
  if (charge_j_ >= type_.capacity_j) return 0;
  return -std::min(type_.recharge_w, type_.shave_above_w - output_w);
}

double BatteryShelf::charge_rate_w(double output_w, bool fed) const {
  const double given = given_w(output_w, fed);
  return given > 0 ? -given / type_.discharge_efficiency : -given * type_.charge_efficiency;
}

double BatteryShelf::input_w(double output_w, bool fed) const {
  return fed ? output_w - given_w(output_w, fed) : 0;
}

void BatteryShelf::advance(double dt_s, double output_w, bool fed) {
  charge_j_ = std::clamp(charge_j_ + charge_rate_w(output_w, fed) * dt_s, 0.0, type_.capacity_j);
  // Full and empty are states: rounding must not leave a hair that takes an event of its own.
  if (charge_j_ < 1e-12 * type_.capacity_j) charge_j_ = 0;
  if (charge_j_ > type_.capacity_j * (1 - 1e-12)) charge_j_ = type_.capacity_j;
}

double BatteryShelf::limit_w(bool fed) const {
  if (fed) return kNever;
  return charge_j_ > 0 ? type_.power_w : 0;
}

double BatteryShelf::until_change_s(double output_w, bool fed) const {
  const double rate_w = charge_rate_w(output_w, fed);
  if (rate_w < 0) return charge_j_ / -rate_w;
  return rate_w > 0 ? (type_.capacity_j - charge_j_) / rate_w : kNever;
}

BatteryType battery_of_bus(const BatteryProfile& p, double rectifiers_w) {
  return {p.capacity.value(),  p.power.value(),    p.discharge_efficiency,
          p.charge_efficiency, p.recharge.value(), rectifiers_w};
}

}  // namespace tw
