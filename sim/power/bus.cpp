#include "power/bus.hpp"

namespace tw {

int bus_of(const Cluster& cluster, int node) {
  const int per_bus = cluster.power_delivery.nodes_per_bus;
  if (cluster.fabric.kind == "torus") return node / per_bus;  // has no units
  const int per_unit = cluster.fabric.nodes_per_unit;
  const int buses_per_unit = (per_unit + per_bus - 1) / per_bus;
  return node / per_unit * buses_per_unit + node % per_unit / per_bus;
}

double shelf_rating_w(const PowerDelivery& delivery) {
  return delivery.rectifiers_per_shelf * delivery.rectifier.rating.value();
}

double bus_rating_w(const PowerDelivery& delivery) {
  return delivery.shelves_per_bus * shelf_rating_w(delivery);
}

double rectifier_loss_w(const PowerDelivery& delivery, double dc_w) {
  return delivery.shelves_per_bus * delivery.rectifiers_per_shelf * delivery.rectifier.fixed_loss.value() +
         delivery.rectifier.proportional_loss * dc_w;
}

}  // namespace tw
