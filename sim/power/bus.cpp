#include "power/bus.hpp"

#include "power/loss_law.hpp"
#include "topology/fabric_kind.hpp"

namespace tw {

int bus_of(const Cluster& cluster, int node) {
  const int per_bus = cluster.power_delivery.nodes_per_bus;
  const int per_unit = kind_of(cluster.fabric).nodes_per_unit(cluster.fabric);
  if (per_unit == 0) return node / per_bus;
  const int buses_per_unit = (per_unit + per_bus - 1) / per_bus;
  return node / per_unit * buses_per_unit + node % per_unit / per_bus;
}

double shelf_rating_w(const PowerDelivery& delivery) {
  return delivery.rectifiers_per_shelf * delivery.rectifier.rating.value();
}

double bus_rating_w(const PowerDelivery& delivery) {
  return delivery.shelves_per_bus * shelf_rating_w(delivery);
}

int bus_rectifiers(const PowerDelivery& delivery) {
  return delivery.shelves_per_bus * delivery.rectifiers_per_shelf;
}

LossLaw rectifier_law(const PowerDelivery& delivery, int on) {
  return LossLaw{delivery.rectifier.fixed_loss.value(), delivery.rectifier.proportional_loss, 0}.times(on);
}

LossLaw rectifier_law(const PowerDelivery& delivery) {
  return rectifier_law(delivery, bus_rectifiers(delivery));
}

LossLaw stage_law(const PowerStage& stage) {
  const LossLaw unit{stage.fixed_loss.value(), stage.proportional_loss, stage.square_loss / stage.rating.value()};
  if (stage.redundancy == Redundancy::two_n) return unit.times(2);
  return unit.times(stage.redundancy == Redundancy::n_plus_1 ? (stage.modules + 1.0) / stage.modules : 1);
}

}  // namespace tw
