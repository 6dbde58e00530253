// What a stage of the power delivery loses: the one law for rectifiers, PDUs and UPSs.
#pragma once

#include "topology/cluster.hpp"

namespace tw {

// Loss of a unit that puts out P watts: fixed + proportional * P + square * P^2.
struct LossLaw {
  double fixed_w = 0, proportional = 0, square_per_w = 0;

  double loss_w(double output_w) const {
    return fixed_w + proportional * output_w + square_per_w * output_w * output_w;
  }
  double slope(double output_w) const { return proportional + 2 * square_per_w * output_w; }  // of the loss
  double input_w(double output_w) const { return output_w + loss_w(output_w); }
  // Over some time at any output, where there is no square part (rectifiers as measured have none).
  double loss_j(double output_j, double seconds) const { return fixed_w * seconds + proportional * output_j; }
  // Of `n` such units that share the output evenly.
  LossLaw times(double n) const { return {fixed_w * n, proportional, n > 0 ? square_per_w / n : 0}; }
};

// The rectifiers of a bus of which `on` are on (measured: 129.7 W + 7.98 W per kW over eight). None: no loss.
LossLaw rectifier_law(const PowerDelivery& delivery, int on);
LossLaw rectifier_law(const PowerDelivery& delivery);  // all of them

// A unit of an upstream stage with its spare module (n+1) or second side (2n), which take their part of the load.
LossLaw stage_law(const PowerStage& stage);

}  // namespace tw
